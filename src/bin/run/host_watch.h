// Watches which hosts are alive, while the program runs and soon after it has failed.
//
// 1. Each host has a line (host_line.h) and is asked for a sign of life four times in the time that
//    it may be silent.
// 2. A host is suspected when its line ends or it was silent for that time. A new connection is
//    tried then, which has the same time to answer: a line can break, and an ssh daemon be started
//    again, on a host that is well.
// 3. A host is gone if it does not answer on the new connection either. It stays gone.
// So a host that loses its power is gone after two times `silent_s` at most, and a cable that is
// back within `silent_s` is not noticed. At most `starts_max` connections are being made at once.
//
// One thread; blocks in settle() only. The owner polls fds() and calls step() at each event and
// after next_step_s().
#pragma once

#include <poll.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bin/run/host_line.h"

namespace backstay::bin {

class HostWatch {
 public:
  // The command that connects with these hosts, one or more.
  using Connect = std::function<std::vector<std::string>(const std::vector<std::string>& hosts)>;
  struct Gone {
    std::string host;
    std::string why;
  };

  HostWatch(Connect connect, double silent_s) : connect_(std::move(connect)), silent_s_(silent_s) {}

  // One line for all of them if `together`, else one for each. The first answer may take `first_s`,
  // as the other end may have to start a program. A second connection has `silent_s`.
  void add(const std::vector<std::string>& hosts, bool together, double first_s);

  std::vector<pollfd> fds() const;
  double next_step_s() const;
  void step();
  // Hosts found gone since the last call.
  std::vector<Gone> news();
  // Asks all and returns once each has answered or is gone: after three times `silent_s` at most,
  // or later if there are more than `starts_max` hosts to connect with.
  void settle();
  // Processes of the lines: no leftovers of the program.
  std::vector<pid_t> processes() const;
  // Asks the other ends to end and waits until all living hosts have ended, at most `patience_s`.
  // Hosts that share a line report their end (number 0), as a host that is gone may keep the line
  // open.
  void close(double patience_s);

 private:
  struct Line {
    HostLine process;
    double first_s = 0;  // until an answer of each host
    bool answered = false;
  };
  struct Group {
    std::vector<std::string> hosts;
    double first_s = 0;
  };
  struct Watched {
    std::shared_ptr<Line> line;  // null: the host waits to be connected, or is gone
    std::uint64_t heard_ns = 0;  // the last answer, or the start of the line
    bool answered = false;       // on this line
    bool gone = false;
    bool closed = false;
  };

  void connect_waiting();
  void connect(const Group& group);
  void ask(std::uint64_t now);
  void read();
  void suspect(std::uint64_t now);
  void lose(const std::string& host, const std::string& why);
  bool closed(const Line& line) const;
  bool settled(std::uint64_t since) const;

  const Connect connect_;
  const double silent_s_;
  std::map<std::string, Watched> hosts_;
  std::deque<Group> waiting_;  // one line each
  std::vector<std::shared_ptr<Line>> open_;
  std::vector<Gone> news_;
  std::uint64_t number_ = 0;
  std::uint64_t asked_ns_ = 0;
};

}  // namespace backstay::bin
