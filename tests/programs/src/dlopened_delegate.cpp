// The delegate is a plug-in: its path is the program's argument. RTLD_LOCAL, as plug-in loaders do.
#include "runner.h"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>

DelegateStream find_delegate(int argc, char** argv) {
  void* library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : nullptr;
  void* entry = library != nullptr ? dlsym(library, "demo_delegate_stream") : nullptr;
  if (entry == nullptr) {
    const char* reason = argc > 1 ? dlerror() : "usage: runner DELEGATE";
    std::fprintf(stderr, "%s\n", reason);
    std::exit(2);
  }
  return reinterpret_cast<DelegateStream>(entry);
}
