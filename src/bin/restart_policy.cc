#include "bin/restart_policy.h"

#include <algorithm>
#include <filesystem>

#include "base/program.h"
#include "bin/launcher_line.h"

namespace backstay::bin {
namespace {

constexpr unsigned crash_loop_tries = 2;

bool is_launcher(const std::string& name) {
  constexpr std::string_view launchers[] = {"mpirun", "mpiexec", "srun", "orterun", "prterun"};
  return is_wrapper(name) ||
         std::any_of(std::begin(launchers), std::end(launchers), [&](std::string_view launcher) {
           return name == launcher ||
                  name.starts_with(std::string(launcher) + ".");  // mpirun.openmpi
         });
}

std::string acceptable(std::string name) {
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '_' && c != '-') c = '-';
  while (!name.empty() && (name.front() == '.' || name.front() == '-')) name.erase(0, 1);
  return name.substr(0, 100);
}

}  // namespace

RestartPolicy::Decision RestartPolicy::after_failure(VersionNumber newest, bool host_lost) {
  // The first failure says nothing yet about restarts.
  if (restarts_ > 0) without_progress_ = newest > newest_ || host_lost ? 0 : without_progress_ + 1;
  newest_ = newest;
  if (without_progress_ >= crash_loop_tries) return Decision::crash_loop;
  if (restarts_ == retries_max_) return Decision::no_retries_left;
  ++restarts_;
  return Decision::restart;
}

std::string job_name_of(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    const std::string name = std::filesystem::path(word).filename().string();
    if (word.empty() || word.front() == '-' || is_launcher(name)) continue;
    // Values of the launcher's options are numbers and words, not programs.
    if (word.find_first_not_of("0123456789") == std::string::npos) continue;
    if (!find_program(word).empty()) return acceptable(name);
  }
  return "";
}

}  // namespace backstay::bin
