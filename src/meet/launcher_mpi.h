// The MPI library that belongs to a launcher: beside it, in the same installation. Reads file names
// alone.
#pragma once

#include <filesystem>
#include <string>

#include "meet/place.h"

namespace backstay::meet {

// The path of the MPI library of this kind in the launcher's installation; "": it has none.
std::string mpi_beside(const std::filesystem::path& launcher, Launcher kind);

// The same for the launcher that has started this process, perhaps through other programs, or for
// its helper on this host. "": no ancestor is a launcher that is known, as under Slurm.
std::string mpi_of_launcher(Launcher kind);

}  // namespace backstay::meet
