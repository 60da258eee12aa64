// What the versions on this node's disk need (docs/format/manifest.md, "Chunks in older versions").
// The part of the table of versions (version_table.h) that knows how they hang together. Pure. Main
// loop's thread.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "agent/version/file_of.h"
#include "format/need.h"

namespace backstay::agent {

class VersionNeeds {
 public:
  // A file of it that came here needs these, also where the version has no row yet: a copy of
  // another node's part may come before this node's own. They stay until the version is gone.
  void needs(VersionOfRun version, std::span<const format::Need> needs);
  // The newest version on this node's disk that needs it, but for `others`; 0: none does. What a
  // kept version needs is kept with it. Run 0: it is not known, as its record cannot be read.
  VersionNumber needed_by(VersionOfRun version, std::span<const VersionNumber> others = {}) const;

 protected:
  void forget_needs(VersionNumber version);

 private:
  std::map<VersionOfRun, std::vector<format::Need>> needs_;
};

}  // namespace backstay::agent
