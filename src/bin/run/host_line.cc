#include "bin/run/host_line.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <sstream>

#include "bin/parts/spawn.h"

namespace backstay::bin {
namespace {

constexpr std::string_view answer_word = "backstay-host";
constexpr std::size_t line_bytes_max = 4096;

}  // namespace

Result<HostLine> HostLine::start(const std::vector<std::string>& words) {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return errno_error("make a pair of sockets", errno);
  Fd ours(ends[0]);
  const Fd theirs(ends[1]);
  ::fcntl(ours.get(), F_SETFL, O_NONBLOCK);
  const int end = theirs.get();
  BACKSTAY_ASSIGN(const pid_t pid, spawn(words, {end, end, end}, /*own_group=*/true));
  Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  return HostLine(std::move(ours), std::move(process), pid);
}

HostLine::~HostLine() {
  if (socket_.valid()) signal(SIGKILL);
}

void HostLine::signal(int number) const {
  if (process_.valid()) ::syscall(SYS_pidfd_send_signal, process_.get(), number, nullptr, 0);
}

void HostLine::ask(std::uint64_t number) {
  if (ended()) return;
  const std::string text = std::to_string(number) + "\n";
  // If it is full, the other end does not read: it falls silent, which is noticed.
  (void)::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

std::vector<HostLine::Answer> HostLine::read() {
  std::vector<Answer> answers;
  std::array<char, line_bytes_max> bytes{};
  while (!ended()) {
    const ssize_t got = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) break;
    if (got <= 0) {
      take(partial_, answers);
      partial_.clear();
      socket_.reset();
      break;
    }
    partial_.append(bytes.data(), static_cast<std::size_t>(got));
    for (std::size_t end; (end = partial_.find('\n')) != std::string::npos;) {
      take(partial_.substr(0, end), answers);
      partial_.erase(0, end + 1);
    }
    if (partial_.size() > line_bytes_max) partial_.clear();
  }
  return answers;
}

void HostLine::take(const std::string& line, std::vector<Answer>& answers) {
  std::istringstream words(line);
  std::string word;
  Answer answer;
  if (words >> word && word == answer_word && words >> answer.host >> answer.number) {
    answers.push_back(std::move(answer));
  } else if (!word.empty()) {
    last_words_ = line;
  }
}

void HostLine::hang_up() {
  if (!ended()) ::shutdown(socket_.get(), SHUT_WR);
}

}  // namespace backstay::bin
