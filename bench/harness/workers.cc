#include "bench/harness/workers.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "bench/harness/samples.h"

namespace backstay::bench {

namespace {

constexpr int end_of_work = -1;
constexpr std::size_t area_bytes = 64 * 1024;

// A barrier would wait without end for a rank that died.
void on_child(int) {
  siginfo_t who{};
  // Agents and helpers are children too: they may end whenever they like, with status 0.
  if (waitid(P_ALL, 0, &who, WEXITED | WNOHANG | WNOWAIT) != 0 || who.si_pid == 0) return;
  if (who.si_code == CLD_EXITED && who.si_status == 0) return;
  static const char message[] = "a process of the benchmark died\n";
  if (write(STDERR_FILENO, message, sizeof message - 1) < 0) _exit(2);
  _exit(1);
}

}  // namespace

Report Report::failure(const std::string& why) {
  Report report;
  report.failed = true;
  std::snprintf(report.message, sizeof report.message, "%s", why.c_str());
  return report;
}

Report library_failure(const char* call) {
  return Report::failure(std::string(call) + ": " + backstay_error_message());
}

Report timed_checkpoint() {
  Report report;
  report.start_ns = now_ns();
  if (backstay_checkpoint() != BACKSTAY_OK) return library_failure("checkpoint");
  report.end_ns = now_ns();
  if (backstay_wait(backstay_version(), BACKSTAY_LOCAL, -1) != BACKSTAY_OK) {
    return library_failure("wait");
  }
  report.later_ns = now_ns();
  return report;
}

class SharedGroup {
 public:
  SharedBarrier barrier;
  std::int64_t values[workers_max];
  std::byte area[area_bytes];
};

struct Workers::Shared {
  SharedBarrier start;
  SharedBarrier end;
  int command = 0;
  std::uint64_t argument = 0;
  Report reports[workers_max];
  SharedGroup group;
};

namespace {

struct Member {
  SharedGroup* group;
  int rank;
  int ranks;
};

int broadcast(void* context, void* data, std::size_t bytes, int root) {
  const auto& me = *static_cast<Member*>(context);
  auto* at = static_cast<std::byte*>(data);
  while (bytes > 0) {
    const std::size_t piece = std::min(bytes, area_bytes);
    if (me.rank == root) std::memcpy(me.group->area, at, piece);
    me.group->barrier.wait();
    if (me.rank != root) std::memcpy(at, me.group->area, piece);
    me.group->barrier.wait();
    at += piece;
    bytes -= piece;
  }
  return 0;
}

int minimum(void* context, std::int64_t* value) {
  const auto& me = *static_cast<Member*>(context);
  me.group->values[me.rank] = *value;
  me.group->barrier.wait();
  const std::int64_t least = *std::min_element(me.group->values, me.group->values + me.ranks);
  me.group->barrier.wait();
  *value = least;
  return 0;
}

backstay_group make_group(Member& member) {
  backstay_group group{};
  group.context = &member;
  group.rank = group.local_rank = member.rank;
  group.ranks = group.local_ranks = member.ranks;
  group.node = 0;
  group.nodes = 1;
  group.broadcast = broadcast;
  group.minimum = minimum;
  return group;
}

}  // namespace

Workers::Workers(int ranks, const Build& build)
    : ranks_(ranks), shared_(make_shared_object<Shared>()) {
  if (ranks < 1 || ranks > workers_max) die("1 to 1024 ranks");
  shared_->start.init(static_cast<unsigned>(ranks) + 1);
  shared_->end.init(static_cast<unsigned>(ranks) + 1);
  shared_->group.barrier.init(static_cast<unsigned>(ranks));
  signal(SIGCHLD, on_child);
  std::fflush(nullptr);
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid < 0) die("fork failed");
    if (pid == 0) {
      signal(SIGCHLD, SIG_DFL);
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(1);
      serve(rank, build);
      _exit(0);
    }
    pids_.push_back(pid);
  }
}

void Workers::serve(int rank, const Build& build) {
  Member member{&shared_->group, rank, ranks_};
  const Serve serve = build(make_group(member));
  for (;;) {
    shared_->start.wait();
    if (shared_->command == end_of_work) return;
    shared_->reports[rank] = serve(shared_->command, shared_->argument);
    shared_->end.wait();
  }
}

Outcome Workers::command(int command, std::uint64_t argument) {
  shared_->command = command;
  shared_->argument = argument;
  shared_->start.wait();
  shared_->end.wait();
  Outcome outcome;
  outcome.first_start_ns = shared_->reports[0].start_ns;
  for (int rank = 0; rank < ranks_; ++rank) {
    const Report& report = shared_->reports[rank];
    if (report.failed) die("rank " + std::to_string(rank) + ": " + report.message);
    outcome.slowest_s =
        std::max(outcome.slowest_s, static_cast<double>(report.end_ns - report.start_ns) / 1e9);
    outcome.first_start_ns = std::min(outcome.first_start_ns, report.start_ns);
    outcome.last_end_ns = std::max(outcome.last_end_ns, report.end_ns);
    outcome.last_later_ns = std::max(outcome.last_later_ns, report.later_ns);
    outcome.value_sum += report.value;
  }
  outcome.span_s = static_cast<double>(outcome.last_end_ns - outcome.first_start_ns) / 1e9;
  return outcome;
}

Workers::~Workers() {
  shared_->command = end_of_work;
  shared_->start.wait();
  for (const pid_t pid : pids_) waitpid(pid, nullptr, 0);
  munmap(shared_, sizeof(Shared));
}

}  // namespace backstay::bench
