// What the lower half's program finds on its stack: its name, the environment, auxiliary values.
#pragma once

#include "capture/image/boot/options.h"
#include "capture/image/boot/program.h"

namespace backstay::image {

// Remembers what the kernel said at this process's start. Once, before the program runs.
void keep_auxiliary(const Start& start);
uint64_t kept_auxiliary(uint64_t key);
// Copies the environment of this process into the window: the kernel's is about to be unmapped.
char** keep_environment(const Start& start);
// `name`'s value in an environment; null: not there.
const char* variable_of(char** environment, const char* name);

struct LowerStart {
  const Program& program;
  const Elf& interpreter;
  char** environment;
  long launcher;  // the descriptor that PMI_FD names now; -1: it stays as it is
};
// Fills the stack of `bytes` at `room`. Returns the stack pointer for the interpreter's entry; 0:
// the environment does not fit.
uint64_t build_lower_stack(uint64_t room, uint64_t bytes, const LowerStart& start);

}  // namespace backstay::image
