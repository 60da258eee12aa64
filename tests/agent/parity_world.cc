#include "parity_world.h"

namespace backstay::agent::testing {

std::string parity_of(const FileOf& file) {
  return format::parity_name(format::version_folder("job", file.version), file.node);
}

std::string parity_manifest_of(const FileOf& file) {
  return format::parity_manifest_name(format::version_folder("job", file.version), file.node);
}

void ParityWorld::save(VersionNumber version, std::uint32_t (*chunks)(NodeId)) {
  for (NodeId node = 0; node < network.members(); ++node) write(node, version, chunks(node));
  for (NodeId node = 0; node < network.members(); ++node) record(node, version);
}

void ParityWorld::write(NodeId node, VersionNumber version, std::uint32_t chunks) {
  const FileOf file = write_file(network, node, version, chunks);
  segments[file] = bytes_of(network, node, segment_of(file));
  manifests[file] = bytes_of(network, node, manifest_of(file));
}

void ParityWorld::record(NodeId node, VersionNumber version) {
  format::CommitRecord record;
  record.job = "job";
  record.version = version;
  record.run = run;
  network[node].parity_encoder->recorded(record);
}

void ParityWorld::expect_told(VersionNumber version) {
  for (NodeId node = 0; node < network.members(); ++node) {
    EXPECT_TRUE(told(node, version)) << node;
  }
}

void ParityWorld::play_some(std::uint64_t most) {
  network.pump_all();
  for (auto left = network.random().between(0, most); left > 0; --left) {
    network.step();
    network.pump_all();
  }
}

void ParityWorld::restart(const std::vector<NodeId>& lost) {
  network.run_for();  // what was on its way to the dead
  for (const NodeId node : lost) network.lose_disk(node);
  ++network.present_run;
  for (NodeId node = 0; node < network.members(); ++node) network.start(node);
  network.run_for();
  for (NodeId node = 0; node < network.members(); ++node) network[node].directory->open();
}

void ParityWorld::damage(NodeId disk, const std::string& name) {
  Buffer bytes = bytes_of(network, disk, name);
  for (std::size_t at = 5000; at < bytes.size(); at += 4096) bytes[at] ^= std::byte{1};
  ASSERT_TRUE(io::publish_file(*network.disks[disk], path_of(name), bytes).ok());
}

Result<NodeId> ParityWorld::rebuild(NodeId asking, VersionNumber version, Rank rank) {
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

void ParityWorld::expect_rebuilt(const FileOf& file) {
  EXPECT_EQ(bytes_of(network, rebuilder, segment_of(file)), segments[file]) << file.node;
  EXPECT_EQ(bytes_of(network, rebuilder, manifest_of(file)), manifests[file]) << file.node;
}

}  // namespace backstay::agent::testing
