// A job whose ranks agree on a cut: the version of it is held back, counts, or is given up.
#include <gtest/gtest.h>

#include "cut/message.h"
#include "cut/rank.h"
#include "harness.h"
#include "io/memory.h"
#include "tier/dir.h"

namespace backstay::agent::testing {
namespace {

class JobCut : public ::testing::Test {
 protected:
  void SetUp() override {
    job.join_all(2);
    for (cut::Rank& one : machine) one.open(0);
  }

  void ask(Rank rank) { job.receive(rank, wire::AskCut{0, 60'000}); }
  // Each rank does what it has been ordered, up to what it `tells` no more.
  void turn() {
    job.step();
    for (Rank rank = 0; rank < 2; ++rank) {
      while (job.has<wire::CutOrder>(rank)) {
        const auto whole = parts[rank].put(job.take<wire::CutOrder>(rank));
        ASSERT_TRUE(whole.ok() && whole->has_value());
        if ((*whole)->what == cut::Order::What::save) version = (*whole)->version;
        machine[rank].receive(**whole);
      }
      for (const auto& output : machine[rank].take()) {
        if (const auto* report = std::get_if<cut::Report>(&output)) tell(rank, *report);
        const bool stops = std::holds_alternative<cut::Stop>(output);
        if (stops && rank != computes) machine[rank].stands();
        if (std::holds_alternative<cut::GoOn>(output)) ++gone_on[rank];
      }
    }
  }
  void tell(Rank rank, const cut::Report& report) {
    if (report.closed > 0 && keep_closed == rank) {
      kept = report;
      return;
    }
    job.receive(rank, cut::as_messages(report)->front());
  }
  void run_until_save() {
    for (int turns = 0; turns < 20 && version == 0; ++turns) turn();
    ASSERT_NE(version, 0U);
  }
  // From `begin` to `end`.
  void image(Rank rank) {
    job.begin(rank, version, std::vector<std::byte>(3 * JobHarness::buffer_bytes, std::byte{5}));
    job.run_until("sent", [&] { return job.sent_all(rank) || job.has<wire::Captured>(rank); });
    if (!job.has<wire::Captured>(rank)) job.end(rank);
  }

  io::MemoryFileSystem disk;
  JobHarness job{16, [this] {
                   return tier::open_dir_tier(
                       disk, [] { return io::make_memory_ring({.depth = 4, .seed = 1}); },
                       {.root = "/disk"});
                 }};
  cut::Rank machine[2] = {{0, 2}, {1, 2}};
  cut::OrderParts parts[2];
  int gone_on[2] = {};
  VersionNumber version = 0;
  std::optional<Rank> computes;     // this rank does not call MPI
  std::optional<Rank> keep_closed;  // this rank does not say that it is closed
  std::optional<cut::Report> kept;
};

TEST_F(JobCut, TheVersionCountsOnceAllAreClosed) {
  keep_closed = 1;
  ask(0);
  run_until_save();
  EXPECT_EQ(version, 1U);
  for (const Rank rank : {0U, 1U}) image(rank);
  for (int turns = 0; turns < 20; ++turns) turn();
  EXPECT_FALSE(job.has<wire::Captured>(0)) << "rank 1 may still take a message in";
  keep_closed.reset();
  tell(1, *kept);
  turn();
  EXPECT_EQ(job.captured(2).code, Code::ok);
  for (cut::Rank& one : machine) one.saved();
  turn();
  turn();
  EXPECT_EQ(gone_on[0], 1);
  ASSERT_TRUE(job.has<wire::CutOver>(0));
  EXPECT_EQ(job.take<wire::CutOver>(0).code, Code::ok);
  EXPECT_FALSE(job.has<wire::CutOver>(1)) << "it has not asked";
  job.wait_local(1);
}

TEST_F(JobCut, ARankThatDiesEndsTheCutAndItsVersion) {
  ask(0);
  keep_closed = 1;
  run_until_save();
  for (const Rank rank : {0U, 1U}) image(rank);
  job.leave(1, /*goodbye=*/false);
  turn();
  EXPECT_EQ(gone_on[0], 1);
  EXPECT_EQ(job.take<wire::Captured>(0).code, Code::rank_lost);
  const auto over = job.take<wire::CutOver>(0);
  EXPECT_EQ(over.code, Code::rank_lost);
  EXPECT_NE(over.message.find("rank 1"), std::string::npos) << over.message;
  EXPECT_EQ(job.job().state().cannot_save, over.message);
}

TEST_F(JobCut, AVersionThatIsGivenUpIsRefusedLaterAndItsNumberIsUsedUp) {
  ask(0);
  keep_closed = 1;
  run_until_save();
  job.receive(1, wire::RefuseCut{kept->cut, Code::unsupported, "it has an open socket"});
  turn();
  const auto over = job.take<wire::CutOver>(0);
  EXPECT_EQ(over.code, Code::unsupported);
  EXPECT_NE(over.message.find("it has an open socket"), std::string::npos);
  EXPECT_EQ(gone_on[0] + gone_on[1], 2);
  // Rank 0 had not read that yet.
  image(0);
  EXPECT_EQ(job.take<wire::Captured>(0).code, Code::unsupported);
  keep_closed.reset();
  version = 0;
  ask(1);
  run_until_save();
  EXPECT_EQ(version, 2U);
  for (const Rank rank : {0U, 1U}) image(rank);
  turn();
  EXPECT_EQ(job.captured(2).code, Code::ok);
}

TEST_F(JobCut, WhoAskedHearsWhichRankIsLate) {
  computes = 1;
  job.receive(0, wire::AskCut{0, 20});
  job.run_until("the end", [&] {
    turn();
    return job.has<wire::CutOver>(0);
  });
  const auto over = job.take<wire::CutOver>(0);
  EXPECT_EQ(over.code, Code::again);
  EXPECT_TRUE(over.message.starts_with("rank 1 (")) << over.message;
  EXPECT_NE(over.message.find("has not called MPI"), std::string::npos) << over.message;
  EXPECT_EQ(job.job().state().cannot_save, over.message);
  // The next try comes by itself.
  computes.reset();
  version = 0;
  job.run_until("another cut", [&] {
    turn();
    return version != 0;
  });
}

}  // namespace
}  // namespace backstay::agent::testing
