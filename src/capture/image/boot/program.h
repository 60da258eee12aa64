// Finding the program that a command line names, as execvp does, and refusing what cannot be saved
// later, before it runs.
#pragma once

#include "capture/image/boot/elf.h"
#include "capture/image/boot/options.h"

namespace backstay::image {

inline constexpr int path_max = 4096;

struct Program {
  char path[path_max] = {};        // the ELF file
  char script[path_max] = {};      // what `#!` named path for; empty: no script
  char script_argument[256] = {};  // the one argument that `#!` may give
  bool missing = false;            // there is no file of this name; else trouble has another cause
  long fd = -1;
  Elf elf;
};

// Trouble: not found, not executable, static, set-user-id.
void find_program(const char* name, const Start& start, Program& program, Trouble& trouble);
// The same for a path, as execve takes it.
void open_program_at(const char* path, Program& program, Trouble& trouble);

}  // namespace backstay::image
