// Nodes of a played network that write files and have copies of them kept.
#pragma once

#include "agent/agents.h"
#include "agent/redundancy/replicator.h"

namespace backstay::agent::testing {

inline constexpr std::uint64_t second = 1'000'000'000;

class ProtectedWorld {
 public:
  explicit ProtectedWorld(std::uint32_t nodes, std::uint32_t replicas = 1,
                          std::uint64_t bytes_per_s = 0, std::vector<std::string> domains = {})
      : network(nodes, {.settings = {replicas, std::move(domains), bytes_per_s}}) {}

  FileOf write(NodeId node, VersionNumber version, std::uint32_t chunks = 7) {
    const FileOf file = write_file(network, node, version, chunks);
    segments[file] = bytes_of(network, node, segment_of(file));
    manifests[file] = bytes_of(network, node, manifest_of(file));
    return file;
  }
  void seal(const FileOf& file) {
    network[file.node].replicator->sealed(
        {file, network.members(), network.members(), segments[file].size(), {}, std::nullopt});
  }
  FileOf save(NodeId node, VersionNumber version, std::uint32_t chunks = 7) {
    const FileOf file = write(node, version, chunks);
    seal(file);
    return file;
  }
  void save_everywhere(VersionNumber version) {
    for (NodeId node = 0; node < network.members(); ++node) save(node, version);
  }
  void protected_everywhere(VersionNumber version) {
    for (NodeId node = 0; node < network.members(); ++node)
      if (network.lives(node)) network[node].replicator->protected_everywhere(version);
  }

  // On living nodes or, if not `living`, any.
  std::size_t copies(const FileOf& file, bool living = true) {
    std::size_t count = 0;
    for (NodeId disk = 0; disk < network.members(); ++disk) {
      if (living && !network.lives(disk)) continue;
      if (has_copy(network, disk, file, segments[file], manifests[file])) ++count;
    }
    return count;
  }
  bool told(NodeId node, VersionNumber version) {
    return std::ranges::count(network[node].told, version) != 0;
  }
  void expect_rest() {
    network.expect_rest();
    for (NodeId node = 0; node < network.members(); ++node) {
      if (!network.lives(node)) continue;
      const auto& told = network[node].told;
      const std::set<VersionNumber> once(told.begin(), told.end());
      EXPECT_EQ(once.size(), told.size()) << "a version was told twice by " << node;
    }
  }

  PlayedNetwork network;
  std::map<FileOf, Buffer> segments, manifests;
};

}  // namespace backstay::agent::testing
