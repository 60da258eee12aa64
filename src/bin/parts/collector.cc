#include "bin/parts/collector.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

#include "base/program.h"
#include "bin/parts/print.h"
#include "capture/collector/link.h"
#include "client/start.h"

namespace backstay::bin {
namespace {

Result<std::string> find_collector() {
  const std::string path = find_own_program("backstay-collector", "/../capture/collector/");
  if (!path.empty()) return path;
  return Error(Code::not_found, "backstay-collector is missing beside " + program_folder() +
                                    ": Backstay is not installed as a whole");
}

void set_variable(const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); }

std::string socket_of(const Config& config, const std::string& job) {
  return files::collector_socket(client::agent_address(config, ""), job);
}

}  // namespace

Status set_up_collector(const Config& config, const std::string& file, const std::string& job) {
  ::unsetenv("BACKSTAY_COLLECTOR");
  if (config.capture.close == "home") return {};
  BACKSTAY_ASSIGN(const std::string program, find_collector());
  const std::string socket = files::collector_socket(client::agent_address(config, file), job);
  BACKSTAY_TRY(files::ensure_collector(socket, program, remark));
  set_variable("BACKSTAY_COLLECTOR", socket);
  set_variable("BACKSTAY_COLLECTOR_PROGRAM", program);
  set_variable("BACKSTAY_CAPTURE_CLOSE", config.capture.close);
  set_variable("BACKSTAY_CAPTURE_FSYNC", config.capture.fsync);
  set_variable("BACKSTAY_CAPTURE_ROOT", fmt::format("{}", ::getpid()));
  return {};
}

Status settle_captured_files(const Config& config, const std::string& job,
                             const std::function<void(const std::string&)>& tell,
                             const std::function<bool()>& go_on) {
  if (config.capture.close == "home") return {};
  const std::string socket = socket_of(config, job);
  if (!files::may_have_files(socket)) return {};
  BACKSTAY_ASSIGN(const std::string program, find_collector());
  return files::settle_all(socket, program, tell, go_on);
}

files::Fates take_fates(const Config& config, const std::string& job) {
  if (config.capture.close == "home") return {};
  auto fates = files::take_fates(socket_of(config, job));
  return fates.ok() ? std::move(fates).value() : files::Fates();
}

}  // namespace backstay::bin
