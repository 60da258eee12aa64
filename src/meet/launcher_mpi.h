// The MPI library that belongs to a launcher: beside it, in the same installation. Reads file names
// alone.
#pragma once

#include <filesystem>
#include <string>

#include "meet/place.h"

namespace backstay::meet {

// Of the installation from which this launcher comes: a path, "" where it has none of this kind.
std::string mpi_beside(const std::filesystem::path& launcher, Launcher kind);

// Of the launcher, or its helper on this host, that has started this process, perhaps through other
// programs. "": no ancestor is known as one; under Slurm there is none.
std::string mpi_of_launcher(Launcher kind);

}  // namespace backstay::meet
