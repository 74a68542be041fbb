// How the runner gets at its delegate: linked_delegate.cpp or dlopened_delegate.cpp, one of them in a program.
#pragma once

#include "delegate.h"

using DelegateStream = cudaStream_t (*)();

// The delegate's entry point. Ends the process with status 2, and a line that says why, when there is none.
DelegateStream find_delegate(int argc, char** argv);
