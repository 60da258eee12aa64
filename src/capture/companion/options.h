// The companion's command line.
//
//   backstay-companion [--launcher openmpi|mpich|slurm] [--mpi FOLDER] [--contents PATTERN]...
//                      -- PROGRAM ARGUMENTS...
//   backstay-companion --check      prints why a program cannot be saved here, else nothing
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "meet/place.h"

namespace backstay::image {

struct Options {
  bool check = false;
  std::optional<meet::Launcher> launcher;  // none: the job has this rank alone
  std::string mpi;                         // the boot program's --mpi; "": none
  std::string contents;                    // the patterns, one a line; "": none
  std::vector<std::string> words;          // the program and its arguments
};

// nullopt: it is none.
std::optional<Options> read_options(const std::vector<std::string>& arguments);

}  // namespace backstay::image
