// The other agents of a run as a restore needs them. They live as long as the run.
#pragma once

#include <functional>

#include "agent/directory.h"
#include "agent/peers.h"

namespace backstay::agent {

struct Around {
  Directory& directory;
  FileReader& files;
  // A file was found damaged at that holder, which may be ourselves.
  std::function<void(NodeId holder, const FileOf& file, const Error& why)> damaged;
  // The file with that rank's object, made again by an agent that has parity of its group: whose file that agent has then.
  using Rebuilt = std::function<void(const Result<NodeId>&)>;
  std::function<void(NodeId agent, VersionOfRun version, Rank rank, Rebuilt done)> rebuild = {};
};

}  // namespace backstay::agent
