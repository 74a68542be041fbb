// A program that links the delegate's objects itself has the backend registered, too.
#include <executorch/runtime/backend/interface.h>
#include <gtest/gtest.h>

#include "backend.h"

TEST(ObjectLibrary, RegistersTheBackend) {
  EXPECT_EQ(linkcheck::trt::TensorRTBackend::registration(), executorch::runtime::Error::Ok);
  EXPECT_EQ(executorch::runtime::get_backend_class("TensorRTBackend"),
            &linkcheck::trt::TensorRTBackend::instance());
}

TEST(ObjectLibrary, ASecondRegistrationIsRefused) {
  EXPECT_EQ(executorch::runtime::register_backend(
                {linkcheck::trt::kBackendName, &linkcheck::trt::TensorRTBackend::instance()}),
            executorch::runtime::Error::InvalidArgument);
}
