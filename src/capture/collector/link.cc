#include "capture/collector/link.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/checksum.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/folders.h"
#include "capture/files/collect.h"
#include "capture/files/counts.h"
#include "client/launch.h"
#include "wire/socket.h"

namespace backstay::files {

namespace {

constexpr int attempts = 3;

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

using Tell = std::function<void(const std::string&)>;

void no_words(const std::string&) {}

using Descriptors = std::vector<int>;
using GoOn = std::function<bool()>;

bool without_end() { return true; }

Error has_ended() { return {Code::agent_lost, "the collector of captured files has ended"}; }

Status send_question(int socket, const Question& question, const Descriptors& descriptors) {
  Question copy = question;
  copy.counts = take_counts();
  iovec part{&copy, sizeof copy};
  alignas(cmsghdr) char room[CMSG_SPACE(handed_max * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    const std::size_t bytes = descriptors.size() * sizeof(int);
    message.msg_control = room;
    message.msg_controllen = CMSG_SPACE(bytes);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(bytes);
    std::memcpy(CMSG_DATA(header), descriptors.data(), bytes);
  }
  while (::sendmsg(socket, &message, MSG_NOSIGNAL) < 0) {
    const int error = errno;
    if (error == EINTR) continue;
    give_back(copy.counts);
    if (error == EPIPE || error == ECONNRESET) return has_ended();
    return errno_error("ask the collector", error);
  }
  return {};
}

// The last answer, without its words.
struct Done {
  int error = 0;
  VersionNumber version = 0;
};
Result<Done> ask_whole(int socket, const Question& question, const Tell& tell,
                       const Descriptors& descriptors, const GoOn& go_on = without_end) {
  BACKSTAY_TRY(send_question(socket, question, descriptors));
  for (;;) {
    pollfd look{socket, POLLIN, 0};
    const int ready = ::poll(&look, 1, silence_ms_max);
    if (ready == 0) return Error(Code::timeout, "the collector of captured files does not answer");
    if (ready < 0) continue;
    Answer answer;
    const ssize_t got = ::recv(socket, &answer, sizeof answer, 0);
    if (got < static_cast<ssize_t>(answer_bytes_min)) {
      return has_ended();
    }
    if (answer.said == Said::done) return Done{answer.error, answer.version};
    if (answer.said == Said::words) tell({answer.words, answer.bytes});
    if (!go_on()) return Error(Code::again, "the wait for them was ended");
  }
}

// The error number of the last answer.
Result<int> ask(int socket, const Question& question, const Tell& tell,
                const Descriptors& descriptors = {}, const GoOn& go_on = without_end) {
  BACKSTAY_ASSIGN(const Done done, ask_whole(socket, question, tell, descriptors, go_on));
  return done.error;
}

Question question_of(Ask what, const Handed& file) {
  Question question;
  question.ask = what;
  question.until = file.until;
  question.opened_bytes = file.opened.st_size;
  question.opened_s = file.opened.st_mtim.tv_sec;
  question.opened_ns = file.opened.st_mtim.tv_nsec;
  question.version = file.synced;
  return question;
}

// It is stopped, or hangs: no other may take its place while it lives, and what it has, the agent
// has too.
void end_listener(int socket) {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.pid > 1)
    ::kill(peer.pid, SIGKILL);
}

}  // namespace

Status start_daemon(const std::string& program, const std::vector<std::string>& arguments) {
  BACKSTAY_ASSIGN(const client::LaunchedAgent started, client::launch_agent(program, arguments));
  std::string said;
  const std::uint64_t deadline = deadline_in(silence_ms_max / 1000.0);
  for (;;) {
    pollfd look{started.said.get(), POLLIN, 0};
    const int ready = ::poll(&look, 1, milliseconds_until(deadline));
    if (ready == 0) return Error(Code::timeout, program + " does not answer");
    if (ready < 0) continue;  // a signal
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
  Question question;
  question.talks = 1;
  for (int attempt = 1;; ++attempt) {
    BACKSTAY_ASSIGN(const Fd connected, connect_or_start(socket, program));
    const auto answered = ask(connected.get(), question, tell);
    if (answered.ok()) return {};
    if (answered.error().code() != Code::agent_lost || attempt == attempts) return answered.error();
  }
}

Fd make_hold(const std::string& socket) {
  Fd hold(::open(parent_of(socket).c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, 0600));
  if (hold.valid() && ::flock(hold.get(), LOCK_EX | LOCK_NB) != 0) hold.reset();
  return hold;
}

Result<VersionNumber> sync(const std::string& socket, const std::string& program,
                           const Handed& file, int hold) {
  BACKSTAY_ASSIGN(const Fd connected, connect_or_start(socket, program));
  BACKSTAY_ASSIGN(const Done done, ask_whole(connected.get(), question_of(Ask::sync, file),
                                             no_words, {file.memory, file.target, hold}));
  if (done.error == 0) return done.version;
  return errno_error("sync a file by the collector", done.error);
}

Status let_go(const std::string& socket, const std::string& program, VersionNumber synced) {
  Question question;
  question.ask = Ask::let_go;
  question.version = synced;
  BACKSTAY_ASSIGN(const Fd connected, connect_or_start(socket, program));
  const auto answered = ask(connected.get(), question, no_words);
  return answered.ok() ? Status() : Status(answered.error());
}

Status settle(const std::string& socket, const std::string& program, std::uint64_t device,
              std::uint64_t inode) {
  Question question;
  question.ask = Ask::settle;
  question.device = device;
  question.inode = inode;
  for (int attempt = 1;; ++attempt) {
    BACKSTAY_ASSIGN(const Fd connected, connect_or_start(socket, program));
    const auto answered = ask(connected.get(), question, no_words);
    if (answered.ok() && *answered == 0) return {};
    if (answered.ok()) return errno_error("bring a captured file to its place", *answered);
    if (answered.error().code() == Code::timeout) end_listener(connected.get());
    if (attempt == attempts) return answered.error();
  }
}

Status keep(const std::string& socket, const std::string& program, const Handed& file) {
  BACKSTAY_ASSIGN(const Fd connected, connect_or_start(socket, program));
  const auto answered =
      ask(connected.get(), question_of(Ask::keep, file), no_words, {file.memory, file.target});
  if (!answered.ok()) {
    // The agent may have the file. It must not bring it after the program has renamed it.
    struct stat placed = {};
    const bool lost = answered.error().code() == Code::agent_lost;
    if (lost && ::fstat(file.target, &placed) == 0) {
      (void)settle(socket, program, placed.st_dev, placed.st_ino);
    }
    return answered.error();
  }
  if (*answered == 0) return {};
  return errno_error("hand a file to the collector", *answered);
}

bool may_have_files(const std::string& socket) {
  return ::access((socket + page_suffix).c_str(), F_OK) == 0;
}

Result<Fates> take_fates(const std::string& socket) {
  BACKSTAY_ASSIGN(const Fd connected, wire::connect_to(socket));
  Question question;
  question.ask = Ask::note;
  question.talks = 1;
  Fates fates;
  const auto keep = [&](const std::string& words) { fates.words = words; };
  BACKSTAY_ASSIGN(const Done done, ask_whole(connected.get(), question, keep, {}));
  fates.captured = done.version;
  return fates;
}

Status settle_all(const std::string& socket, const std::string& program, const Tell& tell,
                  const GoOn& go_on) {
  Question question;
  question.ask = Ask::settle_all;
  question.talks = 1;
  for (int attempt = 1;; ++attempt) {
    if (!may_have_files(socket)) return {};
    BACKSTAY_ASSIGN(const Fd connected, connect_or_start(socket, program));
    const auto answered = ask(connected.get(), question, tell, {}, go_on);
    if (answered.ok() && *answered == 0) return {};
    if (answered.ok()) return errno_error("bring captured files to their places", *answered);
    if (answered.error().code() != Code::agent_lost || attempt == attempts) return answered.error();
  }
}

}  // namespace backstay::files
