#include "wire/message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/damage.h"
#include "support/samples.h"

namespace backstay::wire {
namespace {

using testing::HasSubstr;

Buffer encoded(const Message& message) {
  auto packet = encode(message);
  EXPECT_TRUE(packet.ok());
  return std::move(packet).value();
}

// The packet decoded into the message of type T.
template <typename T>
T there_and_back(const T& message) {
  const auto back = decode(encoded(message));
  EXPECT_TRUE(back.ok()) << back.error().to_string();
  return std::get<T>(back.value());
}

// Puts `body` behind a good header.
Buffer packet_of(std::uint16_t type, const Buffer& body) {
  ByteWriter out;
  out.put(type);
  out.put(protocol_version);
  out.put(static_cast<std::uint32_t>(body.size()));
  out.put_bytes(body);
  return out.take();
}

TEST(Message, FieldsComeBackOneByOne) {
  const auto hello = there_and_back(
      Hello{"0.1.0", "heat",  99,   3,           64,    1,         2,
            5,       32,      4711, "/tmp/tier", 4,     "/shared", 5,
            3,       1 << 20, 4,    2,           "3,1", 0,         std::string(64, 'a')});
  EXPECT_EQ(hello.release, "0.1.0");
  EXPECT_EQ(hello.job, "heat");
  EXPECT_EQ(hello.run, 99U);
  EXPECT_EQ(hello.rank, 3U);
  EXPECT_EQ(hello.ranks, 64U);
  EXPECT_EQ(hello.local_rank, 1U);
  EXPECT_EQ(hello.local_ranks, 2U);
  EXPECT_EQ(hello.node, 5U);
  EXPECT_EQ(hello.nodes, 32U);
  EXPECT_EQ(hello.pid, 4711);
  EXPECT_EQ(hello.dir, "/tmp/tier");
  EXPECT_EQ(hello.keep, 4U);
  EXPECT_EQ(hello.parity, "3,1");

  const auto welcome = there_and_back(
      Welcome{"0.1.0", 1ULL << 30, 4U << 20, 16, 32, 11, true, "n3:7000", {{"a.b", "7"}}});
  EXPECT_EQ(welcome.release, "0.1.0");
  EXPECT_EQ(welcome.pool_bytes, 1ULL << 30);
  EXPECT_EQ(welcome.buffer_bytes, 4U << 20);
  EXPECT_EQ(welcome.home_first, 16U);
  EXPECT_EQ(welcome.home_count, 32U);
  EXPECT_EQ(welcome.newest, 11U);
  EXPECT_TRUE(welcome.finished);
  ASSERT_EQ(welcome.settings.size(), 1U);
  EXPECT_EQ(welcome.settings[0].key, "a.b");
  EXPECT_EQ(welcome.settings[0].value, "7");

  const auto filled = there_and_back(Filled{12, {{7, 4096, 1ULL << 40, 77}}});
  ASSERT_EQ(filled.chunks.size(), 1U);
  EXPECT_EQ(filled.version, 12U);
  EXPECT_EQ(filled.chunks[0].buffer, 7U);
  EXPECT_EQ(filled.chunks[0].length, 4096U);
  EXPECT_EQ(filled.chunks[0].object_offset, 1ULL << 40);
  EXPECT_EQ(filled.chunks[0].checksum, 77U);

  const auto verified = there_and_back(Verified{9, {1, 2, 3}, false, "why"});
  EXPECT_EQ(verified.buffers, (std::vector<std::uint32_t>{1, 2, 3}));
  EXPECT_FALSE(verified.good);
  EXPECT_EQ(verified.why, "why");

  const auto level = there_and_back(LevelIs{12, Level::captured, Code::no_space, "full"});
  EXPECT_EQ(level.level, Level::captured);
  EXPECT_EQ(level.code, Code::no_space);
  EXPECT_EQ(level.message, "full");

  const auto plan = there_and_back(Plan{9, 1ULL << 32, true, Code::corrupt, "node 3", 2, 64});
  EXPECT_EQ(plan.version, 9U);
  EXPECT_EQ(plan.object_bytes, 1ULL << 32);
  EXPECT_TRUE(plan.from_pool);
  EXPECT_EQ(plan.code, Code::corrupt);
  EXPECT_EQ(plan.message, "node 3");
  EXPECT_EQ(plan.attempt, 2U);
  EXPECT_EQ(plan.saved_ranks, 64U);
}

TEST(Message, FieldsOfWritersComeBack) {
  const auto welcome =
      there_and_back(Welcome{"0.1.0", 1ULL << 30, 4U << 20, 0, 0, 11, false, "", {}, 99, 5});
  EXPECT_EQ(welcome.run, 99U);
  EXPECT_EQ(welcome.writer, 5U);
  const auto join =
      there_and_back(Join{"0.1.0", "heat.files.n1", 4711, "/tmp/tier", 4, "/shared", 3, 1 << 20});
  EXPECT_EQ(join.release, "0.1.0");
  EXPECT_EQ(join.job, "heat.files.n1");
  EXPECT_EQ(join.pid, 4711);
  EXPECT_EQ(join.dir, "/tmp/tier");
  EXPECT_EQ(join.keep, 4U);
  EXPECT_EQ(join.durable_dir, "/shared");
  EXPECT_EQ(join.durable_keep, 3U);
  EXPECT_EQ(join.durable_bytes_per_s, 1U << 20);

  const auto opened = there_and_back(Opened{12, Code::too_large, "used up"});
  EXPECT_EQ(opened.version, 12U);
  EXPECT_EQ(opened.code, Code::too_large);
  EXPECT_EQ(opened.message, "used up");
  const auto more = there_and_back(More{12, 3});
  EXPECT_EQ(more.version, 12U);
  EXPECT_EQ(more.buffers, 3U);
  const auto finish = there_and_back(Finish{12, 1ULL << 40});
  EXPECT_EQ(finish.version, 12U);
  EXPECT_EQ(finish.object_bytes, 1ULL << 40);
  EXPECT_EQ(there_and_back(Open{7}).buffers, 7U);
  const auto abandon = there_and_back(Abandon{12, Code::io, "why"});
  EXPECT_EQ(abandon.version, 12U);
  EXPECT_EQ(abandon.code, Code::io);
  EXPECT_EQ(abandon.message, "why");
  EXPECT_EQ(there_and_back(BringHome{"/w/"}).path, "/w/");
  EXPECT_EQ(there_and_back(AtHome{"/w/", Code::io, "why"}).message, "why");
  EXPECT_EQ(there_and_back(MoveHome{3, 5, "/w/a", "/w/b", 7}).to, "/w/b");
  EXPECT_EQ(there_and_back(MovedHome{3, "/w/b", Code::busy, "why"}).code, Code::busy);
  const auto noted =
      there_and_back(NoteWrites{.sizes = {{64, 4, 100, 9}}, .waits = {{"close", 2}}});
  EXPECT_EQ(noted.sizes.at(0).bytes, 100);
  EXPECT_EQ(noted.waits.at(0).call, "close");
}

TEST(Message, UnknownTypesAreRefused) {
  for (const std::uint16_t type : {std::uint16_t{0}, std::uint16_t{26}, std::uint16_t{65535}}) {
    const auto result = decode(packet_of(type, {}));
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code(), Code::invalid);
    EXPECT_THAT(result.error().message(), HasSubstr(std::to_string(type)));
  }
}

TEST(Message, AnotherProtocolIsNamedWhateverFollows) {
  Buffer packet = packet_of(200, Buffer(100));
  test::overwrite(packet, 2, std::uint16_t{2});
  const auto result = decode(packet);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), Code::protocol);
  EXPECT_THAT(result.error().message(), HasSubstr("protocol 2, this program 1"));
}

TEST(Message, ListsThatCannotBeThereAreRefused) {
  for (const std::uint32_t count : {2U, 1024U, 1025U, 1U << 30, ~0U}) {
    ByteWriter body;
    body.put(std::uint64_t{12});
    body.put(count);
    body.put(std::uint32_t{5});
    EXPECT_FALSE(decode(packet_of(18, body.take())).ok()) << count;
  }
  ByteWriter body;
  body.put(std::uint64_t{12});
  body.put(std::uint32_t{1});
  body.put(std::uint32_t{5});
  EXPECT_TRUE(decode(packet_of(18, body.take())).ok());
}

TEST(Message, ValuesOutOfRangeAreRefused) {
  const auto refused = [](const Message& message, std::size_t at, auto value) {
    Buffer packet = encoded(message);
    test::overwrite(packet, at, value);
    return !decode(packet).ok();
  };
  EXPECT_TRUE(refused(Await{10, Level::local}, 8 + 8, std::uint8_t{5}));
  EXPECT_TRUE(refused(Restored{10, Code::ok}, 8 + 8, std::int32_t{99}));
  EXPECT_TRUE(refused(Restored{10, Code::ok}, 8 + 8, std::int32_t{-1}));
  EXPECT_TRUE(refused(Shutdown{true}, 8, std::uint8_t{2}));
  EXPECT_FALSE(refused(Shutdown{true}, 8, std::uint8_t{0}));
  EXPECT_TRUE(refused(Request{"heat", true}, 8 + 2, '\0'));
}

TEST(Message, LimitsOfEncode) {
  EXPECT_TRUE(encode(Grant{1, std::vector<std::uint32_t>(list_entries_max)}).ok());
  EXPECT_TRUE(encode(Chunks{1, true, std::vector<ChunkInPool>(list_entries_max)}).ok());
  const auto code = [](const Message& message) { return encode(message).error().code(); };
  EXPECT_EQ(code(Grant{1, std::vector<std::uint32_t>(list_entries_max + 1)}), Code::too_large);
  EXPECT_EQ(code(Answer{Code::ok, std::string(65'536, 'x')}), Code::too_large);
  EXPECT_EQ(code(Answer{Code::ok, std::string(65'535, 'x')}), Code::too_large);
  EXPECT_TRUE(encode(Answer{Code::ok, std::string(65'536 - 8 - 4 - 2, 'x')}).ok());
  EXPECT_EQ(code(Request{std::string("a\0b", 3), true}), Code::invalid);
}

TEST(Message, TooLongPacketIsRefused) {
  Buffer packet = packet_of(13, Buffer(message_bytes_max));
  EXPECT_FALSE(decode(packet).ok());
}

}  // namespace
}  // namespace backstay::wire
