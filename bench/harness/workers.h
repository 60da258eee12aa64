// R processes that do what the parent says, all at the same time: the "ranks" of a benchmark.
//
// The parent forks them once; each builds its own state and then serves commands. A command
// starts on all ranks from one barrier. A worker that dies or reports a failure ends the benchmark.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "backstay/backstay.h"
#include "bench/harness/shared.h"

namespace backstay::bench {

inline constexpr int workers_max = 1024;

// What one rank did; times of now_ns().
struct Report {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  bool failed = false;
  std::uint64_t value = 0;    // whatever the command counts
  std::int64_t later_ns = 0;  // end of a second phase of the same command, where it has one
  char message[400] = {};

  static Report failure(const std::string& why);
};

// The last error of the library in this process. `call`: the one that failed.
Report library_failure(const char* call);
// backstay_checkpoint; later_ns: backstay_wait for level local.
Report timed_checkpoint();

// A command on all ranks.
struct Outcome {
  double slowest_s = 0;  // longest time of one rank
  double span_s = 0;     // from the first start to the last end
  std::int64_t first_start_ns = 0;
  std::int64_t last_end_ns = 0;
  std::int64_t last_later_ns = 0;
  std::uint64_t value_sum = 0;
};

// Collective operations over the ranks, as a launcher would offer them to Backstay.
class SharedGroup;

class Workers {
 public:
  using Serve = std::function<Report(int command, std::uint64_t argument)>;
  // Called in the new process; what it returns serves the commands. The group stays valid.
  using Build = std::function<Serve(const backstay_group& group)>;

  Workers(int ranks, const Build& build);
  ~Workers();  // ends the processes and waits for them
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  Outcome command(int command, std::uint64_t argument = 0);
  const std::vector<pid_t>& pids() const { return pids_; }

 private:
  struct Shared;
  void serve(int rank, const Build& build);

  int ranks_;
  Shared* shared_;
  std::vector<pid_t> pids_;
};

}  // namespace backstay::bench
