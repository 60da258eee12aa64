#include "bin/run/host_watch.h"

#include <algorithm>

#include "base/clock.h"
#include "bin/parts/print.h"

namespace backstay::bin {
namespace {

constexpr std::size_t starts_max = 32;
constexpr double asks_in_silence = 4;

std::uint64_t now_ns() { return system_clock().monotonic_ns(); }
std::uint64_t as_ns(double seconds) { return static_cast<std::uint64_t>(seconds * 1e9); }

}  // namespace

void HostWatch::add(const std::vector<std::string>& hosts, bool together, double first_s) {
  for (const std::string& host : hosts) hosts_[host] = {};
  if (together && !hosts.empty()) waiting_.push_back({hosts, first_s});
  if (!together)
    for (const std::string& host : hosts) waiting_.push_back({{host}, first_s});
  connect_waiting();
}

void HostWatch::connect_waiting() {
  const auto starting = [this] {
    return static_cast<std::size_t>(std::count_if(open_.begin(), open_.end(), [](const auto& line) {
      return !line->answered && !line->process.ended();
    }));
  };
  while (!waiting_.empty() && starting() < starts_max) {
    const Group group = std::move(waiting_.front());
    waiting_.pop_front();
    connect(group);
  }
}

void HostWatch::connect(const Group& group) {
  auto process = HostLine::start(connect_(group.hosts));
  if (!process.ok()) {
    for (const std::string& host : group.hosts) lose(host, process.error().message());
    return;
  }
  const auto line = std::make_shared<Line>(Line{std::move(process).value(), group.first_s});
  for (const std::string& host : group.hosts) {
    Watched& watched = hosts_[host];
    watched.line = line;
    watched.heard_ns = now_ns();
    watched.answered = false;
  }
  line->process.ask(++number_);
  open_.push_back(line);
}

std::vector<pollfd> HostWatch::fds() const {
  std::vector<pollfd> all;
  for (const auto& line : open_)
    if (!line->process.ended()) all.push_back({line->process.fd(), POLLIN, 0});
  return all;
}

double HostWatch::next_step_s() const {
  return open_.empty() && waiting_.empty() ? -1 : silent_s_ / asks_in_silence;
}

void HostWatch::step() {
  read();
  const std::uint64_t now = now_ns();
  ask(now);
  suspect(now);
  connect_waiting();
}

void HostWatch::ask(std::uint64_t now) {
  if (now - asked_ns_ < as_ns(silent_s_ / asks_in_silence)) return;
  asked_ns_ = now;
  ++number_;
  for (const auto& line : open_) line->process.ask(number_);
}

void HostWatch::read() {
  for (const auto& line : open_) {
    for (const HostLine::Answer& answer : line->process.read()) {
      const auto host = hosts_.find(answer.host);
      if (host == hosts_.end() || host->second.line != line) continue;  // late, from an old line
      host->second.heard_ns = now_ns();
      host->second.answered = line->answered = true;
      host->second.closed = answer.number == 0;
    }
  }
}

void HostWatch::suspect(std::uint64_t now) {
  for (auto& [name, host] : hosts_) {
    if (host.gone || host.line == nullptr) continue;
    const bool ended = host.line->process.ended();
    const double allowed_s = host.answered ? silent_s_ : host.line->first_s;
    if (!ended && now - host.heard_ns <= as_ns(allowed_s)) continue;
    if (host.answered) {
      host.line.reset();
      host.answered = false;
      waiting_.push_back({{name}, silent_s_});
      continue;
    }
    const std::string& words = host.line->process.last_words();
    std::string why =
        ended ? "the connection ended" : "no answer within " + duration_text(allowed_s);
    if (!words.empty()) why += ": " + printable(words);
    lose(name, why);
  }
  // Drops a line that serves no host any more.
  std::erase_if(open_, [this](const std::shared_ptr<Line>& line) {
    return std::none_of(hosts_.begin(), hosts_.end(),
                        [&](const auto& host) { return host.second.line == line; });
  });
}

void HostWatch::lose(const std::string& host, const std::string& why) {
  Watched& watched = hosts_[host];
  watched.gone = true;
  watched.line.reset();
  news_.push_back({host, why});
}

std::vector<HostWatch::Gone> HostWatch::news() { return std::exchange(news_, {}); }

bool HostWatch::settled(std::uint64_t since) const {
  return std::all_of(hosts_.begin(), hosts_.end(), [&](const auto& host) {
    return host.second.gone || (host.second.answered && host.second.heard_ns >= since);
  });
}

void HostWatch::settle() {
  const std::uint64_t since = now_ns();
  asked_ns_ = 0;
  for (step(); !settled(since); step()) {
    auto waiting = fds();
    const auto wait_ns = as_ns(silent_s_ / asks_in_silence);
    ::poll(waiting.data(), waiting.size(), milliseconds_until(now_ns() + wait_ns));
  }
}

std::vector<pid_t> HostWatch::processes() const {
  std::vector<pid_t> all;
  for (const auto& line : open_) all.push_back(line->process.pid());
  return all;
}

bool HostWatch::closed(const Line& line) const {
  return line.process.ended() || std::none_of(hosts_.begin(), hosts_.end(), [&](const auto& host) {
           return host.second.line.get() == &line && !host.second.closed;
         });
}

void HostWatch::close(double patience_s) {
  for (const auto& line : open_) line->process.hang_up();
  const std::uint64_t deadline = deadline_in(patience_s);
  const auto all_closed = [this] {
    return std::all_of(open_.begin(), open_.end(),
                       [this](const auto& line) { return closed(*line); });
  };
  while (!all_closed() && now_ns() < deadline) {
    auto left = fds();
    ::poll(left.data(), left.size(), milliseconds_until(deadline));
    read();
  }
  open_.clear();
  hosts_.clear();
  waiting_.clear();
}

}  // namespace backstay::bin
