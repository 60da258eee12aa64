// backstay-mount FOLDER TARGET RECORD JOB: the daemon of one mount. Started by `backstay mount`,
// which has looked at the folders; settings come from the environment:
//
//   BACKSTAY_COLLECTOR, _PROGRAM   the job's collector; without it files go to their places
//   directly BACKSTAY_CAPTURE_CLOSE         captured or local BACKSTAY_CAPTURE_FSYNC         local
//   or home BACKSTAY_CAPTURE_POOL_KIB      smaller files go to their places directly
//   BACKSTAY_CAPTURE_MIB           memory that files may fill
//   BACKSTAY_MOUNT_PATTERNS        which files are captured, relative to FOLDER, one a line
//   BACKSTAY_MOUNT_WRITE_THROUGH   each write comes to this process at once (to measure)
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/config.h"
#include "base/folders.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/tell.h"
#include "capture/collector/link.h"
#include "capture/mount/record.h"
#include "capture/mount/session.h"

namespace backstay::mount {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::uint64_t number(const char* name, std::uint64_t otherwise) {
  const std::string value = variable(name);
  return value.empty() ? otherwise : std::strtoull(value.c_str(), nullptr, 10);
}

// The process that started this one reads stderr up to its end.
void say_that_it_answers() {
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int one : {0, 1, 2}) ::dup2(null, one);
  if (null > 2) ::close(null);
}

SessionSettings settings_for(const char* folder, const char* target) {
  SessionSettings settings;
  settings.folder = folder;
  settings.target = target;
  settings.patterns = variable("BACKSTAY_MOUNT_PATTERNS");
  settings.write_back = variable("BACKSTAY_MOUNT_WRITE_THROUGH").empty();
  settings.keeper.collector = variable("BACKSTAY_COLLECTOR");
  settings.keeper.collector_program = variable("BACKSTAY_COLLECTOR_PROGRAM");
  settings.keeper.pool_bytes_min = number("BACKSTAY_CAPTURE_POOL_KIB", 256) << 10;
  if (variable("BACKSTAY_CAPTURE_CLOSE") == "local") settings.keeper.until = files::Until::local;
  settings.keeper.sync_local = variable("BACKSTAY_CAPTURE_FSYNC") != "home";
  settings.keeper.memory_bytes_max = number("BACKSTAY_CAPTURE_MIB", memory_left().bytes / 4 >> 20)
                                     << 20;
  return settings;
}

Status run(char** words) {
  const std::string record = words[3];
  BACKSTAY_ASSIGN(const std::string file, find_config(""));
  BACKSTAY_ASSIGN(const Config config, load_config(file));
  BACKSTAY_ASSIGN(const Fd lock, write_record(record, {::getpid(), words[4], words[1], words[2],
                                                       config.storage.dir}));
  BACKSTAY_TRY(open_log(parent_of(record) + "/mount.log", config.agent.log_level));
  const SessionSettings settings = settings_for(words[1], words[2]);
  // Files of a mount before this one come home before their paths are read.
  if (!settings.keeper.collector.empty()) {
    const auto note = [](const std::string& line) { spdlog::warn("{}", line); };
    BACKSTAY_TRY(files::ensure_collector(settings.keeper.collector,
                                         settings.keeper.collector_program, note));
    (void)files::settle_all(settings.keeper.collector, settings.keeper.collector_program, note,
                            [] { return true; });
  }
  const Status served = serve(settings, say_that_it_answers);
  (void)::unlink(record.c_str());
  return served;
}

}  // namespace
}  // namespace backstay::mount

int main(int count, char** words) {
  if (count != 5) {
    backstay::tell_user("backstay-mount is started by `backstay mount`");
    return 2;
  }
  ::signal(SIGPIPE, SIG_IGN);
  ::umask(0);  // the kernel has applied the program's
  // One descriptor for each file that the kernel knows, more for those that are open; and files as
  // large as the program that writes them may make them.
  (void)backstay::lift_limits();
  const backstay::Status done = backstay::mount::run(words);
  if (!done.ok()) std::fprintf(stderr, "%s\n", done.error().message().c_str());
  return done.ok() ? 0 : 1;
}
