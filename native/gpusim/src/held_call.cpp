#include "held_call.h"

#include <atomic>
#include <condition_variable>
#include <mutex>

namespace gpusim {
namespace {

enum class Stage { kNone, kWanted, kHeld };

std::mutex mutex;
std::condition_variable changed;
std::string wanted;
Stage stage = Stage::kNone;
std::atomic<bool> anything_wanted{false};

}  // namespace

void hold_next(const std::string& call) {
  const std::lock_guard<std::mutex> lock(mutex);
  wanted = call;
  stage = Stage::kWanted;
  anything_wanted = true;
}

void wait_until_held() {
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait(lock, [] { return stage == Stage::kHeld; });
}

void release_held() {
  const std::lock_guard<std::mutex> lock(mutex);
  stage = Stage::kNone;
  changed.notify_all();
}

void pause_if_held(const char* call) {
  if (!anything_wanted) return;
  std::unique_lock<std::mutex> lock(mutex);
  if (stage != Stage::kWanted || wanted != call) return;
  anything_wanted = false;
  stage = Stage::kHeld;
  changed.notify_all();
  changed.wait(lock, [] { return stage != Stage::kHeld; });
}

}  // namespace gpusim
