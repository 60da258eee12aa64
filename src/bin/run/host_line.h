// A line to one or more hosts: a process (ssh, or srun) whose other end answers each number with
// "backstay-host NAME NUMBER", and sends number 0 at its end if it has work to finish first. As
// long as a host answers, it lives; no port, no daemon and no shared disk is needed for that.
//
// One thread. Nothing blocks. The process is in a group of its own: a terminal's signals do not
// reach it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace backstay::bin {

class HostLine {
 public:
  // Errors: not_found, permission (the program cannot be executed).
  static Result<HostLine> start(const std::vector<std::string>& words);
  HostLine(HostLine&&) = default;
  HostLine& operator=(HostLine&&) = default;
  // Sends SIGKILL to a process that has not ended.
  ~HostLine();

  struct Answer {
    std::string host;
    std::uint64_t number = 0;
  };

  int fd() const { return socket_.get(); }
  pid_t pid() const { return pid_; }
  bool ended() const { return !socket_.valid(); }
  void ask(std::uint64_t number);
  // The answers that have come; the line may have ended after them.
  std::vector<Answer> read();
  // The last output that was no answer: it says why a connection failed.
  const std::string& last_words() const { return last_words_; }
  // Closes the input of the other end, which shall then end by itself.
  void hang_up();
  void signal(int number) const;

 private:
  HostLine(Fd socket, Fd process, pid_t pid)
      : socket_(std::move(socket)), process_(std::move(process)), pid_(pid) {}
  void take(const std::string& line, std::vector<Answer>& answers);

  Fd socket_;
  Fd process_;  // a pidfd: never another process that got the same number
  pid_t pid_ = -1;
  std::string partial_;
  std::string last_words_;
};

}  // namespace backstay::bin
