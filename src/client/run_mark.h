// The mark of a run on its node: each of its processes holds a record lock in <dir>/<job>/ranks
// (docs/format/README.md), so that a later run sees them though no agent knows them any more.
//
// An agent knows the processes of its run by their connections. Where it is killed together with
// `backstay run`, the program goes on alone; the next agent does not know it, and a second program
// would write the same files. The kernel drops a lock when its process ends, however it ends.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/fd.h"
#include "base/ids.h"
#include "base/result.h"

namespace backstay::client {

// One a process and job: POSIX drops a process's locks on a file when it closes any descriptor of
// that file. One thread at a time.
class RunMark {
 public:
  // As long as an agent waits for connections of an earlier run to end (attach.cc).
  static constexpr double end_patience_s = 2;

  RunMark(const std::string& dir, const std::string& job, RunId run);

  // The id of a process of another run; 0 if there is none, or if that cannot be known.
  pid_t other_run();

  // Waits a moment for processes that are about to end. Errors: busy.
  Status refuse_other_run(double patience_s = end_patience_s);

  // From now until this process ends, or the mark does. A file system without record locks, or a
  // full one, leaves the run without a mark. A child of fork() does not share it.
  void set();

 private:
  const std::string job_;
  const std::string path_;
  const off_t byte_;  // of the run, in the file
  Fd file_;
};

// For a program that is not part of a run yet: as RunMark::refuse_other_run().
Status refuse_running(const std::string& dir, const std::string& job);

}  // namespace backstay::client
