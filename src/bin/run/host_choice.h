// Chooses the hosts of a job, and those that replace lost ones. No I/O: tested alone.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "bin/run/hosts.h"

namespace backstay::bin {

class HostChoice {
 public:
  // The last `spares` hosts are held back. Errors: invalid (none would be left to run on).
  static Result<HostChoice> make(std::vector<Host> hosts, unsigned spares);

  const std::vector<Host>& in_use() const { return in_use_; }
  const std::vector<Host>& spares() const { return spares_; }

  struct Change {
    std::vector<std::string> lost;   // of those in use
    std::vector<std::string> taken;  // spares that are in use now
  };
  // Removes hosts. Each lost one is replaced by a spare while there is one; more spares are taken
  // if the slots of those in use are too few for `ranks` (0: not known). Spares take the places of
  // the lost hosts in the list, so that ranks that did not lose their host keep it.
  Change lose(const std::set<std::string>& gone, unsigned ranks);

  // True if slots are not given: then the launcher must judge.
  bool enough_for(unsigned ranks) const;

 private:
  std::vector<Host> in_use_;
  std::vector<Host> spares_;
};

}  // namespace backstay::bin
