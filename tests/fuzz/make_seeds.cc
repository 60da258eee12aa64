// Writes the first seeds of the binary parsers: make_seeds tests/fuzz/corpus
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "image/sample.h"
#include "net/frame.h"
#include "net/handshake.h"
#include "support/samples.h"

namespace {

using namespace backstay;

std::filesystem::path corpus;

void write(const std::string& parser, const std::string& name, const Buffer& bytes) {
  std::filesystem::create_directories(corpus / parser);
  std::ofstream file(corpus / parser / name, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

Buffer tail_of(std::vector<format::Region> regions) {
  const auto table_offset = format::lay_out(regions);
  return format::encode_tail(regions, table_offset);
}

// The frames of a peer that offers, is fetched from, fetches and has taken; and what else there is.
Buffer conversation(bool by_lane) {
  const auto fetch = by_lane ? net::FrameKind::fetch_bulk : net::FrameKind::fetch;
  Buffer said;
  const auto frame = [&](net::FrameKind kind, std::uint64_t offer, const Buffer& body) {
    const auto header = net::encode({static_cast<std::uint32_t>(body.size()), kind, offer});
    said.insert(said.end(), header.begin(), header.end());
    said.insert(said.end(), body.begin(), body.end());
  };
  ByteWriter offer;
  offer.put(std::uint64_t{20});
  offer.put_text("header");
  if (by_lane) frame(net::FrameKind::bulk, 0, Buffer(20));
  frame(net::FrameKind::ping, 0, {});
  frame(net::FrameKind::message, 0, Buffer(5));
  frame(net::FrameKind::offer, 1, offer.take());
  if (!by_lane) frame(net::FrameKind::data, 1, Buffer(12));
  if (!by_lane) frame(net::FrameKind::data, 1, Buffer(8));
  frame(fetch, 1, {});
  frame(net::FrameKind::taken, 1, {});
  frame(net::FrameKind::refuse, 2, {});
  return said;
}

Buffer greeting(net::Role role) {
  Buffer said =
      net::Handshake(net::Role::caller, net::Secret::random(), "node 3", net::Nonce{}).first();
  said[10] = static_cast<std::byte>(role);
  said.resize(net::hello_bytes + net::proof_bytes, std::byte{7});
  return said;
}

// A history for fuzz_tree: node 1 is accepted, adopts node 2, and hears both.
Buffer tree_history() {
  using namespace wire::tree;
  const LinkId up{1, 1, 1};
  const LinkId down{2, 1, 1};
  const Key key{1, 1, 1};
  ByteWriter out;
  const auto add = [&](std::uint8_t from, const Message& message) {
    const Buffer packet = *encode(message);
    const Bytes body = Bytes(packet).subspan(8);
    out.put(from);
    out.put(static_cast<std::uint8_t>(message.index() + 1));
    out.put(static_cast<std::uint8_t>(body.size()));
    out.put_bytes(body);
  };
  add(0, Accept{up, {0}, 0});
  add(2, Join{down, 1, 8, 2, 2, "host2"});
  add(2, Report{down, 5, 0, {{2, 1}}, {{key, 0, 2, {{2, 1}}}}, 0, {}});
  add(0, Beat{up, 9, 0, {0}, 0, {{key, 2}}, true, {{7, 1}}, 0});
  add(0, Facts{up, 0, 1, {{0, 1, 1, "name", "value"}}});
  out.put_zeros(3);  // a tick
  add(2, Leave{down});
  add(0, Leave{up});
  add(0, Refuse{{1, 1, 2}, 1, {{3, "host3"}}});
  return out.take();
}

void write_streams() {
  write("streams", "example",
        format::encode_streams(test::example_streams(), test::example_stream_text().size()));
  auto with_streams = test::example_regions();
  with_streams.insert(with_streams.begin(), format::streams_region(134));
  write("object", "streams", tail_of(with_streams));
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    test::Random random(seed);
    std::uint64_t bytes = 0;
    const auto streams = test::random_streams(random, bytes);
    write("streams", "random-" + std::to_string(seed), format::encode_streams(streams, bytes));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 1;
  corpus = argv[1];
  write("manifest", "example", encode(test::example_manifest()));
  write("parity_manifest", "example", encode(test::example_parity_manifest()));
  write("object", "example", tail_of(test::example_regions()));
  write_streams();
  write("files", "example", format::encode_files(test::example_files(), 64));
  write("commit", "example", encode(test::example_commit()));
  Buffer segment = encode(test::example_segment());
  write("segment", "whole", segment);
  segment.resize(160);
  write("segment", "fields", segment);
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    test::Random random(seed);
    const std::string name = "random-" + std::to_string(seed);
    write("manifest", name, encode(test::random_manifest(random)));
    write("object", name, tail_of(test::random_regions(random)));
    write("files", name, format::encode_files(test::random_files(random, 1000), 1024));
  }
  for (const wire::Message& message : test::one_of_each_message()) {
    write("message", "type-" + std::to_string(message.index() + 1), *wire::encode(message));
  }
  write("frame", "conversation", conversation(false));
  write("frame", "conversation-by-lane", conversation(true));
  write("handshake", "caller", greeting(net::Role::caller));
  write("handshake", "answerer", greeting(net::Role::answerer));
  for (const wire::tree::Message& message : test::one_of_each_tree_message()) {
    write("tree_message", "type-" + std::to_string(message.index() + 1),
          *wire::tree::encode(message));
  }
  for (const wire::peer::Message& message : test::one_of_each_peer_message()) {
    write("peer_message", "type-" + std::to_string(message.index() + 1),
          *wire::peer::encode(message));
  }
  write("tree", "history", tree_history());
  write("image", "example", image::encode_tail(image::test::sample_image(), image::page_bytes));
  return 0;
}
