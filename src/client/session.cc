#include "client/session.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <random>
#include <utility>

#include "base/clock.h"
#include "base/folders.h"
#include "base/machine.h"
#include "base/tell.h"
#include "client/capture.h"
#include "client/device_memory.h"
#include "client/neighbours.h"
#include "client/node_settings.h"
#include "client/other_settings.h"
#include "client/signals.h"
#include "client/snapshot.h"
#include "client/targets.h"

namespace backstay::client {

// --- starting ------------------------------------------------------------------------------------

class Session::Requests final : public RequestSource {
 public:
  explicit Requests(Session& session) : session_(session) {}

  // An agent that is gone has no news; its last values still count.
  std::uint32_t requests() override {
    if (session_.agent_ != nullptr) last_ = session_.agent_->requests();
    return last_;
  }
  bool stop_requested() override {
    return session_.agent_ != nullptr && session_.agent_->stop_requested();
  }
  bool checkpoint_signalled() override { return client::checkpoint_signalled(); }
  bool stop_signalled() override { return client::stop_signalled(); }
  void clear_checkpoint_signal() override { client::clear_checkpoint_signal(); }
  bool forward(bool stop) override {
    return session_.agent_ != nullptr &&
           session_.agent_->send(wire::Request{session_.config_.job.name, stop}).ok();
  }

 private:
  Session& session_;
  std::uint32_t last_ = 0;
};

namespace {

constexpr const char* a_new_one_is_started =
    "a new one is started; what had not reached a disk yet is lost (agent.log beside the socket "
    "may say why it ended)";
constexpr const char* the_next_call_tries =
    "the program may go on; the next checkpoint connects again, and starts a new agent where none "
    "is left; agent.log "
    "beside the socket may say why";

std::uint64_t inode_of(int memory) {
  struct stat status {};
  BACKSTAY_CHECK(::fstat(memory, &status) == 0);
  return status.st_ino;
}

}  // namespace

Result<std::unique_ptr<Session>> Session::start(const Group& group, const char* config,
                                                Copier copier) {
  BACKSTAY_ASSIGN(JobStart job, begin_job(group, config));
  if (uses_agents(job.config)) return start(group, std::move(job), copier);
  return Error(Code::unsupported,
               fmt::format("strategy.name = \"{}\" is for programs that call Backstay; whole "
                           "processes are saved by agents: leave it out (BACKSTAY_STRATEGY_NAME)",
                           job.config.strategy.name));
}

Result<std::unique_ptr<Session>> Session::start(const Group& group, JobStart job, Copier copier) {
  std::unique_ptr<Session> session(new Session(group, std::move(job), copier));
  BACKSTAY_TRY(session->introduce());
  BACKSTAY_TRY(
      check_node_settings(session->group_, session->config_, session->address_.socket_path));
  RunMark& mark = session->mark_.emplace(session->config_.storage.dir, session->config_.job.name,
                                         session->hello_.run);
  BACKSTAY_TRY(session->connect_at_start());  // an agent says more of another run that it knows
  BACKSTAY_TRY(group.agree(mark.refuse_other_run()));
  mark.set();
  session->requests_ = std::make_unique<Requests>(*session);
  session->due_ = std::make_unique<Due>(session->config_.checkpoint, session->group_,
                                        system_clock(), *session->requests_);
  return session;
}

Session::Session(const Group& group, JobStart job, Copier copier)
    : group_(group),
      copier_(copier),
      config_(std::move(job.config)),
      origin_(std::move(job.origin)),
      address_(agent_address(config_, job.file)),
      files_(config_.storage.dir + "/" + config_.job.name + "/files") {
  hello_.run = job.run;
}

Session::~Session() {
  if (pool_pinned_ && agent_ != nullptr) DeviceMemory::find()->unpin(agent_->pool().home);
}

Status Session::introduce() {
  hello_.release = BACKSTAY_VERSION;
  hello_.job = config_.job.name;
  hello_.rank = static_cast<Rank>(group_.rank());
  hello_.ranks = static_cast<std::uint32_t>(group_.ranks());
  hello_.local_rank = static_cast<std::uint32_t>(group_.local_rank());
  hello_.local_ranks = static_cast<std::uint32_t>(group_.local_ranks());
  hello_.node = static_cast<NodeId>(group_.node());
  hello_.nodes = static_cast<std::uint32_t>(group_.nodes());
  hello_.pid = ::getpid();
  hello_.dir = config_.storage.dir;
  hello_.keep = config_.storage.keep;
  hello_.durable_dir = config_.durable.dir;
  hello_.durable_every = config_.durable.every;
  hello_.durable_keep = config_.durable.keep;
  hello_.durable_bytes_per_s = config_.durable.rate_limit_mib_s << 20;
  hello_.drain_nodes_max = config_.drain.nodes_max;
  hello_.replicas = config_.protect.replicas;
  hello_.parity = config_.protect.parity;
  hello_.protect_bytes_per_s = config_.protect.rate_limit_mib_s << 20;
  BACKSTAY_ASSIGN(hello_.secret, agree_on_secret(group_));
  return {};
}

// The cause that ended the first agent (the end of all processes of an earlier job step, a moment
// without memory) seldom ends a second one. A wait that used up its time is not repeated.
Status Session::connect_at_start() {
  const std::uint64_t deadline = deadline_in(address_.start_timeout_s);
  const Status first = connect();
  if (first.ok() || first.error().code() != Code::agent_lost) return first;
  const bool late = system_clock().monotonic_ns() >= deadline;
  BACKSTAY_ASSIGN(const std::int64_t any_died, group_.maximum(agent_died_ ? 1 : 0));
  BACKSTAY_ASSIGN(const std::int64_t any_late, group_.maximum(late ? 1 : 0));
  if (any_died == 0 || any_late != 0) return first;
  report_lost(first.error(), "another agent is tried");
  agent_silent_ = false;
  const Status second = connect();
  if (second.ok() || second.error().code() != Code::agent_lost) return second;
  return Error(
      Code::agent_lost,
      fmt::format("{}; it was the second agent that was tried. Its log (agent.log_file, by default "
                  "{}/agent.log) may say why, and 'backstay doctor' looks for causes on a node: "
                  "limits of memory, folders, a socket of another user",
                  second.error().message(), parent_of(address_.socket_path)),
      second.error().sys_errno());
}

Status Session::connect() {
  if (pool_pinned_ && agent_ != nullptr) DeviceMemory::find()->unpin(agent_->pool().home);
  pool_pinned_ = false;
  agent_silent_ = agent_silent_ || (agent_ != nullptr && agent_->given_up());
  agent_.reset();
  auto attached = attach(group_, address_, hello_, agent_silent_, agent_died_);
  agent_silent_ = !attached.ok() && attached.error().code() == Code::agent_lost;
  BACKSTAY_ASSIGN(agent_, std::move(attached));
  const Status introduced = introduce_agents(group_, *agent_, config_);
  agent_died_ = !introduced.ok() && introduced.error().code() == Code::agent_lost;
  BACKSTAY_TRY(introduced);
  const VersionNumber seen = std::max(newest_used_, agent_->welcomed().newest);
  BACKSTAY_ASSIGN(const std::int64_t newest, group_.maximum(static_cast<std::int64_t>(seen)));
  newest_used_ = static_cast<VersionNumber>(newest);
  loss_reported_ = false;
  ++connected_;
  if (copier_ == Copier::this_process) touch(agent_->pool().home);
  pin_pool();
  tell_other_settings();
  const std::uint64_t before = std::exchange(pool_inode_, inode_of(agent_->pool().descriptor));
  if (due_ != nullptr && pool_inode_ != before) due_->agent_changed();
  return {};
}

// Once a node.
void Session::tell_other_settings() {
  if (settings_told_ || group_.local_rank() != 0) return;
  const bool several = group_.nodes() > 1;
  const std::string text = other_settings(config_, agent_->welcomed().settings, several);
  settings_told_ = !text.empty();
  if (text.empty()) return;
  tell_user(several ? fmt::format("node {} ({}): {}", group_.node(), host_name(), text) : text);
}

void Session::pin_pool() {
  const DeviceMemory* driver = has_device_regions_ ? DeviceMemory::find() : nullptr;
  if (driver == nullptr || pool_pinned_ || agent_ == nullptr) return;
  driver->pin(agent_->pool().home);
  pool_pinned_ = true;
}

// --- collective calls ----------------------------------------------------------------------------

Status Session::protect(const char* name, void* data, const backstay_array* array,
                        backstay_type type) {
  BACKSTAY_ASSIGN(ProtectedRegion region, describe_region(name, data, array, type));
  if (streams_.has(name)) {
    return Error(Code::duplicate, fmt::format("a stream '{}' was opened since the last checkpoint: "
                                              "give the region another name",
                                              name));
  }
  has_device_regions_ = has_device_regions_ || region.on_device;
  BACKSTAY_TRY(regions_.add(std::move(region)));
  pin_pool();
  return {};
}

Status Session::ready(const Status& mine) {
  const bool lost = agent_ == nullptr || !agent_->usable();
  // One exchange for both questions: a failure of any rank, else whether any must connect again.
  const std::int64_t code = mine.ok() ? 0 : static_cast<std::int64_t>(mine.error().code());
  BACKSTAY_ASSIGN(const std::int64_t worst, group_.maximum(2 * code + (lost ? 1 : 0)));
  if (worst >= 2) return adopt(group_.agree(mine));
  if (worst == 1) {  // since the last call; reported already if that call noticed it
    report_lost(Error(Code::agent_lost, "an agent of this job is gone"), a_new_one_is_started);
    streams_.agent_is_lost();
    BACKSTAY_TRY(adopt(connect()));
    return adopt(group_.agree(streams_.ready()));
  }
  return {};
}

// Collective. Of a version that begins with streams the number is used up on all nodes.
Status Session::drop_streams() {
  const bool begun = streams_.begun();
  streams_.give_up();
  BACKSTAY_ASSIGN(const std::int64_t any, group_.maximum(begun ? 1 : 0));
  if (any != 0) ++newest_used_;
  return {};
}

// The end of every collective call: a lost agent is reported, once.
Status Session::adopt(const Status& outcome) {
  if (outcome.ok() || outcome.error().code() != Code::agent_lost) return outcome;
  const Error& lost = outcome.error();
  report_lost(lost, the_next_call_tries);
  return Error(Code::agent_lost, lost.message() + "; " + the_next_call_tries, lost.sys_errno());
}

void Session::report_lost(const Error& error, const char* what_now) {
  if (loss_reported_ || group_.rank() != 0) return;
  loss_reported_ = true;
  tell_user(error.message() + "; " + what_now);
}

Status Session::checkpoint() { return count(take_version()); }

Status Session::take_version() {
  auto snapshot = streams_.ready().ok() ? Snapshot::of(regions_, files_, origin_.notes(), streams_)
                                        : Result<Snapshot>(streams_.ready().error());
  const Status all_ready = ready(snapshot.ok() ? Status() : Status(snapshot.error()));
  if (!all_ready.ok()) {
    (void)drop_streams();  // what failed before is the reason that counts
    return connect_for_streams(all_ready);
  }
  if (!snapshot.ok()) return snapshot.error();  // cannot fail: ready() checked it
  due_->checkpoint_begins();  // starting an agent is not part of the measured cost
  const Status taken = take_version_of(*snapshot);
  streams_.taken();  // or the agent knows that they were given up
  return connect_for_streams(taken);
}

// Collective. The next call of the program may be one for a stream, which cannot connect: that
// takes all ranks. The outcome is the same on all of them.
Status Session::connect_for_streams(const Status& outcome) {
  if (outcome.ok() || outcome.error().code() != Code::agent_lost) return outcome;
  const bool lost = agent_ == nullptr || !agent_->usable();
  const auto any = group_.maximum(lost && streams_.were_used() ? 1 : 0);
  if (any.ok() && *any != 0) (void)connect();  // the next collective call says why it cannot
  return outcome;
}

Status Session::take_version_of(ObjectSource& source) {
  VersionNumber version = 0;
  std::string warning;
  Status mine = next_version(version);
  if (mine.ok()) mine = streams_.hand_over();
  if (mine.ok()) mine = capture(*agent_, source, version, warning);
  BACKSTAY_TRY(adopt(group_.agree(mine)));
  if (!warning.empty() && group_.local_rank() == 0) tell_user(warning);  // once a node
  version_ = version;
  return {};
}

// The program sees a result only after all ranks agree, so the next agent simply delivers a version
// again, whole, if the agent died in the middle.
Result<VersionNumber> Session::restart() {
  return restart_by([this](bool& touched) { return bring_back_regions(touched); });
}

Result<VersionNumber> Session::restart_by(const BringBack& bring_back) {
  BACKSTAY_TRY(drop_streams());  // the program goes back to a state before them
  BACKSTAY_TRY(ready(Status()));
  bool touched = false;
  auto version = bring_back(touched);
  if (!version.ok() && version.error().code() == Code::agent_lost) {
    report_lost(version.error(), "restart tries once more");
    const Status again = ready(Status());
    version = again.ok() ? bring_back(touched) : Result<VersionNumber>(again.error());
  }
  if (!version.ok() && touched) {
    return of_undefined_regions(version.error());
  }
  if (!version.ok() && version.error().code() == Code::not_found) {
    // An agent knows of a version, so a part that no node has any more was lost with other nodes.
    version = Error(Code::lost, version.error().message());
  }
  if (!version.ok()) tell_refusal(version.error());
  if (!version.ok()) return version;  // not adopt(): a rank that went on would start afresh
  tell_finished(*version);
  version_ = *version;
  newest_used_ = std::max(newest_used_, *version);
  due_->restarted();
  return version;
}

Status Session::finish(bool silently) {
  Status outcome;
  if (config_.checkpoint.wait_at_end && version_ != 0) {
    outcome = group_.agree(wait(version_, Level::local, -1));
  }
  streams_.give_up();
  if (agent_ != nullptr) silently ? agent_->leave_silently() : agent_->end();
  return outcome;
}

}  // namespace backstay::client
