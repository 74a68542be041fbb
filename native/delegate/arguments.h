// Checks the arguments of one execute against the signature. It changes nothing and enqueues
// nothing, so a wrong argument costs no clean-up.
#pragma once

#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/core/span.h>

#include "device_traits.h"
#include "driver_api.h"
#include "failure.h"
#include "signature.h"

namespace linkcheck::trt {

class ContextSlot;

using Arguments = executorch::runtime::Span<executorch::runtime::EValue*>;

// Fills in where each argument's memory is (ContextSlot::inputs and ::outputs). Fails with
// InvalidArgument, naming the tensor, when an argument is missing or left over, is no tensor, or
// has a type, rank, size or layout that the engine does not take.
Status check_arguments(const Signature& signature, const DeviceTraits& traits,
                       const DriverApi& driver, Arguments arguments, ContextSlot& slot);

Shape shape_of(const executorch::aten::Tensor& tensor);

}  // namespace linkcheck::trt
