#include "capture/collector/link.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <span>
#include <utility>

#include "base/checksum.h"
#include "base/clock.h"
#include "base/folders.h"
#include "capture/files/ask.h"
#include "client/launch.h"
#include "wire/socket.h"

namespace backstay::files {

namespace {

Status start(const std::string& socket, const std::string& program) {
  BACKSTAY_TRY(make_chosen_folder(parent_of(socket), "agent.socket"));
  return start_daemon(program, {socket});
}

Result<Fd> connect_or_start(const std::string& socket, const std::string& program) {
  auto connected = wire::connect_to(socket);
  if (connected.ok()) return connected;
  BACKSTAY_TRY(start(socket, program));
  return wire::connect_to(socket);
}

// Asks with a wish for words, and lets a silent collector live.
Answered ask_aloud(Link& link, Ask what) {
  link.ends_silent = false;
  Question question;
  question.ask = what;
  question.talks = 1;
  return ask_in_turn(link, question);
}

}  // namespace

Link::Link(std::string socket, std::string program, Tell tell, GoOn go_on)
    : Asker{connect_there, hear_there},
      socket_(std::move(socket)),
      program_(std::move(program)),
      tell_(std::move(tell)),
      go_on_(std::move(go_on)) {}

int Link::connect_there(Asker& asker) {
  auto& link = static_cast<Link&>(asker);
  if (link.needs_files && !may_have_files(link.socket_)) return -1;
  auto connected = link.program_.empty() ? wire::connect_to(link.socket_)
                                         : connect_or_start(link.socket_, link.program_);
  if (connected.ok()) return connected->release();
  link.unasked_ = connected.error();
  return connected.error().code() == Code::timeout ? -ETIMEDOUT : -1;
}

bool Link::hear_there(Asker& asker, const Answer& answer) {
  const auto& link = static_cast<Link&>(asker);
  if (link.tell_ && answer.said == Said::words) link.tell_({answer.words, answer.bytes});
  return !link.go_on_ || link.go_on_();
}

Status Link::status(const Answered& answered, const char* what) const {
  const bool ended = answered.error == 0 || answered.error == EPIPE || answered.error == ECONNRESET;
  switch (answered.way) {
    case Way::answered: return answered.error == 0 ? Status() : errno_error(what, answered.error);
    case Way::unasked: return unasked_;
    case Way::gone:
      if (!ended) return errno_error("ask the collector", answered.error);
      return Error(Code::agent_lost, "the collector of captured files has ended");
    case Way::silent:
      return Error(Code::timeout, "the collector of captured files does not answer");
    case Way::left: break;
  }
  return Error(Code::again, "the wait for them was ended");
}

Status start_daemon(const std::string& program, const std::vector<std::string>& arguments) {
  BACKSTAY_ASSIGN(const client::LaunchedAgent started, client::launch_agent(program, arguments));
  std::string said;
  const std::uint64_t deadline = deadline_in(silence_ms_max / 1000.0);
  for (;;) {
    if (!wait_readable(started.said.get(), deadline))
      return Error(Code::timeout, program + " does not answer");
    std::array<char, 1000> text{};
    const ssize_t got = ::read(started.said.get(), text.data(), text.size());
    if (got <= 0) break;
    said.append(text.data(), static_cast<std::size_t>(got));
  }
  if (said.empty()) return {};
  return Error(Code::agent_lost, fmt::format("{} has ended: {}", program, said));
}

std::string collector_socket(const client::AgentAddress& agent, const std::string& job) {
  return fmt::format("{}/files-{:016x}.sock", parent_of(agent.socket_path),
                     checksum(std::as_bytes(std::span(job.data(), job.size()))));
}

// The next one brings what the one that ended has left.
Status ensure_collector(const std::string& socket, const std::string& program, const Tell& tell) {
  Link link(socket, program, tell);
  return link.status(ask_aloud(link, Ask::watch), "wait for the collector");
}

bool may_have_files(const std::string& socket) {
  return ::access((socket + page_suffix).c_str(), F_OK) == 0;
}

Result<Fates> take_fates(const std::string& socket) {
  Fates fates;
  Link link(socket, "", [&](const std::string& words) { fates.words = words; });
  const Answered answered = ask_aloud(link, Ask::note);
  BACKSTAY_TRY(link.status(answered, "ask what became of files"));
  fates.captured = answered.version;
  return fates;
}

Status settle_all(const std::string& socket, const std::string& program, const Tell& tell,
                  const GoOn& go_on) {
  Link link(socket, program, tell, go_on);
  link.needs_files = true;
  return link.status(ask_aloud(link, Ask::settle_all), "bring captured files to their places");
}

}  // namespace backstay::files
