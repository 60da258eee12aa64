// Why a version is not at a level: each cause of docs/protocol/versions.md.
#include "agent/version/why_not.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "commit_coordinator_world.h"

namespace backstay::agent::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Cause = WhyNot::Cause;

constexpr RunId run = 7;

class WhyNotTest : public ::testing::Test {
 protected:
  WhyNotTest() {
    begin_run(run);
    state().durable_settings.dir = "/shared";
    state().replicas = 1;
  }

  JobState& state() { return node_.state; }
  VersionTable& table() { return state().versions; }
  void begin_run(RunId of) {
    state().run = of;
    table().begin_run(of, 0, 2, /*protects=*/true);
  }
  void find(VersionNumber version, Level level, RunId of = run) {
    find_recorded(node_, version, of, level);
  }
  std::vector<Cause> causes(VersionNumber version, Level wanted) {
    std::vector<Cause> all;
    for (const WhyNot& why : why_not(state(), version, wanted)) all.push_back(why.cause);
    return all;
  }
  // The nearest one, which is expected.
  WhyNot why(VersionNumber version, Level wanted) {
    std::vector<WhyNot> all = why_not(state(), version, wanted);
    if (!all.empty()) return std::move(all.front());
    ADD_FAILURE() << "nothing keeps version " << version << " from " << level_name(wanted);
    return {Cause::not_there, Code::internal, ""};
  }
  Level level(VersionNumber version) { return reported(state(), version).level; }
  static Blocker blocker(VersionNumber version, Level level, std::string why = "the disk is full") {
    return {version, level, Code::no_space, std::move(why)};
  }

  ManualClock clock_;
  net::LoopbackNetwork network_{clock_};
  DecidingNode node_{0, 2, network_, clock_};
};

TEST_F(WhyNotTest, NothingKeepsWhatIsThereOrOnItsWay) {
  find(3, Level::protected_);
  EXPECT_THAT(causes(3, Level::protected_), IsEmpty());
  node_.capture(4, run);
  EXPECT_THAT(causes(4, Level::durable), IsEmpty());
  EXPECT_EQ(level(4), Level::captured);
  node_.state.memory.at(4).captured = false;
  EXPECT_THAT(causes(4, Level::captured), IsEmpty()) << "it is being captured";
  EXPECT_EQ(level(4), Level::none);
}

TEST_F(WhyNotTest, NotThere) {
  const WhyNot is = why(3, Level::captured);
  EXPECT_EQ(is.cause, Cause::not_there);
  EXPECT_EQ(is.code, Code::not_found);
  EXPECT_EQ(is.message,
            "version 3 of job job does not exist; `backstay ls job` lists what there is");
}

TEST_F(WhyNotTest, DamagedOnTheDiskUnlessItIsDurable) {
  find(3, Level::local);
  table().quarantined(3, Where::disk, "bad bytes");
  const WhyNot is = why(3, Level::protected_);
  EXPECT_EQ(is.cause, Cause::damaged);
  EXPECT_EQ(is.code, Code::corrupt);
  EXPECT_EQ(is.message, "bad bytes");
  EXPECT_EQ(level(3), Level::none);
  node_.capture(3, run);
  EXPECT_EQ(why(3, Level::local).cause, Cause::damaged);
  EXPECT_EQ(level(3), Level::captured) << "its bytes are in the pool";
  StoredVersion shared = node_.stored(3, run);
  shared.level = Level::durable;
  table().found(shared, Where::shared);
  EXPECT_THAT(causes(3, Level::durable), IsEmpty());
}

TEST_F(WhyNotTest, NotWrittenToTheDisk) {
  node_.capture(3, run).failed = Error(Code::no_space, "full");
  const WhyNot is = why(3, Level::local);
  EXPECT_EQ(is.cause, Cause::not_written);
  EXPECT_EQ(is.code, Code::no_space);
  EXPECT_EQ(is.message, "full");
  EXPECT_EQ(level(3), Level::captured);
  EXPECT_THAT(blockers_here(state()),
              ElementsAre(Blocker{3, Level::local, Code::no_space, "full"}));
  begin_run(run + 1);
  EXPECT_THAT(blockers_here(state()), IsEmpty()) << "the other nodes wait for versions of this run";
}

TEST_F(WhyNotTest, ALevelThatIsNotConfigured) {
  state().durable_settings.dir.clear();
  find(3, Level::local);
  const WhyNot is = why(3, Level::durable);
  EXPECT_EQ(is.cause, Cause::not_configured);
  EXPECT_EQ(is.code, Code::unsupported);
  EXPECT_EQ(is.message, "level durable is not configured; the highest here is protected");
}

TEST_F(WhyNotTest, BlockedByANode) {
  node_.capture(3, run);
  table().blocked(1, {"n1", {blocker(3, Level::protected_)}});
  table().blocked(2, {"n2", {blocker(3, Level::local, "broken")}});
  EXPECT_THAT(table().take_orders().changed, ElementsAre(3));
  const WhyNot is = why(3, Level::durable);
  EXPECT_EQ(is.cause, Cause::blocked);
  EXPECT_EQ(is.code, Code::no_space);
  EXPECT_EQ(is.message, "node 2 (n2) keeps version 3 from level local: broken");
  EXPECT_THAT(causes(3, Level::local), ElementsAre(Cause::blocked));
  EXPECT_THAT(causes(4, Level::durable), ElementsAre(Cause::not_there));
  find(3, Level::local);
  EXPECT_THAT(causes(3, Level::local), IsEmpty()) << "it is there all the same";
  EXPECT_THAT(causes(3, Level::durable), IsEmpty()) << "it needs no copies on other nodes";
  EXPECT_EQ(why(3, Level::protected_).message,
            "node 1 (n1) keeps version 3 from level protected: the disk is full");
}

TEST_F(WhyNotTest, ANewWordOfANodeTakesTheOldOneBack) {
  for (const VersionNumber version : {2, 3, 4}) node_.capture(version, run);
  table().blocked(1, {"n1", {blocker(3, Level::local), blocker(2, Level::local)}});
  table().take_orders();
  table().blocked(1, {"n1", {blocker(4, Level::local), blocker(2, Level::local)}});
  EXPECT_THAT(table().take_orders().changed, ElementsAre(3, 4));
  EXPECT_THAT(causes(3, Level::local), IsEmpty());
  table().blocked(1, {"n1", {}});
  EXPECT_THAT(table().take_orders().changed, ElementsAre(2, 4));
  EXPECT_THAT(causes(4, Level::local), IsEmpty());
  table().blocked(1, {"n1", {blocker(4, Level::local)}});
  begin_run(run);
  EXPECT_THAT(causes(4, Level::local), IsEmpty());
}

TEST_F(WhyNotTest, ARecordThatCouldNotBeWrittenIsForAllNodes) {
  node_.seal(3, run);
  table().record_failed(3, Level::local, Error(Code::io, "broken"));
  EXPECT_THAT(blockers_here(state()), ElementsAre(Blocker{3, Level::local, Code::io, "broken"}));
  node_.write_record(3, run);
  EXPECT_THAT(blockers_here(state()), IsEmpty());
}

TEST_F(WhyNotTest, AMemberThatIsLostKeepsAllVersions) {
  node_.capture(3, run);
  const tree::NodeSet lost = tree::NodeSet::of({{2, 1}, {5, 1}});
  table().lost(lost, 1);
  EXPECT_TRUE(table().take_orders().all_changed);
  table().lost(lost, 1);
  EXPECT_TRUE(table().take_orders().empty()) << "it is known";
  const WhyNot is = why(3, Level::local);
  EXPECT_EQ(is.cause, Cause::node_lost);
  EXPECT_EQ(is.code, Code::agent_lost);
  EXPECT_EQ(is.message, "version 3 stays captured: node 2 and 1 more are lost");
  EXPECT_TRUE(is.may_pass());
  table().lost({}, 2);
  EXPECT_TRUE(table().take_orders().all_changed);
  EXPECT_THAT(causes(3, Level::local), IsEmpty());
}

TEST_F(WhyNotTest, AMemberThatCannotBeSpokenWithKeepsAllVersions) {
  node_.capture(3, run);
  table().lost(tree::NodeSet::of({{2, 1}}), 1);
  table().take_orders();
  const Error said(Code::protocol, "it speaks version 2");
  table().cut_off(1, said);
  EXPECT_TRUE(table().take_orders().all_changed);
  table().cut_off(1, said);
  EXPECT_TRUE(table().take_orders().empty()) << "it is known";
  const WhyNot is = why(3, Level::local);
  EXPECT_EQ(is.cause, Cause::no_connection);
  EXPECT_EQ(is.code, Code::protocol);
  EXPECT_EQ(is.message, "version 3 stays captured: no connection with node 1: it speaks version 2");
  table().blocked(0, {"n0", {blocker(3, Level::local)}});
  EXPECT_EQ(why(3, Level::local).cause, Cause::blocked) << "what is nearer";
  table().take_orders();
  table().cut_off(1, std::nullopt);
  EXPECT_TRUE(table().take_orders().all_changed);
  table().cut_off(1, std::nullopt);
  EXPECT_TRUE(table().take_orders().empty());
}

TEST_F(WhyNotTest, NotCopiedToSharedStorage) {
  find(3, Level::local);
  find(4, Level::local);
  find(5, Level::local);
  table().not_copied({4, Error(Code::io, "gone"), false});
  const WhyNot is = why(4, Level::durable);
  EXPECT_EQ(is.cause, Cause::not_copied);
  EXPECT_EQ(is.code, Code::io);
  EXPECT_EQ(is.message, "gone");
  const WhyNot older = why(3, Level::durable);
  EXPECT_EQ(older.cause, Cause::left_out);
  EXPECT_EQ(older.message, "it was left out for version 4, which could not be copied: gone");
  EXPECT_THAT(causes(5, Level::durable), IsEmpty()) << "it is still to be copied";
  EXPECT_EQ(failed_copy(state())->version, 4u);
  StoredVersion shared = node_.stored(5, run);
  shared.level = Level::durable;
  table().found(shared, Where::shared);
  EXPECT_EQ(failed_copy(state()), nullptr) << "a newer one was copied";
  table().begin_copies();
  EXPECT_THAT(causes(4, Level::durable), IsEmpty());
}

TEST_F(WhyNotTest, AVersionOfAnEarlierRunIsNotProtectedByThisOne) {
  find(3, Level::protected_, run - 1);
  EXPECT_EQ(level(3), Level::local);
  const WhyNot is = why(3, Level::protected_);
  EXPECT_EQ(is.cause, Cause::earlier_run);
  EXPECT_EQ(is.code, Code::unsupported);
  EXPECT_THAT(causes(3, Level::local), IsEmpty());
  table().lost(tree::NodeSet::of({{1, 1}}), 1);
  EXPECT_THAT(causes(3, Level::protected_), ElementsAre(Cause::node_lost, Cause::earlier_run));
}

TEST_F(WhyNotTest, AnOutageOfTheDiskEndsOnceAVersionReachesIt) {
  table().not_written({3, Error(Code::no_space, "full")});
  table().not_written({4, Error(Code::no_space, "full")});
  EXPECT_EQ(table().last_not_written()->version, 4u);
  EXPECT_EQ(table().write_outages(), 1u);
  node_.seal(4, run);
  EXPECT_FALSE(table().last_not_written());
  table().not_written({5, Error(Code::no_space, "full")});
  EXPECT_EQ(table().write_outages(), 2u);
  begin_run(run + 1);
  EXPECT_FALSE(table().last_not_written());
}

}  // namespace
}  // namespace backstay::agent::testing
