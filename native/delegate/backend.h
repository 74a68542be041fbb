// The backend "TensorRTBackend" as ExecuTorch sees it: init, execute, destroy. All work is done by
// the parts; this file logs their failures and lets nothing thrown cross the boundary.
#pragma once

#include <executorch/runtime/backend/interface.h>

namespace linkcheck::trt {

inline constexpr char kBackendName[] = "TensorRTBackend";

class TensorRTBackend final : public executorch::runtime::BackendInterface {
 public:
  // The one instance, never destroyed: programs may be unloaded after static destructors ran.
  static TensorRTBackend& instance();

  // The result of registering the instance, which happens when this code is loaded.
  static executorch::runtime::Error registration();

  bool is_available() const override;
  executorch::runtime::Result<executorch::runtime::DelegateHandle*> init(
      executorch::runtime::BackendInitContext& context,
      executorch::runtime::FreeableBuffer* processed,
      executorch::runtime::ArrayRef<executorch::runtime::CompileSpec> compile_specs) const override;
  executorch::runtime::Error execute(
      executorch::runtime::BackendExecutionContext& context,
      executorch::runtime::DelegateHandle* handle,
      executorch::runtime::Span<executorch::runtime::EValue*> arguments) const override;
  void destroy(executorch::runtime::DelegateHandle* handle) const override;
};

}  // namespace linkcheck::trt
