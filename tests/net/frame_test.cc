#include "net/frame.h"

#include <map>

#include "aligned_bytes.h"
#include "expect_status.h"
#include "net/frame_reader.h"
#include "support/seed.h"

namespace backstay {
namespace {

using net::FrameHeader;
using net::FrameKind;
using testing::fails_with;
using testing::is_ok;
using testing::pattern;

Buffer raw(std::uint32_t length, std::uint8_t kind, std::uint64_t offer, std::uint32_t zeros = 0) {
  ByteWriter writer;
  writer.put(length);
  writer.put(kind | zeros << 8);
  writer.put(offer);
  return writer.take();
}

TEST(Frame, ByteForByte) {
  const auto bytes = net::encode({.length = 0x01020304, .kind = FrameKind::data, .offer = 9});
  EXPECT_EQ(Buffer(bytes.begin(), bytes.end()), raw(0x01020304, 6, 9));
}

TEST(Frame, EveryKindHasItsLimits) {
  struct Row {
    std::uint8_t kind;
    std::uint32_t least, most;
    std::uint64_t offer;
  };
  for (const Row& row :
       {Row{1, 0, 0, 0}, Row{2, 0, 65552, 0}, Row{3, 8, 4104, 1}, Row{4, 0, 0, 1}, Row{5, 0, 0, 1},
        Row{6, 1, 1048576, 1}, Row{7, 0, 0, 1}, Row{8, 17, 4112, 0}, Row{9, 0, 0, 1}}) {
    SCOPED_TRACE(int{row.kind});
    for (const std::uint32_t length : {row.least, row.most}) {
      const auto header = net::decode_frame_header(raw(length, row.kind, row.offer));
      ASSERT_TRUE(is_ok(header));
      EXPECT_EQ(*header, (FrameHeader{length, static_cast<FrameKind>(row.kind), row.offer}));
    }
    EXPECT_TRUE(fails_with(net::decode_frame_header(raw(row.most + 1, row.kind, row.offer)),
                           Code::protocol));
    if (row.least > 0) {
      EXPECT_TRUE(fails_with(net::decode_frame_header(raw(row.least - 1, row.kind, row.offer)),
                             Code::protocol));
    }
    EXPECT_TRUE(fails_with(net::decode_frame_header(raw(row.least, row.kind, 1 - row.offer)),
                           Code::protocol));
    EXPECT_TRUE(fails_with(net::decode_frame_header(raw(row.least, row.kind, row.offer, 1)),
                           Code::protocol));
  }
  for (const std::uint8_t kind : {0, 10, 255})
    EXPECT_TRUE(fails_with(net::decode_frame_header(raw(0, kind, 0)), Code::protocol));
}

TEST(Frame, OffersOfNothingOrTooMuch) {
  for (const std::uint64_t size : {std::uint64_t{0}, net::offer_bytes_max + 1}) {
    ByteWriter writer;
    writer.put(size);
    EXPECT_TRUE(fails_with(net::decode_offer(writer.view()), Code::protocol)) << size;
  }
  EXPECT_TRUE(fails_with(net::decode_offer(Buffer(7)), Code::protocol));
}

TEST(Frame, AnAddressForBulkData) {
  const Buffer bytes = pattern(20, 1);
  const auto bulk = net::decode_bulk(bytes);
  ASSERT_TRUE(is_ok(bulk));
  EXPECT_TRUE(std::equal(bulk->token.begin(), bulk->token.end(), bytes.begin()));
  EXPECT_EQ(bulk->address.size(), 4u);
  EXPECT_TRUE(fails_with(net::decode_bulk(Bytes(bytes).first(16)), Code::protocol));
}

// Keeps everything; data has its place in one memory.
class Collector final : public net::FrameSink {
 public:
  Result<std::span<std::byte>> place(const FrameHeader& header) override {
    const std::size_t before = memory.size();
    EXPECT_LE(before + header.length, memory.capacity());
    memory.resize(before + header.length);
    return std::span(memory).subspan(before);
  }
  Status data(const FrameHeader& header) override {
    headers.push_back(header);
    return {};
  }
  Status frame(const FrameHeader& header, Bytes body) override {
    headers.push_back(header);
    bodies.emplace_back(body.begin(), body.end());
    return {};
  }
  Buffer memory;
  std::vector<FrameHeader> headers;
  std::vector<Buffer> bodies;
};

void append(Buffer& to, const FrameHeader& header, Bytes body) {
  const auto bytes = net::encode(header);
  to.insert(to.end(), bytes.begin(), bytes.end());
  to.insert(to.end(), body.begin(), body.end());
}

TEST(FrameReader, TheCutsOfTheStreamDoNotMatter) {
  SCOPED_TRACE(test::replay());
  test::Random random;
  for (int round = 0; round < 50; ++round) {
    Buffer stream;
    Collector got;
    got.memory.reserve(40 * net::data_bytes_max);
    Buffer data;
    std::vector<FrameHeader> headers;
    std::vector<Buffer> bodies;
    for (int i = 0; i < 30; ++i) {
      FrameHeader header{static_cast<std::uint32_t>(random.between(0, 70)), FrameKind::message, 0};
      if (random.between(0, 9) == 0) header.length = net::message_bytes_max;
      if (random.coin())
        header = {static_cast<std::uint32_t>(random.between(1, 20'000)), FrameKind::data, 3};
      const Buffer body = pattern(header.length, static_cast<std::uint64_t>(i));
      append(stream, header, body);
      headers.push_back(header);
      if (header.kind == FrameKind::data)
        data.insert(data.end(), body.begin(), body.end());
      else
        bodies.push_back(body);
    }
    net::FrameReader reader;
    for (std::size_t at = 0; at < stream.size();) {
      const std::size_t part =
          std::min<std::size_t>(random.between(1, round % 2 ? 9000 : 40), stream.size() - at);
      ASSERT_TRUE(is_ok(reader.take(Bytes(stream).subspan(at, part), got)));
      at += part;
    }
    EXPECT_EQ(got.headers, headers);
    EXPECT_EQ(got.bodies, bodies);
    EXPECT_EQ(got.memory, data);
  }
}

}  // namespace
}  // namespace backstay
