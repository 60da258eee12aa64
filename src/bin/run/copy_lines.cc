#include "bin/run/copy_lines.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "bin/parts/spawn.h"
#include "bin/run/keeper_of.h"
#include "bin/run/remote_shell.h"

namespace backstay::bin {
namespace {

using Json = nlohmann::ordered_json;

constexpr double tidy_s = 10;  // for keepers to tidy up
constexpr int tidy_step_ms = 500;
constexpr double copies_look_s = 1;
constexpr std::size_t words_bytes_max = 1 << 20;

// The host of the files and the one of the copies.
std::string hosts_of(const std::string& owner, const std::string& keeper) {
  return owner + " " + keeper;
}

std::uint64_t monotonic_ns() { return system_clock().monotonic_ns(); }

}  // namespace

bool CopyLines::is_wanted() const {
  const bool configured = config_.protect.replicas > 0 || !config_.protect.parity.empty();
  return configured && config_.durable.dir.empty() && hosts_.line;
}

void CopyLines::lay(const RunHosts& hosts) {
  cut();
  hosts_ = hosts.reach();
  if (!is_wanted()) return;
  for (const std::string& owner : hosts_.in_use) {
    if (keeper_of(owner, hosts_.all, 0).empty()) continue;
    start(pairs_.emplace_back(Pair{.owner = owner}));
  }
}

void CopyLines::start(Pair& pair) {
  pair.keeper = keeper_of(pair.owner, hosts_.all, pair.tried++);
  ++pair.in_vain;
  pair.waiting = 0;
  pair.partial.clear();
  pair.last_words.clear();
  if (const Status connected = connect(pair); !connected.ok()) {
    pair.last_words = connected.error().message();
    ended(pair);
  }
}

Status CopyLines::connect(Pair& pair) {
  std::array<int, 2> line{-1, -1}, words{-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, line.data()) != 0)
    return errno_error("make a pair of sockets", errno);
  const Fd giver(line[0]), keeper(line[1]);
  if (::pipe2(words.data(), O_CLOEXEC) != 0) return errno_error("make a pipe", errno);
  pair.words.reset(words[0]);
  const Fd errors(words[1]);
  ::fcntl(pair.words.get(), F_SETFL, O_NONBLOCK);
  const auto begin = [&](const std::string& host, const Words& arguments,
                         const std::array<int, 3>& standard) -> Status {
    BACKSTAY_ASSIGN(const pid_t pid, spawn(hosts_.line(host, arguments), standard,
                                           /*own_group=*/true));
    pair.pids.push_back(pid);
    pair.processes.emplace_back(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    return {};
  };
  BACKSTAY_TRY(
      begin(pair.owner, {"agent", "give-copies", "--job", job_}, {giver.get(), giver.get(), -1}));
  return begin(pair.keeper, {"agent", "keep-copies", "--host", pair.owner},
               {keeper.get(), keeper.get(), errors.get()});
}

std::vector<pollfd> CopyLines::fds() const {
  std::vector<pollfd> all;
  for (const Pair& pair : pairs_)
    if (pair.words.valid()) all.push_back({pair.words.get(), POLLIN, 0});
  return all;
}

double CopyLines::next_step_s() const { return pairs_.empty() ? -1 : copies_look_s; }

std::vector<pid_t> CopyLines::processes() const {
  std::vector<pid_t> all;
  for (const Pair& pair : pairs_) all.insert(all.end(), pair.pids.begin(), pair.pids.end());
  return all;
}

// Not at each line of a keeper: a thousand keepers write thousands of lines a second.
void CopyLines::step() {
  const std::uint64_t now = monotonic_ns();
  if (now - looked_ns_ < static_cast<std::uint64_t>(copies_look_s * 1e9)) return;
  looked_ns_ = now;
  look();
}

void CopyLines::look() {
  for (Pair& pair : pairs_) {
    if (pair.words.valid()) read(pair);
    if (!pair.words.valid() && monotonic_ns() >= pair.again_ns) start(pair);
  }
}

void CopyLines::read(Pair& pair) {
  std::array<char, 4096> bytes{};
  for (;;) {
    const ssize_t got = ::read(pair.words.get(), bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return ended(pair);
    pair.partial.append(bytes.data(), static_cast<std::size_t>(got));
    for (std::size_t end; (end = pair.partial.find('\n')) != std::string::npos;) {
      const std::string line = pair.partial.substr(0, end);
      pair.partial.erase(0, end + 1);
      take(pair, line);
    }
    if (pair.partial.size() > words_bytes_max) pair.partial.clear();
  }
}

void CopyLines::take(Pair& pair, const std::string& line) {
  const Json round = Json::parse(line, nullptr, false);
  if (!round.is_object()) {
    const bool says_why = pair.last_words.empty() || !is_of_job_step(line);
    if (!line.empty() && says_why) pair.last_words = line;
    return;
  }
  pair.heard_ns = monotonic_ns();
  pair.in_vain = 0;
  const auto waiting = round.find("waiting");
  pair.waiting = waiting != round.end() && waiting->is_number_unsigned() ? *waiting : Json(0U);
  if (pair.waiting > 0 && round.value("copies", Json()) == pair.waiting)
    told_.forget(hosts_of(pair.owner, pair.keeper));
  const auto troubles = round.find("troubles");
  for (const Json& trouble : troubles == round.end() ? Json::array() : *troubles)
    if (trouble.is_string())
      say_once("file_copy_missing",
               fmt::format("captured files of {} are not safe on {}: {}", pair.owner, pair.keeper,
                           trouble.get<std::string>()),
               pair);
}

void CopyLines::ended(Pair& pair) {
  // A keeper that was killed has no last words, and the next one may succeed.
  if (pair.last_words.empty() && pair.in_vain > 1)
    pair.last_words = "`backstay agent keep-copies` there ends without a word";
  if (!pair.last_words.empty())
    say_once("file_copies_ended",
             fmt::format("captured files of {} are not copied to {}: {}", pair.owner, pair.keeper,
                         pair.last_words),
             pair);
  stop(pair);
  pair.again_ns = monotonic_ns() + pause_before_next_ns(pair.in_vain);
}

void CopyLines::stop(Pair& pair) {
  for (const Fd& process : pair.processes)
    if (process.valid()) ::syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0);
  pair.processes.clear();
  pair.pids.clear();
  pair.words.reset();
}

void CopyLines::say_once(const char* event, const std::string& text, const Pair& pair) {
  if (!told_.is_new(hosts_of(pair.owner, pair.keeper), text)) return;
  say_(event, text, {{"host", pair.owner}, {"keeper", pair.keeper}});
}

void CopyLines::cut() {
  for (Pair& pair : pairs_) stop(pair);
  pairs_.clear();
}

void CopyLines::end() {
  look();
  const std::uint64_t begun = monotonic_ns();
  const std::uint64_t deadline = deadline_in(tidy_s);
  const auto is_tidy = [begun](const Pair& pair) {
    const bool hopeless = pair.heard_ns == 0 || (pair.in_vain > 1 && !pair.words.valid());
    return hopeless || (pair.heard_ns > begun && pair.waiting == 0);
  };
  while (!std::ranges::all_of(pairs_, is_tidy) && monotonic_ns() < deadline) {
    auto waiting = fds();
    ::poll(waiting.data(), waiting.size(), tidy_step_ms);
    look();
  }
  cut();
}

}  // namespace backstay::bin
