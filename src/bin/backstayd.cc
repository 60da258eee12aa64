// backstayd: the agent of a node. Started by a program's first rank, by `backstay run`, or by hand.
//
// Exit status: 0 ended as asked, 1 failed (the log says why), 2 wrong usage, 3 another agent
// listens on the socket already (no error for a caller that only needs one to run).
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <mutex>
#include <random>
#include <utility>

#include "agent/server/server.h"
#include "base/config.h"
#include "base/failpoint.h"
#include "base/fd.h"
#include "base/folders.h"
#include "base/limits.h"
#include "base/log.h"
#include "bin/agent_network.h"
#include "io/posix.h"
#include "io/ring.h"
#include "tier/dir.h"
#include "wire/socket.h"

namespace backstay {

namespace {

constexpr int exit_failed = 1;
constexpr int exit_usage = 2;
constexpr int exit_busy = 3;

struct Arguments {
  std::string config;
  std::string socket;
  bool foreground = false;
};

void mask_ends(int how) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  ::pthread_sigmask(how, &set, nullptr);
}

void block_signals() {
  mask_ends(SIG_BLOCK);
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGHUP, SIG_IGN);
}

// Logs once for each feature that the machine refuses: the agent works without it, slower.
void say_once(std::once_flag& said, const std::string& what) {
  std::call_once(said, [&] { spdlog::warn("{}", what); });
}

void say_ring(const io::RingKind& kind) {
  static std::once_flag no_uring;
  static std::once_flag not_pinned;
  if (!kind.io_uring) {
    say_once(no_uring, "io_uring is not used, threads write instead: " + kind.why_not);
  } else if (!kind.registered_buffers) {
    say_once(not_pinned,
             "the pool is not pinned for io_uring, writing costs more: " + kind.why_not);
  }
}

void say_direct(const Config& config, const std::string& dir, bool direct) {
  static std::once_flag refused;
  if (direct || !config.writer.direct) return;
  say_once(refused, "O_DIRECT is refused by the file system of " + dir +
                        ": versions go through the page cache");
}

// Of all tiers of this process; never destroyed.
const std::shared_ptr<tier::OpenReaders>& open_readers() {
  static const auto readers = std::make_shared<tier::OpenReaders>();
  return readers;
}

const std::shared_ptr<tier::SafeFolders>& safe_folders() {
  static const auto folders = std::make_shared<tier::SafeFolders>();
  return folders;
}

// The local tier of one job: a directory, written with the ring that this machine allows.
Result<std::unique_ptr<tier::Tier>> make_tier(const Config& config, const std::string& dir,
                                              const std::string& job, agent::Pool& pool,
                                              const agent::ReportDisk& report_disk) {
  const auto facts = std::make_shared<agent::DiskFacts>();  // the store's thread owns it
  auto make_ring = [&config, &pool, report_disk, facts,
                    dir]() -> Result<std::unique_ptr<io::Ring>> {
    // A ring that is made before the pool has been touched does not pin it: the kernel cannot join
    // pages that are pinned.
    const bool early = !pool.touched();
    io::RingOptions options{.depth = config.writer.depth, .allow_io_uring = config.writer.io_uring};
    if (!early) options.registered = {pool.memory()};
    io::RingKind kind;
    BACKSTAY_ASSIGN(auto ring, io::make_ring(options, &kind));
    if (early) {
      facts->io_uring = kind.io_uring;
      facts->why_not = kind.why_not;
      report_disk(*facts);
      ring->make_stopgap();
      return ring;
    }
    spdlog::info("ring for the local tier dir={} io_uring={} registered_buffers={} why_not=\"{}\"",
                 dir, kind.io_uring, kind.registered_buffers, kind.why_not);
    say_ring(kind);
    facts->io_uring = kind.io_uring;
    facts->registered_buffers = kind.registered_buffers;
    facts->why_not = kind.why_not;
    report_disk(*facts);
    return ring;
  };
  tier::DirOptions options;
  options.root = dir;
  options.recycle = true;
  options.readers = open_readers();
  options.folders = safe_folders();
  options.spare_folder = job + "/.spare";  // the job's lock guards it
  options.tell_direct = [&config, report_disk, facts, dir](bool used) {
    say_direct(config, dir, used);
    if (std::exchange(facts->direct, used) != used) report_disk(*facts);
  };
  return tier::open_dir_tier(tier::files_of(config.writer), make_ring, options);
}

// Different from that of every other agent, on any node.
std::string random_word() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

// A directory that versions are copied from or to; through buffers of the drain's own.
// `writer`: see tier/dir.h.
Result<std::unique_ptr<tier::Tier>> open_tier(const Config& config, const std::string& dir,
                                              const std::string& writer = "") {
  std::error_code failure;
  if (!std::filesystem::is_directory(dir, failure)) {
    return Error(Code::io, dir + " is no directory; make it, or mount its file system");
  }
  tier::DirOptions options;
  options.root = dir;
  options.writer = writer;
  options.readers = open_readers();
  options.folders = safe_folders();
  return tier::open_dir_tier(config.writer, options);
}

class ConfiguredWorld final : public agent::ServerWorld {
 public:
  explicit ConfiguredWorld(const Config& config) : config_(config) {}
  OpenedTier make_tier(const std::string& dir, const std::string& job, agent::Pool& pool,
                       const agent::ReportDisk& report) override {
    return backstay::make_tier(config_, dir, job, pool, report);
  }
  OpenedTier open_tier(const std::string& dir) override {
    return backstay::open_tier(config_, dir);
  }
  OpenedTier open_shared(const std::string& dir) override {
    return backstay::open_tier(config_, dir, writer_);
  }
  Result<agent::Network> make_network(const agent::MemberId& self,
                                      const std::string& secret) override {
    BACKSTAY_ASSIGN(auto transport, bin::listen(config_, self.text(), secret));
    return agent::Network{std::move(transport), config_.network.heartbeat_s};
  }

 private:
  const Config& config_;
  const std::string writer_ = random_word();
};

// From here on a signal ends the process, even if the disk hangs.
void unblock_signals() { mask_ends(SIG_UNBLOCK); }

// Gives up all that is not on the disk yet, as after a crash: unfinished versions are garbage.
[[noreturn]] void end_at_once(const agent::Server& server) {
  spdlog::warn(
      "agent ends at once; what is not on the disk yet is lost, what is not durable yet stays on "
      "the disk");
  server.remove_socket();
  ::_exit(0);
}

// The starter of the agent reads on stderr why it does not start, or that it listens; from now on
// there is the log.
void leave_stderr() {
  std::fputs("backstayd: listens\n", stderr);
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (null.valid()) ::dup2(null.get(), STDERR_FILENO);
}

Status serve(const Config& config, const std::string& socket, bool foreground) {
  BACKSTAY_ASSIGN(auto pool,
                  agent::Pool::create({config.pool.size_mib << 20, config.pool.buffer_mib << 20,
                                       config.pool.huge_pages}));
  agent::ServerOptions options;
  options.socket_path = socket;
  for (const auto& [key, value] : agent_settings(config)) options.settings.push_back({key, value});
  options.idle_exit_s = config.agent.idle_exit_s;
  if (config.agent.idle_exit_s > 0) options.job_idle_s = config.agent.idle_exit_s;
  options.staging_buffers = config.protect.buffers;
  options.metrics_address = config.metrics.address;
  options.metrics_port = static_cast<std::uint16_t>(config.metrics.port);
  options.copy_stop_s = config.durable.stop_timeout_s;
  options.paths = &io::posix_filesystem();
  ConfiguredWorld world(config);
  options.world = &world;
  failpoint("start.1");
  BACKSTAY_ASSIGN(auto server, agent::Server::create(std::move(options), std::move(pool)));
  spdlog::info("agent listens socket={} pool_mib={} buffer_mib={}", socket, config.pool.size_mib,
               config.pool.buffer_mib);
  failpoint("start.2");
  if (!foreground) leave_stderr();
  Status served = server->run();
  if (server->gave_up()) end_at_once(*server);
  unblock_signals();
  return served;
}

int report(const Error& error) {
  std::fprintf(stderr, "backstayd: %s\n", error.to_string().c_str());
  spdlog::error("{}", error.to_string());
  return error.code() == Code::busy ? exit_busy : exit_failed;
}

int run(const Arguments& arguments) {
  failpoint("start.0");
  auto file = find_config(arguments.config);
  if (!file.ok()) return report(file.error());
  auto config = load_config(*file);
  if (!config.ok()) return report(config.error());
  const std::string socket =
      wire::socket_path(arguments.socket.empty() ? config->agent.socket : arguments.socket);
  std::string log = config->agent.log_file;
  if (log.empty()) {
    (void)make_folders(parent_of(socket)).ok();  // listening reports it
    log = parent_of(socket) + "/agent.log";
  }
  if (const Status opened = open_log(arguments.foreground ? "-" : log, config->agent.log_level);
      !opened.ok()) {
    return report(opened.error());
  }
  stand_back(static_cast<int>(config->agent.nice));
  for (const std::string& left : lift_limits()) {
    spdlog::warn(
        "{}; an agent that is started elsewhere ('backstay agent start') has no such limit", left);
  }
  if (const Status served = serve(*config, socket, arguments.foreground); !served.ok())
    return report(served.error());
  return 0;
}

int start(int argc, char** argv) {
  Arguments arguments;
  CLI::App app(
      "Example: backstayd --foreground --socket /tmp/me/agent.sock\n\n"
      "backstayd: the agent of a node; keeps the versions of this user's programs.\n"
      "Programs start it by themselves; 'backstay agent' and 'backstay run' do too.",
      "backstayd");
  app.add_option("--config", arguments.config, "TOML file (default: as for programs)")
      ->type_name("FILE");
  app.add_option("--socket", arguments.socket, "where to listen (default: agent.socket)")
      ->type_name("PATH");
  app.add_flag("--foreground", arguments.foreground, "log to the terminal");
  app.set_version_flag("--version", std::string("backstayd ") + BACKSTAY_VERSION);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : exit_usage;
  }
  block_signals();
  return run(arguments);
}

}  // namespace

}  // namespace backstay

int main(int argc, char** argv) {
  try {
    return backstay::start(argc, argv);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "backstayd: internal error: %s\n", failure.what());
    return backstay::exit_failed;
  }
}
