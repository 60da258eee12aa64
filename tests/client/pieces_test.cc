// Pieces of saved objects, read from an agent in a thread with few fetches.
#include "client/pieces.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "client/fetch.h"
#include "session_fixture.h"

namespace backstay::client::test {
namespace {

constexpr std::size_t object_bytes = 100 * buffer_bytes + 17;

class PiecesOfObject : public testing::Test {
 protected:
  PiecesOfObject() : agent(world.socket(), {}), saved(pattern(object_bytes, 7)) {
    const auto bytes = std::as_bytes(std::span(saved));
    agent.objects[1][0].assign(bytes.begin(), bytes.end());
    wire::Hello hello;
    hello.ranks = hello.local_ranks = 1;
    auto opened = Connection::open(world.socket(), hello, no_deadline);
    EXPECT_TRUE(opened.ok()) << opened.error().to_string();
    connection = std::move(*opened);
    saved_objects.emplace(*connection, VersionNumber{1});
  }

  void want(std::size_t begin, std::size_t bytes) {
    wanted.emplace_back(begin, bytes);
    pieces.add(0, begin, bytes, [this](std::uint64_t offset, Bytes piece) {
      std::memcpy(taken.data() + offset, piece.data(), piece.size());
      return Status();
    });
  }

  // What was wanted, and nothing else.
  Data expected() const {
    Data out(object_bytes);
    for (const auto& [begin, bytes] : wanted) {
      std::copy_n(saved.begin() + static_cast<std::ptrdiff_t>(begin), bytes,
                  out.begin() + static_cast<std::ptrdiff_t>(begin));
    }
    return out;
  }

  std::ptrdiff_t fetches() const { return std::count(agent.log.begin(), agent.log.end(), "fetch"); }

  const World world;
  FakeAgent agent;
  const Data saved;
  std::unique_ptr<Connection> connection;
  std::optional<AgentObjects> saved_objects;
  Pieces pieces;
  std::vector<std::pair<std::size_t, std::size_t>> wanted;
  Data taken = Data(object_bytes);
};

TEST_F(PiecesOfObject, ComeWholeAndAlone) {
  want(0, 1);
  want(3, 5 * buffer_bytes);
  want(6 * buffer_bytes - 1, 2);
  want(50 * buffer_bytes + 9, 4);
  want(50 * buffer_bytes + 15, 0);
  want(object_bytes - 30, 30);
  ASSERT_TRUE(pieces.verify(*saved_objects).ok());
  EXPECT_EQ(taken, Data(object_bytes)) << "only verified";
  const Status got = pieces.take(*saved_objects);
  ASSERT_TRUE(got.ok()) << got.error().to_string();
  EXPECT_EQ(taken, expected());
  agent.stop();
  EXPECT_EQ(agent.problem(), "");
}

TEST_F(PiecesOfObject, ThatLieCloseComeWithOneFetch) {
  for (std::size_t at = 0; at < 10 * buffer_bytes; at += 16) want(at, 9);
  want(90 * buffer_bytes, 1);
  ASSERT_TRUE(pieces.take(*saved_objects).ok());
  EXPECT_EQ(taken, expected());
  agent.stop();
  EXPECT_EQ(fetches(), 2) << "nothing is read that is far from all of them";
}

TEST_F(PiecesOfObject, EndWithTheErrorOfATake) {
  pieces.add(0, 5, 5, [](std::uint64_t, Bytes) { return Status(Error(Code::io, "full")); });
  want(20, 5);
  EXPECT_EQ(code_of(pieces.take(*saved_objects)), Code::io);
}

}  // namespace
}  // namespace backstay::client::test
