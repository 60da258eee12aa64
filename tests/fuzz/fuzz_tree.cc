// Peers that say anything: an agent in the tree neither ends nor sends what cannot be sent.
//   input := (from u8, type u8, length u8, body)*      a type of 0: a tick
#include "fuzz/fuzz.h"
#include "tree/tree.h"

namespace {

using namespace backstay;

constexpr std::uint32_t nodes = 8;

void take_all(tree::Tree& agent) {
  for (const tree::Output& output : agent.take()) {
    if (const auto* sent = std::get_if<tree::Send>(&output)) {
      FUZZ_PROMISE(wire::tree::encode(sent->message).ok());
    } else if (const auto* record = std::get_if<tree::Record>(&output)) {
      FUZZ_PROMISE(record->level >= Level::local && record->level <= Level::durable);
    }
  }
  FUZZ_PROMISE(agent.connections() <= 2 + 1 + 2);
}

void give(tree::Tree& agent, NodeId from, std::uint8_t type, Bytes body) {
  ByteWriter packet;
  packet.put<std::uint16_t>(type);
  packet.put(wire::tree::protocol_version);
  packet.put(static_cast<std::uint32_t>(body.size()));
  packet.put_bytes(body);
  const auto message = wire::tree::decode(packet.view());
  if (message.ok()) agent.receive(from, *message);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tree::Settings settings;
  settings.run = 1;
  settings.nodes = nodes;
  settings.arity = 2;
  settings.strangers_max = 1;
  settings.address_of = [](NodeId) { return std::string("host"); };
  tree::Tree agent(settings, {1, 1, "host"}, 1, {{{1, 1}, Level::local, Level::none}});
  agent.start();
  const Buffer input = fuzz::input(data, size);
  ByteReader in(input);
  while (in.left() > 0) {
    const NodeId from = in.get<std::uint8_t>() % nodes;
    const auto type = in.get<std::uint8_t>();
    const Bytes body = in.bytes(std::min<std::size_t>(in.get<std::uint8_t>(), in.left()));
    if (type == 0) {
      agent.tick();
    } else {
      give(agent, from, type, body);
    }
    take_all(agent);
  }
  return 0;
}
