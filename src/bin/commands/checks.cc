#include "bin/commands/checks.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/machine.h"
#include "base/program.h"
#include "bin/commands/measure.h"
#include "bin/parts/agent_link.h"
#include "bin/parts/print.h"
#include "bin/parts/spawn.h"
#include "bin/parts/stored.h"
#include "bin/run/transparent.h"
#include "capture/mount/mounts.h"
#include "client/launch.h"
#include "io/posix.h"
#include "io/ring.h"
#include "wire/socket.h"

namespace backstay::bin {
namespace {

namespace fs = std::filesystem;

std::uint64_t pool_bytes(const Config& config) { return config.pool.size_mib << 20; }

Finding check_storage(const Config& config) {
  const std::string& dir = config.storage.dir;
  const Status made = make_folders(dir);
  if (!made.ok() || ::access(dir.c_str(), W_OK | X_OK) != 0)
    return {
        "storage", Health::bad,
        fmt::format("{} cannot be written{}", dir, made.ok() ? "" : ": " + made.error().message()),
        "set storage.dir to a folder of yours on a local disk",
        "export BACKSTAY_DIR=/var/tmp/backstay-$(id -un)"};
  struct statvfs space {};
  if (::statvfs(dir.c_str(), &space) != 0)
    return {"storage", Health::note, dir + ": free space is unknown", ""};
  const std::uint64_t free = std::uint64_t{space.f_bavail} * space.f_frsize;
  const std::string found = fmt::format("{}, {} free", dir, bytes_text(free));
  // keep versions, the one being written and a spare file, of the size of the pool at least.
  const auto files = config.storage.keep + 2;
  if (free < files * pool_bytes(config))
    return {"storage", Health::note, found,
            fmt::format(
                "{} files of the pool's size (storage.keep versions, one being written, one spare) "
                "would not fit: free space, or set storage.dir",
                files)};
  return {"storage", Health::good, found, ""};
}

std::vector<Finding> check_durable(const Config& config) {
  const std::string& dir = config.durable.dir;
  if (dir.empty()) return {};
  struct stat durable {
  }, local{};
  const bool there = ::stat(dir.c_str(), &durable) == 0;
  if (!there || !S_ISDIR(durable.st_mode))
    return {{"durable", Health::bad, dir + " is no directory", "make it, or mount its file system",
             there ? "" : "mkdir -p '" + dir + "'"}};
  if (::access(dir.c_str(), W_OK | X_OK) != 0)
    return {{"durable", Health::bad, dir + " cannot be written",
             "set durable.dir to a directory of yours"}};
  if (::stat(config.storage.dir.c_str(), &local) == 0 && local.st_dev == durable.st_dev)
    return {{"durable", Health::note, dir + " is on the same file system as storage.dir",
             "what takes the node's disk takes both: set durable.dir to a directory on shared "
             "storage"}};
  return {{"durable", Health::good, dir, ""}};
}

Finding check_direct(const Config& config) {
  if (!config.writer.direct)
    return {"O_DIRECT", Health::note, "switched off",
            "set writer.direct = true unless the disk is slower with it"};
  const std::string path = config.storage.dir + "/.doctor-" + std::to_string(::getpid());
  const auto file = io::posix_filesystem().open(path, io::Open::create_direct);
  if (!file.ok()) return {"O_DIRECT", Health::bad, file.error().message(), "see \"storage\""};
  const bool direct = (*file)->direct();
  AlignedMemory block(4096);
  const Status wrote = (*file)->write_at(0, block.span());
  (void)io::posix_filesystem().remove(path).ok();
  if (!wrote.ok())
    return {"O_DIRECT", Health::bad, wrote.error().message(), "set writer.direct = false",
            "export BACKSTAY_WRITER_DIRECT=false"};
  if (direct) return {"O_DIRECT", Health::good, "used", ""};
  return {"O_DIRECT", Health::note, "this file system refuses it; writes go through the page cache",
          "put storage.dir on ext4, xfs or another local disk (not tmpfs)"};
}

Finding check_ring(const Config& config) {
  io::RingKind kind;
  const auto ring = io::make_ring({config.writer.depth, config.writer.io_uring, {}}, &kind);
  if (!ring.ok())
    return {"io_uring", Health::bad, ring.error().message(),
            "raise the limit of processes (ulimit -u)"};
  if (kind.io_uring) return {"io_uring", Health::good, "used", ""};
  return {"io_uring", Health::note,
          "threads are used instead: " + (kind.why_not.empty() ? "switched off" : kind.why_not),
          "allow it: sysctl kernel.io_uring_disabled=0, and in the container's seccomp profile",
          config.writer.io_uring ? as_root("sysctl kernel.io_uring_disabled=0")
                                 : "export BACKSTAY_WRITER_IO_URING=true"};
}

Finding check_memlock(const Config& config) {
  rlimit limit{};
  ::getrlimit(RLIMIT_MEMLOCK, &limit);
  if (limit.rlim_cur == RLIM_INFINITY || ::geteuid() == 0)
    return {"memlock", Health::good, "unlimited", ""};
  const std::string found = fmt::format("{} may be locked, the pool has {}",
                                        bytes_text(limit.rlim_cur), bytes_text(pool_bytes(config)));
  if (limit.rlim_cur >= pool_bytes(config)) return {"memlock", Health::good, found, ""};
  return {"memlock", Health::note, found,
          "the pool cannot be registered with io_uring: raise `ulimit -l` (memlock in "
          "/etc/security/limits.conf)",
          "echo \"$(id -un) - memlock unlimited\" | sudo tee -a /etc/security/limits.conf  "
          "# then log in again"};
}

Finding check_memory(const Config& config) {
  const MemoryLeft left = memory_left();
  const std::uint64_t available = left.bytes;
  const std::string found =
      fmt::format("{} of {} available, the pool takes {}", bytes_text(available), left.of,
                  bytes_text(pool_bytes(config)));
  if (available >= 2 * pool_bytes(config)) return {"memory", Health::good, found, ""};
  return {"memory", available - available / 10 >= pool_bytes(config) ? Health::note : Health::bad,
          found, "set pool.size_mib to less",
          fmt::format("export BACKSTAY_POOL_SIZE_MIB={}",
                      std::max<std::uint64_t>(available >> 21, 16))};
}

// The word in brackets of a file like "always [never] advise".
std::string chosen_in(const char* path) {
  std::ifstream file(path);
  for (std::string word; file >> word;)
    if (word.size() > 2 && word.front() == '[') return word.substr(1, word.size() - 2);
  return "";
}

Finding check_huge_pages(const Config& config) {
  if (!config.pool.huge_pages) return {"huge pages", Health::note, "switched off", ""};
  const std::string shared = chosen_in("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
  std::ifstream file("/proc/sys/vm/nr_hugepages");
  std::uint64_t reserved = 0;
  file >> reserved;
  if (shared == "always" || shared == "within_size" || shared == "advise")
    return {"huge pages", Health::good, "for shared memory: " + shared, ""};
  if (reserved > 0)
    return {"huge pages", Health::good, count_text(reserved, "page") + " reserved", ""};
  return {"huge pages", Health::note, "not for shared memory",
          "optional: echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled (root)",
          "echo advise | " + as_root("tee /sys/kernel/mm/transparent_hugepage/shmem_enabled")};
}

constexpr const char* own_socket = "export BACKSTAY_AGENT_SOCKET=/tmp/backstay-$(id -u)/agent.sock";

Finding check_socket(const Config& config) {
  const std::string path = wire::socket_path(config.agent.socket);
  if (path.size() > 107)
    return {"socket", Health::bad,
            fmt::format("{} has {} bytes, the system allows 107", path, path.size()),
            "set agent.socket to a shorter path", own_socket};
  const std::string folder = parent_of(path);
  const TrialFolders trial(folder);
  const char* advice = "set agent.socket to a path in a folder of yours";
  if (!trial.status().ok())
    return {"socket", Health::bad, trial.status().error().message(), advice, own_socket};
  struct stat info {};
  if (::stat(folder.c_str(), &info) != 0 || info.st_uid != ::geteuid())
    return {"socket", Health::bad, folder + " does not belong to you", advice, own_socket};
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return {"socket", Health::bad, "others may write to " + folder, "chmod 700 it",
            "chmod 700 '" + folder + "'"};
  return {"socket", Health::good, path, ""};
}

Finding check_agent(const Config& config) {
  auto agent = AgentLink::connect(config);
  if (agent.ok()) {
    const auto status = agent->ask(wire::Status{});
    if (status.ok()) {
      const std::string release = status->value("release", "?");
      const std::string found =
          fmt::format("release {} answers, pid {}", release, status->value("pid", 0));
      if (release != BACKSTAY_VERSION)
        return {"agent", Health::note, found,
                "of another release: `backstay agent stop`; the next program starts the right one",
                "backstay agent stop"};
      return {"agent", Health::good, found, ""};
    }
    return {
        "agent", Health::bad, status.error().message(),
        "end it and look into agent.log in the socket's folder; the next program starts another"};
  }
  const auto program = client::find_agent_program(config.agent.program);
  if (!program.ok())
    return {"agent", Health::bad, program.error().message(),
            "set agent.program, or put backstayd beside backstay"};
  if (agent.error().code() != Code::agent_lost)
    return {"agent", Health::bad, agent.error().message(), "set agent.socket to a path of yours"};
  return {"agent", Health::good, "none runs; programs start " + *program, ""};
}

Finding check_kernel() {
  utsname name{};
  ::uname(&name);
  return {"kernel", Health::good, fmt::format("{} {} {}", name.sysname, name.release, name.machine),
          ""};
}

// Tries it with a small program.
Finding check_transparent() {
  constexpr double patience_s = 20;
  const auto companion = find_companion();
  if (!companion.ok())
    return {"transparent", Health::note, companion.error().message(), "see scripts/install"};
  const auto said = run_and_read({*companion, "--check"}, patience_s);
  if (said.ok() && said->empty())
    return {"transparent", Health::good, "a program that was not changed can be saved", ""};
  const std::string why = said.ok() ? *said : said.error().message();
  return {"transparent", Health::note, "a trial program was not saved: " + printable(why),
          "`backstay run --transparent` will not save here (docs/guide/transparent.md)"};
}

std::vector<Finding> check_mounts() {
  std::vector<Finding> findings;
  for (const mount::Mount& one : mount::mounts()) {
    if (mount::is_dead(one.folder))
      findings.push_back(
          {"mount", Health::bad,
           one.folder + " is dead: the daemon that `backstay mount` started has ended",
           "backstay unmount " + one.folder + " removes it",
           "backstay unmount '" + one.folder + "'"});
    else
      findings.push_back(
          {"mount", Health::good, fmt::format("{} shows {}", one.folder, one.target), ""});
  }
  return findings;
}

}  // namespace

std::string as_root(const std::string& command) {
  return ::geteuid() == 0 ? command : "sudo " + command;
}

TrialFolders::~TrialFolders() {
  for (auto folder = made_.rbegin(); folder != made_.rend(); ++folder) ::rmdir(folder->c_str());
}

std::string_view health_name(Health health) {
  return health == Health::good ? "ok" : health == Health::note ? "note" : "fail";
}

std::vector<Finding> check_machine(const Config& config) {
  std::vector<Finding> findings{
      check_kernel(),        check_storage(config), check_direct(config),     check_ring(config),
      check_memlock(config), check_memory(config),  check_huge_pages(config), check_socket(config),
      check_agent(config),   check_transparent()};
  for (Finding& one : check_durable(config)) findings.push_back(std::move(one));
  for (Finding& one : check_mounts()) findings.push_back(std::move(one));
  return findings;
}

Finding check_disk_speed(const Config& config, unsigned mib) {
  Progress progress("disk speed", std::uint64_t{mib} << 21);
  const auto speed = measure_disk(config, config.storage.dir, std::uint64_t{mib} << 20, progress);
  if (!speed.ok()) return {"disk speed", Health::bad, speed.error().message(), "see \"storage\""};
  const std::string found = fmt::format("writes {}, reads {}", rate_text(speed->write_bytes_per_s),
                                        rate_text(speed->read_bytes_per_s));
  if (speed->write_bytes_per_s < 100e6)
    return {"disk speed", Health::note, found,
            "slow: is storage.dir on a network file system or a busy disk? A local disk is better"};
  return {"disk speed", Health::good, found, ""};
}

}  // namespace backstay::bin
