// Copies of captured files on other hosts: `backstay run` starts a giver and a keeper for each host
// of its program, and connects them (docs/protocol/home.md#copies-on-another-host).
//
// One thread. Nothing blocks but end().
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/fd.h"
#include "bin/run/run_hosts.h"
#include "bin/run/told_once.h"

namespace backstay::bin {

class CopyLines {
 public:
  CopyLines(const Config& config, std::string job, Say say)
      : config_(config), job_(std::move(job)), say_(std::move(say)) {}
  ~CopyLines() { cut(); }
  CopyLines(const CopyLines&) = delete;
  CopyLines& operator=(const CopyLines&) = delete;

  // For the hosts of an attempt; `hosts` must live until cut(). None where there is a durable
  // directory, no wish for copies, no other host, or no shell.
  void lay(const RunHosts& hosts);
  // Once a second at most: reads what keepers say, and starts pairs that have ended again.
  void step();
  double next_step_s() const;
  std::vector<pid_t> processes() const;
  // Ends all pairs at once.
  void cut();
  // Waits up to 10 s until the keepers have removed the copies of what is at home; then as cut().
  void end();

 private:
  struct Pair {
    std::string owner;
    std::string keeper = {};
    std::size_t tried = 0;
    Fd words = {};  // the keeper's standard error; none: the pair does not run
    std::vector<pid_t> pids = {};
    std::vector<Fd> processes = {};  // pidfds: never another process that got the same number
    std::string partial = {};
    std::string last_words = {};
    std::uint64_t heard_ns = 0;  // 0: it has never worked
    unsigned in_vain = 0;        // starts since it has worked last
    std::size_t waiting = 0;     // versions with files not at home, as the keeper has said last
    std::uint64_t again_ns = 0;
  };
  bool is_wanted() const;
  void look();
  std::vector<pollfd> fds() const;
  void start(Pair& pair);
  Status connect(Pair& pair);
  void read(Pair& pair);
  void take(Pair& pair, const std::string& line);
  void ended(Pair& pair);
  static void stop(Pair& pair);
  void say_once(const char* event, const std::string& text, const Pair& pair);

  const Config& config_;
  const std::string job_;
  const Say say_;
  RunHosts::Reach hosts_;
  std::vector<Pair> pairs_;
  ToldOnce told_;
  std::uint64_t looked_ns_ = 0;
};

}  // namespace backstay::bin
