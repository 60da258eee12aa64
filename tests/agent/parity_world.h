// Nodes of a played network that save versions, keep parity of them, and rebuild what was lost.
#pragma once

#include "agent/agents.h"
#include "agent/redundancy/parity_encoder.h"

namespace backstay::agent::testing {

inline constexpr std::uint64_t second = 1'000'000'000;
inline constexpr std::uint64_t steps_max = 600;

std::string parity_of(const FileOf& file);
std::string parity_manifest_of(const FileOf& file);

class ParityWorld {
 public:
  ParityWorld(std::uint32_t nodes, ParityShape shape, std::uint64_t bytes_per_s = 0,
              std::uint32_t buffers = 3)
      : network(nodes, {.settings = {0, {}, bytes_per_s}, .parity = shape, .buffers = buffers}) {}

  // All nodes save and record; node i so many chunks.
  void save(
      VersionNumber version, std::uint32_t (*chunks)(NodeId) = [](NodeId) { return 7u; });
  void write(NodeId node, VersionNumber version, std::uint32_t chunks);
  void record(NodeId node, VersionNumber version);
  bool told(NodeId node, VersionNumber version) {
    return std::ranges::count(network[node].told, version) != 0;
  }
  void expect_told(VersionNumber version);

  // So much of what has to happen for one version happens, often all of it.
  void play_some(std::uint64_t most = steps_max);

  // The run ends and another begins, with new agents; those of `lost` with empty disks.
  void restart(const std::vector<NodeId>& lost);

  // A bit in every block of that file on that node's disk.
  void damage(NodeId disk, const std::string& name);

  // A node asks the first that has parity of the rank's group, as a restart does. One rank a node,
  // of the same number.
  Result<NodeId> rebuild(NodeId asking, VersionNumber version, Rank rank);
  // The lost file is where it was rebuilt, and found by who looks.
  void expect_rebuilt(const FileOf& file);
  void expect_rest() { network.expect_rest(); }

  PlayedNetwork network;
  std::map<FileOf, Buffer> segments, manifests;
  NodeId rebuilder = 0;
};

}  // namespace backstay::agent::testing
