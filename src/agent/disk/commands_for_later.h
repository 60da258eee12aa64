// What the store's thread puts off while further commands wait.
//
// Versions of captured files come many at a time, and each wants to be sealed, recorded and removed
// with syncs of its own. Done together, these cost a file system with a journal little more than
// one version alone. Versions of ranks are large and come one by one: nothing of them is put off.
#pragma once

#include <cstddef>
#include <vector>

#include "agent/disk/store.h"

namespace backstay::agent {

class CommandsForLater {
 public:
  std::vector<SealVersion> seals;
  std::vector<RecordVersion> records;
  std::vector<VersionNumber> removals;

  // Takes the command in where it may wait, and then it is moved from.
  bool take(Command& command);
  // It may be carried out before those that wait.
  bool lets_pass(const Command& command) const;
  bool empty() const { return seals.empty() && records.empty() && removals.empty(); }
  bool full() const;
  // One that knows the same of the job.
  CommandsForLater emptied() const;

 private:
  bool of_files_ = false;  // versions of captured files were sealed here: the job has no others
};

}  // namespace backstay::agent
