// Lets a test hold up one call of one thread, so that another thread's call meets it inside.
#pragma once

#include <string>

namespace gpusim {

void hold_next(const std::string& call);
void wait_until_held();
void release_held();

// Called at the begin of a call, without the simulator's lock.
void pause_if_held(const char* call);

}  // namespace gpusim
