#include "green_contexts.h"

#include <algorithm>

namespace gpusim {
namespace {

const GreenContext* find_in(const std::map<uintptr_t, GreenContext>& all, uintptr_t handle) {
  const auto found = all.find(handle);
  return found == all.end() ? nullptr : &found->second;
}

}  // namespace

std::optional<SmRange> GreenContexts::split(const SmRange& all, int wanted, int granularity) {
  if (wanted <= 0 || wanted > all.count) return std::nullopt;
  const int rounded = (wanted + granularity - 1) / granularity * granularity;
  return SmRange{all.first, std::min(rounded, all.count)};
}

const GreenContext* GreenContexts::find_description(uintptr_t handle) const {
  return find_in(descriptions_, handle);
}

const GreenContext* GreenContexts::find(uintptr_t handle) const {
  return find_in(contexts_, handle);
}

}  // namespace gpusim
