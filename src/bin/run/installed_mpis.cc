#include "bin/run/installed_mpis.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "base/program.h"
#include "meet/launcher_mpi.h"

namespace backstay::bin {

std::vector<std::string> installed_mpis() {
  constexpr const char* launchers[] = {"mpirun", "mpiexec", "mpirun.openmpi", "mpiexec.mpich",
                                       "mpiexec.hydra"};
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  std::vector<std::string> found;
  for (std::string folder; std::getline(folders, folder, ':');) {
    for (const char* launcher : launchers) {
      if (!is_program(folder + "/" + launcher)) continue;
      for (const auto kind : {meet::Launcher::openmpi, meet::Launcher::mpich}) {
        const std::string library = meet::mpi_beside(folder + "/" + launcher, kind);
        if (!library.empty() && std::ranges::find(found, library) == found.end())
          found.push_back(library);
      }
    }
  }
  return found;
}

}  // namespace backstay::bin
