#include "meet/launcher_mpi.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <string_view>

namespace backstay::meet {
namespace {

namespace fs = std::filesystem;

constexpr int ancestors_max = 16;
constexpr std::array folders{"lib", "lib64", "lib/x86_64-linux-gnu", "lib/release"};

struct Kind {
  Launcher launcher;
  std::array<std::string_view, 2> libraries;
  std::array<std::string_view, 3> programs;  // how names of its programs begin
};
constexpr std::array kinds{
    Kind{Launcher::openmpi, {"libmpi.so.40", ""}, {"orte", "prte", "mpirun"}},
    Kind{Launcher::mpich, {"libmpich.so.12", "libmpi.so.12"}, {"hydra", "mpiexec", "pmi_proxy"}},
    Kind{Launcher::slurm, {}, {}}};

const Kind& kind_of(Launcher launcher) {
  for (const Kind& one : kinds)
    if (one.launcher == launcher) return one;
  return kinds.back();
}

bool is_of(const Kind& kind, const std::string& program) {
  for (const std::string_view beginning : kind.programs)
    if (!beginning.empty() && program.starts_with(beginning)) return true;
  return false;
}

pid_t parent_of(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/status", process));
  for (std::string word; file >> word;)
    if (pid_t parent = 0; word == "PPid:" && file >> parent) return parent;
  return 0;
}

}  // namespace

std::string mpi_beside(const fs::path& launcher, Launcher kind) {
  std::error_code ignored;
  const fs::path prefix = fs::weakly_canonical(launcher, ignored).parent_path().parent_path();
  for (const std::string_view library : kind_of(kind).libraries) {
    for (const char* folder : folders) {
      const fs::path file = prefix / folder / library;
      if (!library.empty() && fs::is_regular_file(file, ignored)) return file.string();
    }
  }
  return "";
}

std::string mpi_of_launcher(Launcher kind) {
  pid_t process = ::getppid();
  for (int i = 0; i < ancestors_max && process > 1; ++i, process = parent_of(process)) {
    std::error_code unreadable;
    const fs::path program = fs::read_symlink(fmt::format("/proc/{}/exe", process), unreadable);
    if (!unreadable && is_of(kind_of(kind), program.filename().string()))
      return mpi_beside(program, kind);
  }
  return "";
}

}  // namespace backstay::meet
