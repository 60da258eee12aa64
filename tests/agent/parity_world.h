// Nodes of a played network that save versions, keep parity of them, and rebuild what was lost.
#pragma once

#include "agent/agents.h"
#include "agent/redundancy/parity_encoder.h"

namespace backstay::agent::testing {

inline constexpr std::uint64_t second = 1'000'000'000;
inline constexpr std::uint64_t steps_max = 600;

inline std::string parity_of(const FileOf& file) {
  return format::parity_name(format::version_folder("job", file.version), file.node);
}
inline std::string parity_manifest_of(const FileOf& file) {
  return format::parity_manifest_name(format::version_folder("job", file.version), file.node);
}

class ParityWorld {
 public:
  ParityWorld(std::uint32_t nodes, ParityShape shape, std::uint64_t bytes_per_s = 0,
              std::uint32_t buffers = 3)
      : network(nodes, {.settings = {0, {}, bytes_per_s}, .parity = shape, .buffers = buffers}) {}

  // All nodes save and record; node i so many chunks.
  void save(
      VersionNumber version, std::uint32_t (*chunks)(NodeId) = [](NodeId) { return 7u; }) {
    for (NodeId node = 0; node < network.members(); ++node) write(node, version, chunks(node));
    for (NodeId node = 0; node < network.members(); ++node) record(node, version);
  }
  void write(NodeId node, VersionNumber version, std::uint32_t chunks) {
    const FileOf file = write_file(network, node, version, chunks);
    segments[file] = bytes_of(network, node, segment_of(file));
    manifests[file] = bytes_of(network, node, manifest_of(file));
  }
  void record(NodeId node, VersionNumber version) {
    format::CommitRecord record;
    record.job = "job";
    record.version = version;
    record.run = run;
    network[node].parity_encoder->recorded(record);
  }
  bool told(NodeId node, VersionNumber version) {
    return std::ranges::count(network[node].told, version) != 0;
  }
  void expect_told(VersionNumber version) {
    for (NodeId node = 0; node < network.members(); ++node) {
      EXPECT_TRUE(told(node, version)) << node;
    }
  }

  // So much of what has to happen for one version happens, often all of it.
  void play_some(std::uint64_t most = steps_max) {
    network.pump_all();
    for (auto left = network.random().between(0, most); left > 0; --left) {
      network.step();
      network.pump_all();
    }
  }

  // The run ends and another begins, with new agents; those of `lost` with empty disks.
  void restart(const std::vector<NodeId>& lost) {
    network.run_for();  // what was on its way to the dead
    for (const NodeId node : lost) network.lose_disk(node);
    ++network.present_run;
    for (NodeId node = 0; node < network.members(); ++node) network.start(node);
    network.run_for();
    for (NodeId node = 0; node < network.members(); ++node) network[node].directory->open();
  }

  // A bit in every block of that file on that node's disk.
  void damage(NodeId disk, const std::string& name) {
    Buffer bytes = bytes_of(network, disk, name);
    for (std::size_t at = 5000; at < bytes.size(); at += 4096) bytes[at] ^= std::byte{1};
    ASSERT_TRUE(io::publish_file(*network.disks[disk], path_of(name), bytes).ok());
  }

  // A node asks the first that has parity of the rank's group, as a restart does. One rank a node,
  // of the same number.
  Result<NodeId> rebuild(NodeId asking, VersionNumber version, Rank rank) {
    std::optional<Result<NodeId>> answer;
    Node& node = network[asking];
    node.directory->lookup(
        {version, run}, rank,
        [&](const Result<std::vector<wire::peer::Holder>>& holders) {
          std::set<NodeId> agents;
          for (const auto& holder : holders.ok() ? *holders : std::vector<wire::peer::Holder>()) {
            agents.insert(holder.agent);
          }
          if (agents.empty()) {
            answer = Error(Code::not_found, "nobody has parity");
            return;
          }
          rebuilder = *agents.begin();
          node.rebuilder->ask(rebuilder, {version, run}, rank,
                              [&](const Result<NodeId>& node_of) { answer = node_of; });
        },
        /*parity=*/true);
    network.run_for(second);
    return answer ? *answer : Error(Code::timeout, "no answer");
  }
  // The lost file is where it was rebuilt, and found by who looks.
  void expect_rebuilt(const FileOf& file) {
    EXPECT_EQ(bytes_of(network, rebuilder, segment_of(file)), segments[file]) << file.node;
    EXPECT_EQ(bytes_of(network, rebuilder, manifest_of(file)), manifests[file]) << file.node;
  }
  void expect_rest() { network.expect_rest(); }

  PlayedNetwork network;
  std::map<FileOf, Buffer> segments, manifests;
  NodeId rebuilder = 0;
};

}  // namespace backstay::agent::testing
