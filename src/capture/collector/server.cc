#include "capture/collector/server.h"

#include <poll.h>
#include <signal.h>

#include <cerrno>
#include <thread>

#include "base/clock.h"
#include "base/log.h"
#include "wire/socket.h"

namespace backstay::files {

namespace {

constexpr double first_patience_s = 10;  // for the process that has started us

int number_of(const Status& status) {
  if (status.ok()) return 0;
  return status.error().sys_errno() != 0 ? status.error().sys_errno() : EIO;
}

Tell words_to(int socket, bool talks) {
  return [socket, talks](const std::string& words) {
    if (talks) send_answer(socket, Said::words, words);
  };
}

}  // namespace

void Server::serve(int listener) {
  const std::uint64_t not_before = deadline_in(first_patience_s);
  std::uint64_t next_tick = 0;
  for (unsigned needless = 0; needless < 2;) {
    pollfd look{listener, POLLIN, 0};
    if (::poll(&look, 1, milliseconds_until(next_tick)) > 0) accept(listener);
    if (system_clock().monotonic_ns() < next_tick) continue;
    next_tick = deadline_in(works_every_ms / 1000.0);
    tick();
    const bool awaited = !was_asked_ && system_clock().monotonic_ns() < not_before;
    needless = is_needed() || awaited ? 0 : needless + 1;
  }
}

void Server::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return clients_.empty(); });
}

void Server::accept(int listener) {
  auto accepted = wire::accept_from(listener);
  if (!accepted.ok()) {
    if (accepted.error().code() != Code::again) {
      spdlog::warn("no connection was taken error=\"{}\"", accepted.error().to_string());
    }
    return;
  }
  const auto client = std::make_shared<const Fd>(std::move(*accepted));
  was_asked_ = true;
  {
    const std::lock_guard guard(mutex_);
    clients_.insert(client);
    asked_.insert(wire::pid_of_peer(client->get()));
  }
  try {
    std::thread([this, client] { answer(client); }).detach();
  } catch (const std::system_error&) {
    ended(client);  // the process sees the end of its connection, and helps itself
  }
}

void Server::tick() {
  const std::lock_guard guard(mutex_);
  for (const auto& client : clients_) send_answer(client->get(), Said::works);
  std::erase_if(asked_, [](pid_t pid) { return ::kill(pid, 0) != 0 && errno == ESRCH; });
}

bool Server::is_needed() {
  {
    const std::lock_guard guard(mutex_);
    if (!clients_.empty() || !asked_.empty()) return true;
  }
  return !collector_.may_end();
}

void Server::ended(const Client& client) {
  const std::lock_guard guard(mutex_);
  clients_.erase(client);
  changed_.notify_all();
}

void Server::answer(const Client& client) {
  const int socket = client->get();
  auto asked = receive_question(socket);
  if (asked.ok()) {
    collector_.count(asked->question.counts);
    const Ask ask = asked->question.ask;
    const bool wants_fates = ask == Ask::note && asked->question.talks != 0;
    VersionNumber version = 0;
    const Status done = ask == Ask::sync ? sync(socket, std::move(*asked), version)
                                         : carry_out(socket, std::move(*asked));
    if (wants_fates) version = tell_fates(socket);
    send_done(socket, number_of(done), version);
  }
  ended(client);
}

Status Server::sync(int socket, Asked asked, VersionNumber& version) {
  auto& fds = asked.descriptors;
  Collector::Synced file{std::move(fds[0]), std::move(fds[1]), std::move(fds[2]),
                         wire::pid_of_peer(socket)};
  BACKSTAY_ASSIGN(version, collector_.sync(asked.question, std::move(file),
                                           [socket] { return !has_left(socket); }));
  return {};
}

// Returns how many were captured.
std::uint64_t Server::tell_fates(int socket) {
  const Written::Fates fates = collector_.take_fates();
  if (!fates.words.empty()) send_answer(socket, Said::words, fates.words);
  return fates.captured;
}

Status Server::settle_all(int socket, bool talks) {
  const Status settled = collector_.settle_all(words_to(socket, talks), talks);
  if (talks) collector_.note_written();  // a program has ended, and its report may be wanted
  return settled;
}

Status Server::carry_out(int socket, Asked asked) {
  const Question& question = asked.question;
  switch (question.ask) {
    case Ask::keep:
      return collector_.keep(question, std::move(asked.descriptors[0]),
                             std::move(asked.descriptors[1]),
                             [socket] { return !has_left(socket); });
    case Ask::settle:
      return collector_.settle({question.device, question.inode}, question.reads != 0);
    case Ask::settle_all: return settle_all(socket, question.talks != 0);
    case Ask::rename: return collector_.rename({question.device, question.inode}, question);
    case Ask::note:
      if (question.last == 0) return {};
      collector_.tell_left(words_to(socket, true));
      collector_.note_written();
      return {};
    case Ask::let_go: return collector_.let_go(question.version);
    case Ask::watch: collector_.wait_until_ready(words_to(socket, question.talks != 0)); return {};
    case Ask::sync: break;  // answered with a version
  }
  return Error(Code::protocol, "a question of another release");
}

}  // namespace backstay::files
