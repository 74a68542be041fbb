// Makes a GPU the thread's current one for a scope. It changes nothing when that is so already:
// a green context of that GPU that is current stays current.
//
// Thread: use on one thread, innermost scope ends first. The former device, and the context that
// was current, are restored even after an error.
#pragma once

#include "driver_api.h"
#include "failure.h"

namespace linkcheck::trt {

class DeviceScope {
 public:
  // `primary` is the device's primary context, if known: that it is current is then seen at once.
  DeviceScope(int device, const DriverApi& driver, CUcontext primary = nullptr);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

  // Whether the device could be made current.
  Status& status() { return status_; }

 private:
  const DriverApi& driver_;
  int former_ = 0;
  CUcontext former_context_ = nullptr;
  bool switched_ = false;
  Status status_;
};

}  // namespace linkcheck::trt
