// Makes a GPU the thread's current one for a scope. It changes nothing when that is so already.
//
// Thread: use on one thread, innermost scope ends first. The former device is restored even after
// an error.
#pragma once

#include "failure.h"

namespace linkcheck::trt {

class DeviceScope {
 public:
  explicit DeviceScope(int device);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

  // Whether the device could be made current.
  Status& status() { return status_; }

 private:
  int former_ = 0;
  bool switched_ = false;
  Status status_;
};

}  // namespace linkcheck::trt
