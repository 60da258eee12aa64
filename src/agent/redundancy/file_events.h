// What the makers of replicas and parity report of this node's disk.
#pragma once

#include "agent/version/held_files.h"

namespace backstay::agent {

class FileEvents {
 public:
  virtual ~FileEvents() = default;
  // The file that this node wrote for the version has all its replicas, or its parity, synced.
  virtual void protected_here(VersionNumber version) = 0;
  // This node has that file from now on: a replica, or its parity.
  virtual void kept(const HeldFile& file) = 0;
};

}  // namespace backstay::agent
