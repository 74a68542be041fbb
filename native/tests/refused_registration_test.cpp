// A process in which somebody else has the backend's name: the delegate says so in every answer and
// replaces nobody.
#include <executorch/runtime/platform/runtime.h>
#include <gtest/gtest.h>

#include "backend.h"

namespace et = executorch::runtime;
using executorch::runtime::Error;
using linkcheck::trt::kBackendName;
using linkcheck::trt::TensorRTBackend;

namespace {

class Stranger final : public et::BackendInterface {
 public:
  bool is_available() const override { return true; }
  et::Result<et::DelegateHandle*> init(et::BackendInitContext&, et::FreeableBuffer*,
                                       et::ArrayRef<et::CompileSpec>) const override {
    return Error::NotImplemented;
  }
  Error execute(et::BackendExecutionContext&, et::DelegateHandle*,
                et::Span<et::EValue*>) const override {
    return Error::NotImplemented;
  }
};

Stranger& stranger() {
  static Stranger instance;
  return instance;
}

struct TakesTheName {
  TakesTheName() { static_cast<void>(et::register_backend({kBackendName, &stranger()})); }
};
// Before the delegate's own static initializer: 101 is the earliest that programs may use.
__attribute__((init_priority(101))) const TakesTheName takes_the_name;

}  // namespace

TEST(RefusedRegistration, IsTheAnswerOfEveryInit) {
  EXPECT_EQ(et::get_backend_class(kBackendName), &stranger());
  EXPECT_EQ(TensorRTBackend::registration(), Error::InvalidArgument);
  EXPECT_FALSE(TensorRTBackend::instance().is_available());
  et::BackendInitContext context(nullptr);
  EXPECT_EQ(TensorRTBackend::instance().init(context, nullptr, {}).error(), Error::InvalidArgument);
}
