// The delegate is on the link line.
#include "runner.h"

DelegateStream find_delegate(int, char**) {
  return demo_delegate_stream;
}
