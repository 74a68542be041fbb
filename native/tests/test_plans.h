// Reads the plans that the build made from plans/*.json.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

inline std::string read_plan_file(const std::string& name) {
  std::ifstream file(std::string(LINKCHECK_PLAN_DIR) + "/" + name + ".plan", std::ios::binary);
  EXPECT_TRUE(file) << "no plan " << name;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}
