// Reading files of nodes from other agents over a played network: the same bytes, bounded memory,
// and an answer to everything.
#include "agent/redundancy/transfers.h"

#include <gtest/gtest.h>

#include "agent/agents.h"

namespace backstay::agent {
namespace {

using namespace testing;

constexpr VersionNumber kept_version = 3;

struct Answers {
  std::vector<Status> all;
  FileReader::Done one() {
    return [this](const Status& status) { all.push_back(status); };
  }
  std::size_t with(Code code) const {
    return static_cast<std::size_t>(std::ranges::count_if(all, [code](const Status& status) {
      return (status.ok() ? Code::ok : status.error().code()) == code;
    }));
  }
};

class TransfersTest : public ::testing::Test {
 protected:
  TransfersTest() : network(3, {.buffers = 2}) {
    file = write_file(network, 1, kept_version);
    segment = bytes_of(network, 1, segment_of(file));
  }
  // Nothing is kept back: neither memory nor a question.
  void expect_nothing_left() {
    for (NodeId node = 0; node < network.members(); ++node) {
      if (!network.lives(node)) continue;
      EXPECT_EQ(network[node].serving.free_count(), 2u) << node;
      EXPECT_EQ(network[node].transfers->reading(), 0u) << node;
    }
  }
  PlayedNetwork network;
  FileOf file;
  Buffer segment;
  Answers answers;
};

TEST_F(TransfersTest, AnyPartFromAnotherAndFromOurselves) {
  SCOPED_TRACE(test::replay());
  for (const NodeId reader : {0u, 1u, 2u}) {
    std::vector<AlignedMemory> memory;
    for (std::uint64_t at = 0; at < segment.size(); at += 8192) {
      memory.emplace_back(std::min<std::uint64_t>(8192, segment.size() - at));
      network[reader].transfers->read(1, file, at, memory.back().span(), answers.one());
      EXPECT_TRUE(answers.all.empty()) << "from within the call";
    }
    network.run_for();
    EXPECT_EQ(answers.with(Code::ok), memory.size());
    std::uint64_t at = 0;
    for (const AlignedMemory& part : memory) {
      EXPECT_TRUE(std::equal(part.span().begin(), part.span().end(),
                             segment.begin() + static_cast<std::ptrdiff_t>(at)));
      at += part.span().size();
    }
    answers.all.clear();
    std::optional<Result<Buffer>> manifest;
    network[reader].transfers->read_manifest(1, file, [&](auto got) { manifest = std::move(got); });
    network.run_for();
    ASSERT_TRUE(manifest && manifest->ok());
    EXPECT_EQ(**manifest, bytes_of(network, 1, manifest_of(file)));
  }
  expect_nothing_left();
}

TEST_F(TransfersTest, WhatIsNotThereOrMakesNoSenseIsSaid) {
  AlignedMemory memory(4 * buffer_bytes);
  Transfers& reader = *network[0].transfers;
  reader.read(1, {kept_version, run + 1, 1}, 0, memory.span().first(4096), answers.one());
  reader.read(2, file, 0, memory.span().first(4096), answers.one());
  reader.read(1, file, segment.size(), memory.span().first(4096), answers.one());
  reader.read(1, file, 100, memory.span().first(4096), answers.one());
  reader.read(1, file, 0, memory.span(), answers.one());
  reader.read(1, file, 0, memory.span().first(0), answers.one());
  std::optional<Result<Buffer>> manifest;
  reader.read_manifest(2, file, [&](auto got) { manifest = std::move(got); });
  network.run_for();
  EXPECT_EQ(answers.with(Code::not_found), 2u);
  EXPECT_EQ(answers.with(Code::corrupt), 1u);
  EXPECT_EQ(answers.with(Code::invalid), 3u);
  ASSERT_TRUE(manifest && !manifest->ok());
  EXPECT_EQ(manifest->error().code(), Code::not_found);
  expect_nothing_left();
}

TEST_F(TransfersTest, ALineThatIsTooLongIsSentAway) {
  constexpr std::size_t asked = 5000;
  std::vector<AlignedMemory> memory;
  for (std::size_t i = 0; i < asked; ++i) {
    memory.emplace_back(4096);
    network[0].transfers->read(1, file, 0, memory.back().span(), answers.one());
  }
  // All questions arrive before one is answered.
  wire::peer::Get get;
  get.version = kept_version;
  get.run = run;
  get.node = 1;
  get.bytes = 4096;
  for (std::size_t i = 0; i < asked; ++i) network[1].transfers->on(2, get);
  network.run_for();
  EXPECT_EQ(answers.all.size(), asked);
  EXPECT_GT(answers.with(Code::again), 0u);
  EXPECT_EQ(answers.with(Code::ok) + answers.with(Code::again), asked);
  expect_nothing_left();
}

// As those of an earlier run do, whose answers were still under way.
TEST_F(TransfersTest, BuffersThatOthersGiveBackAreUsed) {
  StagingBuffers& buffers = network[1].serving;
  std::vector<Lease> taken;
  while (Lease lease = buffers.take()) taken.push_back(std::move(lease));
  AlignedMemory memory(4096);
  network[0].transfers->read(1, file, 0, memory.span(), answers.one());
  network.run_for();
  EXPECT_TRUE(answers.all.empty());
  taken.clear();
  network[1].transfers->serve();
  network.run_for();
  EXPECT_EQ(answers.with(Code::ok), 1u);
  expect_nothing_left();
}

TEST_F(TransfersTest, ALostHolderAnswersEverything) {
  SCOPED_TRACE(test::replay());
  for (int round = 0; round < 200; ++round) {
    std::vector<AlignedMemory> memory;
    for (int i = 0; i < 6; ++i) {
      memory.emplace_back(8192);
      network[0].transfers->read(1, file, 4096, memory.back().span(), answers.one());
    }
    for (std::uint64_t left = network.random().between(0, 60); left > 0; --left) network.step();
    network.cut(0, 1);
    // On the next connection, with other questions: what is left of the last one must not come in
    // between.
    for (int i = 0; i < 6; ++i) {
      memory.emplace_back(8192);
      network[0].transfers->read(1, file, 4096, memory.back().span(), answers.one());
    }
    network.run_for();
    EXPECT_EQ(answers.all.size(), memory.size());
    EXPECT_EQ(answers.with(Code::ok) + answers.with(Code::agent_lost), memory.size());
    answers.all.clear();
    expect_nothing_left();
  }
}

// Who has died and come back counts its questions from the beginning: an answer to the one before
// must not pass for one.
TEST_F(TransfersTest, AnAgentThatIsBackGetsItsOwnAnswers) {
  SCOPED_TRACE(test::replay());
  for (int round = 0; round < 200; ++round) {
    AlignedMemory before(4096), after(4096);
    network[0].transfers->read(1, file, 4096, before.span(), [](const Status&) {});
    for (std::uint64_t left = network.random().between(0, 8); left > 0; --left) network.step();
    network.kill(0);
    network.start(0);
    network[0].transfers->read(1, file, 20480, after.span(), answers.one());
    network.run_for();
    ASSERT_EQ(answers.with(Code::ok), 1u);
    EXPECT_TRUE(std::equal(after.span().begin(), after.span().end(), segment.begin() + 20480));
    answers.all.clear();
    expect_nothing_left();
  }
}

// The ticket of a question whose asker was lost may be that of another one by now.
TEST_F(TransfersTest, WhoWasLostMeanwhileIsAnsweredNothing) {
  SCOPED_TRACE(test::replay());
  for (std::uint64_t ticket = 1; ticket <= 20; ++ticket) {
    wire::peer::Get before;
    before.ticket = first_ticket + ticket - 1;
    before.version = kept_version;
    before.run = run;
    before.node = 1;
    before.offset = 4096;
    before.bytes = 4096;
    network[1].transfers->on(0, before);
    network[1].transfers->lost(0, Error(Code::agent_lost, "the connection was cut"));
    AlignedMemory after(4096);
    network[0].transfers->read(1, file, 20480, after.span(), answers.one());  // the same ticket
    network.run_for();
    ASSERT_EQ(answers.with(Code::ok), ticket);
    EXPECT_TRUE(std::equal(after.span().begin(), after.span().end(), segment.begin() + 20480));
    expect_nothing_left();
  }
}

TEST_F(TransfersTest, AnOfferThatNobodyAskedForIsRefused) {
  AlignedMemory memory(4096);
  Status ended;
  network[2].offer(0, first_ticket, memory.span(), [&](const Status& status) { ended = status; });
  // That ticket is asked of node 1, not of 2.
  network[0].transfers->read(1, file, 0, memory.span(), answers.one());
  network.run_for();
  ASSERT_FALSE(ended.ok());
  EXPECT_EQ(ended.error().code(), Code::again);
  EXPECT_EQ(answers.with(Code::ok), 1u);
  network[2].offer(0, first_ticket + 1, memory.span(),
                   [&](const Status& status) { ended = status; });
  AlignedMemory other(8192);
  network[0].transfers->read(2, file, 0, other.span(), answers.one());
  network.run_for();
  EXPECT_EQ(answers.with(Code::protocol), 1u) << "of another size than was asked for";
  expect_nothing_left();
}

TEST_F(TransfersTest, MayBeDestroyedWhileItAnswers) {
  SCOPED_TRACE(test::replay());
  for (int round = 0; round < 100; ++round) {
    AlignedMemory memory(8192);
    network[0].transfers->read(1, file, 4096, memory.span(), answers.one());
    for (std::uint64_t left = network.random().between(0, 12); left > 0; --left) network.step();
    network[1].transfers = std::make_unique<Transfers>(network[1], network[1], network[1].serving,
                                                       std::uint64_t{1} << 40);
    network.cut(0, 1);
    network.run_for();
    EXPECT_EQ(answers.all.size(), 1u);
    answers.all.clear();
    expect_nothing_left();
  }
}

}  // namespace
}  // namespace backstay::agent
