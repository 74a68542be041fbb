// A part of a GPU's multiprocessors for work of its own. It is never made current: a stream of it
// is enough, and everything else stays in the device's primary context.
#pragma once

#include "driver_api.h"

namespace linkcheck::runner {

class GreenContext {
 public:
  // At least `sms` multiprocessors of the current GPU: drivers hand them out in groups. Throws
  // Problem when the driver cannot, or the GPU has fewer.
  explicit GreenContext(unsigned int sms);
  // Its streams must be destroyed before, and their work be over.
  ~GreenContext();
  GreenContext(const GreenContext&) = delete;
  GreenContext& operator=(const GreenContext&) = delete;

  // How many multiprocessors there are really.
  unsigned int sms() const { return sms_; }
  // The caller destroys it. Throws Problem.
  cudaStream_t create_stream() const;

 private:
  const DriverApi api_;
  unsigned int sms_ = 0;
  CUgreenCtx context_ = nullptr;
};

}  // namespace linkcheck::runner
