#include "bin/commands/mpi_checks.h"

#include <fmt/format.h>

#include <filesystem>
#include <sstream>

#include "base/program.h"
#include "bin/parts/print.h"
#include "bin/parts/spawn.h"
#include "bin/run/installed_mpis.h"
#include "bin/run/transparent.h"

namespace backstay::bin {
namespace {

namespace fs = std::filesystem;

constexpr double answer_within_s = 20;

// Folders where our libraries may lie: of an installation, or of the build tree.
std::string find_library(const std::string& name) {
  const fs::path here = program_folder();
  for (const fs::path& folder :
       {here / "../lib", here / "../lib64", here / "../lib/x86_64-linux-gnu",
        here / "../lib/aarch64-linux-gnu", here / "../capture/mpi", here / "../client", here}) {
    std::error_code failure;
    if (fs::exists(folder / name, failure))
      return fs::weakly_canonical(folder / name, failure).string();
  }
  return "";
}

Finding check_mpi(const std::string& title, const std::vector<std::string>& launchers,
                  const std::string& library, const std::string& package) {
  std::string launcher;
  for (const std::string& name : launchers)
    if (launcher.empty()) launcher = find_program(name);
  const std::string ours = find_library(library);
  if (launcher.empty())
    return {
        title, Health::note, "not found",
        ours.empty()
            ? fmt::format("needed only for its programs: apt install {}, then build again", package)
            : fmt::format("its launcher is missing: apt install {}", package),
        as_root("apt-get install --no-install-recommends " + package)};
  if (ours.empty())
    return {title, Health::note, launcher + ", but " + library + " was not built",
            fmt::format("needed only for its programs: apt install {}, then build again", package),
            as_root("apt-get install --no-install-recommends " + package)};
  return {title, Health::good, launcher + ", " + ours, ""};
}

// Drops the blanks and the word of MPICH's "MPICH Version:      5.0.2".
std::string one_line(const std::string& version) {
  std::istringstream words(version);
  std::string text;
  for (std::string word; words >> word;)
    if (word != "Version:") text += (text.empty() ? "" : " ") + word;
  return printable(text);
}

Finding check_library(const std::string& file, const std::string& folder) {
  if (folder.empty())
    return {"MPI", Health::note, file + ": its programs run unsaved under --transparent",
            "backstay-lower is missing: see scripts/install"};
  const auto version =
      run_and_read({folder + "/backstay-lower", "--version-of", file}, answer_within_s);
  if (!version.ok())
    return {
        "MPI", Health::note, file + " does not tell its version",
        fmt::format("{}/backstay-lower --version-of {} opens it; `ldd` names what it lacks, and "
                    "some MPIs need a setting of LD_LIBRARY_PATH",
                    folder, file)};
  return {
      "MPI", Health::good,
      fmt::format("{}, {}: its programs are saved under --transparent", one_line(*version), file),
      ""};
}

}  // namespace

std::vector<Finding> check_mpis() {
  std::vector<Finding> all{check_mpi("MPICH", {"mpiexec.mpich", "mpiexec.hydra"},
                                     "libbackstay_mpich.so", "mpich libmpich-dev"),
                           check_mpi("Open MPI", {"mpirun.openmpi", "orterun", "prterun"},
                                     "libbackstay_openmpi.so", "openmpi-bin libopenmpi-dev")};
  const auto companion = find_companion();
  const std::string folder = companion.ok() ? find_mpi_folder(*companion) : "";
  for (const std::string& file : installed_mpis()) all.push_back(check_library(file, folder));
  return all;
}

}  // namespace backstay::bin
