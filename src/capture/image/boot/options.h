// What the boot program was asked to do. See main.cc for the command line.
#pragma once

#include "capture/image/boot/window.h"

namespace backstay::image {

struct Options {
  const char* image = nullptr;         // where a cut is written
  const char* restore = nullptr;       // an image to go on from
  long control = -1;                   // a descriptor on which cuts are asked for
  bool companion = false;              // the other end of `control` is a companion
  bool bring_back = false;             // with a companion: an image to go on from comes from there
  bool kernel_clock = false;           // the program sees no vdso
  const char* mpi = nullptr;           // the folder of the lower half and of our MPI libraries
  const char* launcher_mpi = nullptr;  // path of the launcher's own MPI library; null: unknown
  const char* handed_in =
      nullptr;  // descriptors that are the lower half's, by a boot program before
  const char* contents = nullptr;  // patterns of files whose contents are in the image
  const char* channel = nullptr;   // the file of the memory that it shares with the companion
  const char* program = nullptr;   // the file that execve named; else the first word names it
  bool masked = false;
  uint64_t mask = 0;   // which signals the program blocks, where `masked`
  uint64_t first = 1;  // index of the program in argv
};

// What the kernel put on the stack of a new process.
struct Start {
  uint64_t count = 0;
  char** arguments = nullptr;
  char** environment = nullptr;
  uint64_t environment_count = 0;
  uint64_t* auxv = nullptr;
  uint64_t auxv_count = 0;  // pairs, with the last one

  uint64_t auxiliary(uint64_t key) const;
  const char* variable(const char* name) const;
};

Start read_start(uint64_t* stack);
void read_options(const Start& start, Options& options, Trouble& trouble);

}  // namespace backstay::image
