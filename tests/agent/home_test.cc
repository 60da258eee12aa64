// Captured files come to their own paths (docs/protocol/home.md): whole or not at all, whatever
// fails, wherever the machine stops, whoever else writes there.
#include <fmt/format.h>

#include <set>

#include "home_world.h"

namespace backstay::agent {
namespace {

using namespace testing;

constexpr std::uint64_t losses = 4;

struct HomeTest : ::testing::Test {
  // Written now; a moment passes.
  Written file(const std::string& path, const std::string& bytes) {
    machine.clock.advance(3 * second);
    const Written made{.path = path, .bytes = bytes, .placed_s = machine.now_s() - 2};
    return made;
  }
  Machine machine;
};

TEST_F(HomeTest, BytesHolesModeAndTimesAreThoseOfTheProgram) {
  Written large = file("/w/large", text(50'000, 'a'));
  large.mode = 04750;
  Written sparse = file("/w/sparse", "x");
  sparse.hole = 1 << 20;
  const Written empty = file("/w/empty", "");
  HomeAgent agent(machine);
  agent.add(store(machine, 1, {large, sparse, empty}));
  agent.run();
  for (const Written& one : {large, sparse, empty}) expect_is(machine, one);
  EXPECT_EQ(names(machine, "/w"), (Names{"empty", "large", "sparse"}));
  EXPECT_EQ(mark_of(machine, 1), Names{});
  EXPECT_EQ(agent.at_home(), std::vector<VersionNumber>{1});
}

TEST_F(HomeTest, AnOldFileIsReplaced) {
  machine.put("/w/f", "old");
  const Written now = file("/w/f", "new");
  HomeAgent agent(machine);
  agent.add(store(machine, 1, {now}));
  agent.run();
  expect_is(machine, now);
}

TEST_F(HomeTest, NamesAndPathsMayBeAsLongAsTheSystemAllows) {
  std::string folder = "/w";
  for (int i = 0; i < 14; ++i) folder += "/" + std::string(255, 'd');
  ASSERT_TRUE(machine.files.make_directories(folder).ok());
  const Written now = file(folder + "/" + std::string(255, 'f'), "new");
  HomeAgent agent(machine);
  agent.add(store(machine, 1, {now}));
  agent.run();
  expect_is(machine, now);
}

TEST_F(HomeTest, ADamagedByteNeverComesToAPath) {
  const std::string segment = "/disk/" + format::segment_name(format::version_folder(job, 1), 0);
  const Written now = file("/w/f", text(9000, 'a'));
  const format::CommitRecord record = store(machine, 1, {now});
  const Buffer good = *io::read_file(machine.files, segment, 1 << 20);
  int refused = 0;
  for (std::size_t at = 0; at < good.size(); at += 131) {
    Buffer bad = good;
    bad[at] ^= std::byte{4};
    ASSERT_TRUE(io::publish_file(machine.files, segment, bad).ok());
    HomeAgent agent(machine);
    agent.add(record);
    agent.run();
    if (machine.at("/w/f") == "none") {
      ++refused;
      EXPECT_FALSE(agent.warnings().empty());
      EXPECT_EQ(names(machine, "/w"), Names{});
    } else {
      expect_is(machine, now);  // the byte lies between the chunks
      ASSERT_TRUE(machine.files.remove("/w/f").ok());
    }
    (void)machine.files.remove("/disk/" +
                               format::home_mark_name(format::version_folder(job, 1), 0));
    (void)machine.files.remove("/disk/placing");
  }
  EXPECT_GE(refused, 9000 / 131);
}

// --- what fails ----------------------------------------------------------------------------------

struct HomeAtOnce : ::testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(OneAndSeveralOrders, HomeAtOnce, ::testing::Values(1, 8));

TEST_P(HomeAtOnce, EveryCallFailsOnce) {
  for (const io::Fault fault : {io::Fault::io, io::Fault::no_space, io::Fault::permission,
                                io::Fault::torn, io::Fault::flip}) {
    for (std::uint64_t at = 1;; ++at) {
      Machine now;
      now.put("/w/f", "old");
      now.clock.advance(9 * second);
      const Written f{.path = "/w/f", .bytes = text(6000, 'a'), .placed_s = now.now_s() - 4};
      const Written g{.path = "/w/g", .bytes = "g", .placed_s = now.now_s() - 3};
      HomeAgent agent(now, {fault, at}, GetParam());
      agent.add(store(now, 1, {f}));
      agent.add(store(now, 2, {g}));
      agent.run();
      const std::string where = fmt::format("call {}: {}", at, agent.faults().chosen());
      SCOPED_TRACE(where);
      const std::string seen = now.at("/w/f");
      EXPECT_TRUE(seen == "old" || seen == f.bytes);
      if (agent.faults().chosen().empty()) break;
      agent.run_patiently();
      expect_is(now, f);
      expect_is(now, g);
      EXPECT_EQ(names(now, "/w"), (Names{"f", "g"}));
      EXPECT_EQ(mark_of(now, 1), Names{});
      EXPECT_EQ(mark_of(now, 2), Names{});
      EXPECT_EQ(agent.at_home().size(), 2U);
      if (HasFailure()) return;
    }
  }
}

// A settled file is there, and no older one comes back, wherever the machine stops.
TEST_P(HomeAtOnce, TheMachineStopsAtEveryCall) {
  for (const io::Fault fault : {io::Fault::stop, io::Fault::stop_midway}) {
    for (std::uint64_t at = 1, done = 0; done == 0; ++at) {
      for (std::uint64_t loss = 1; loss <= losses; ++loss) {
        Machine now;
        now.put("/w/f", "old");
        now.clock.advance(9 * second);
        const Written first{.path = "/w/f", .bytes = text(5000, 'a'), .placed_s = now.now_s() - 5};
        const Written other{.path = "/w/g", .bytes = "g", .placed_s = now.now_s() - 4};
        const Written last{.path = "/w/f", .bytes = text(7000, 'c'), .placed_s = now.now_s() - 3};
        const auto one = store(now, 1, {first, other});
        bool settled = false;
        {
          HomeAgent agent(now, {fault, at}, GetParam());
          agent.add(one);
          agent.run();
          const auto two = store(now, 2, {last});
          if (!agent.faults().stopped()) agent.add(two);
          settled = agent.settled("/w/f") == "ok" && !agent.faults().stopped();
          if (!agent.faults().stopped()) done = 1;
          now.crash(loss);
        }
        const std::string seen = now.at("/w/f");
        SCOPED_TRACE(fmt::format("fault {} call {} loss {}", static_cast<int>(fault), at, loss));
        EXPECT_TRUE(seen == "old" || seen == first.bytes || seen == last.bytes);
        if (settled) expect_is(now, last);
        HomeAgent next(now);
        next.add(one);
        next.add(store(now, 2, {last}));
        next.run_patiently();
        expect_is(now, last);
        expect_is(now, other);
        EXPECT_EQ(mark_of(now, 1), Names{});
        EXPECT_EQ(mark_of(now, 2), Names{});
        EXPECT_EQ(names(now, "/w"), (Names{"f", "g"}));
        EXPECT_EQ(next.warnings(), Names{});
        if (HasFailure()) return;
      }
    }
  }
}

// The program removes a file once it has heard that it is at home: no later agent makes it again.
TEST_F(HomeTest, ARemovedFileDoesNotComeBack) {
  const Written f = file("/w/f", "f"), g = file("/gone/g", "g");
  const auto record = store(machine, 1, {f, g});
  {
    HomeAgent agent(machine);
    agent.add(record);
    EXPECT_EQ(agent.settled("/w/f"), "ok");
    ASSERT_TRUE(machine.files.remove("/w/f").ok());
  }
  HomeAgent next(machine);
  next.add(record);
  next.run_patiently();
  EXPECT_EQ(machine.at("/w/f"), "none");
  EXPECT_EQ(mark_of(machine, 1), Names{"/gone/g"});
}

// Nor if it removes or renames what it finds there after the agent was killed, before the mark.
TEST_P(HomeAtOnce, TheAgentIsKilledAtEveryCallAndWhatIsAtItsPathGetsAnotherName) {
  std::set<std::string> seen;
  for (std::uint64_t at = 1, done = 0; done == 0; ++at) {
    Machine now;
    now.put("/w/x", "old");
    now.clock.advance(9 * second);
    const Written f{.path = "/w/f", .bytes = text(5000, 'a'), .placed_s = now.now_s() - 5};
    const Written x{.path = "/w/x.tmp", .bytes = text(6000, 'b'), .placed_s = now.now_s() - 4};
    const auto one = store(now, 1, {f, x});
    {
      HomeAgent agent(now, {io::Fault::stop, at}, GetParam());
      agent.add(one);
      EXPECT_TRUE(agent.plan().move(1, "/w/x.tmp", "/w/x", (now.now_s() - 2) * second).ok());
      agent.run();
      if (!agent.faults().stopped()) done = 1;
    }
    SCOPED_TRACE(fmt::format("call {}", at));
    const bool f_came = now.at("/w/f") == f.bytes, x_came = now.at("/w/x") == x.bytes;
    EXPECT_TRUE(!f_came || now.files.rename("/w/f", "/w/g").ok());
    EXPECT_TRUE(!x_came || now.files.remove("/w/x").ok());
    HomeAgent next(now);
    next.add(one);
    next.run_patiently();
    EXPECT_EQ(now.at("/w/f"), f_came ? "none" : f.bytes);
    EXPECT_EQ(now.at("/w/g"), f_came ? f.bytes : "none");
    EXPECT_EQ(now.at("/w/x"), x_came ? "none" : "old");
    EXPECT_EQ(now.at("/w/x.tmp"), x_came ? "none" : x.bytes) << "as if it had not been renamed";
    EXPECT_EQ(mark_of(now, 1), Names{});
    EXPECT_EQ(next.warnings(), Names{});
    seen.insert(fmt::format("{}{}", f_came, x_came));
    if (HasFailure()) return;
  }
  EXPECT_TRUE(seen.contains("falsefalse") && seen.contains("truetrue"));
}

// Whatever became of the temporary file in between: without its rename the file is brought.
TEST_F(HomeTest, AnAgentThatIsKilledAndOneThatFailsAndOneThatIsKilledLoseNothing) {
  const Written f = file("/w/f", text(5000, 'a'));
  const auto one = store(machine, 1, {f});
  const auto lives = [&](const io::FaultPlan& plan) {  // up to its mark
    HomeAgent agent(machine, plan);
    agent.add(one);
    (void)(agent.step() && agent.step());
    return !agent.faults().chosen().empty();
  };
  for (std::uint64_t first = 1, more = 1; more != 0; ++first) {
    more = 0;
    for (std::uint64_t second_at = 1, again = 1; again != 0; ++second_at) {
      (void)machine.files.remove("/w/f");
      for (const std::string& left : names(machine, "/w")) {
        (void)machine.files.remove("/w/" + left);
      }
      (void)machine.files.remove("/disk/placing");
      (void)machine.files.remove("/disk/" +
                                 format::home_mark_name(format::version_folder(job, 1), 0));
      more |= lives({io::Fault::stop, first}) ? 1 : 0;
      again = lives({io::Fault::no_space, second_at}) ? 1 : 0;
      SCOPED_TRACE(fmt::format("killed at call {}, no space at call {}", first, second_at));
      HomeAgent last(machine);
      last.add(one);
      last.run_patiently();
      expect_is(machine, f);
      EXPECT_EQ(names(machine, "/w"), Names{"f"});
      EXPECT_EQ(mark_of(machine, 1), Names{});
      if (HasFailure()) return;
    }
  }
}

// Without the note the rename may have failed for all that the next agent knows.
TEST_F(HomeTest, WhatCouldNotBeRenamedIsBroughtByTheNextAgent) {
  const Written f = file("/w/f", "f");
  const auto one = store(machine, 1, {f});
  int refused = 0;
  for (std::uint64_t at = 1;; ++at) {
    {
      HomeAgent agent(machine, {io::Fault::no_space, at});
      agent.add(one);
      agent.run();
      if (agent.faults().chosen().empty()) break;
      refused += agent.faults().chosen().starts_with("rename") ? 1 : 0;
    }
    HomeAgent next(machine);
    next.add(one);
    next.run_patiently();
    expect_is(machine, f);
    EXPECT_EQ(names(machine, "/w"), Names{"f"});
    (void)machine.files.remove("/disk/" +
                               format::home_mark_name(format::version_folder(job, 1), 0));
    ASSERT_TRUE(machine.files.remove("/w/f").ok());
    ASSERT_TRUE(io::gone_is_fine(machine.files.remove("/disk/placing")).ok());
  }
  EXPECT_GE(refused, 1);
}

TEST_F(HomeTest, AFolderThatIsMissingIsWaitedFor) {
  const Written f = file("/gone/f", "f");
  HomeAgent agent(machine);
  agent.add(store(machine, 1, {f}));
  EXPECT_NE(agent.settled("/gone/f").find("/gone"), std::string::npos);
  EXPECT_EQ(agent.warnings().size(), 1U);
  EXPECT_EQ(mark_of(machine, 1), Names{"/gone/f"});
  ASSERT_TRUE(machine.files.make_directories("/gone").ok());
  EXPECT_EQ(agent.settled("/gone/f"), "ok");
  expect_is(machine, f);
  EXPECT_EQ(mark_of(machine, 1), Names{});
}

TEST_F(HomeTest, AFolderAtThePathIsLeftAlone) {
  const Written f = file("/w/f", "f"), below = file("/w/g/f", "f");
  ASSERT_TRUE(machine.files.make_directories("/w/f").ok());
  machine.put("/w/g", "a file where a folder was");
  HomeAgent agent(machine);
  agent.add(store(machine, 1, {f, below}));
  EXPECT_NE(agent.settled("").find("is a folder now"), std::string::npos);
  EXPECT_EQ(names(machine, "/w"), (Names{"f", "g"}));
  EXPECT_EQ(mark_of(machine, 1), (Names{"/w/f", "/w/g/f"}));
}

TEST_F(HomeTest, AFullDiskKeepsTheOldFile) {
  machine.put("/w/f", "old");
  const Written f = file("/w/f", text(100'000, 'a')), g = file("/w/g", "g");
  const auto record = store(machine, 1, {f, g});
  machine.files.set_capacity(machine.files.used_bytes() + 10'000);
  HomeAgent agent(machine);
  agent.add(record);
  EXPECT_NE(agent.settled("").find("No space left"), std::string::npos);
  EXPECT_EQ(machine.at("/w/f"), "old");
  expect_is(machine, g);
  EXPECT_EQ(names(machine, "/w"), (Names{"f", "g"}));
  machine.files.set_capacity(1 << 30);
  agent.run_patiently(1);
  expect_is(machine, f);
}

// Left by an agent that was killed.
TEST_F(HomeTest, ATemporaryFileIsTakenOverOrRemoved) {
  const Written f = file("/w/f", "new"), g = file("/w/g", "g");
  machine.put(store::temporary_name(job, "/w/f"), text(1000, 'z'));
  machine.put(store::temporary_name(job, "/w/g"), text(1000, 'z'));
  machine.clock.advance(100 * second);
  machine.put("/w/g", "newer");
  HomeAgent agent(machine);
  agent.add(store(machine, 1, {f, g}));
  agent.run();
  expect_is(machine, f);
  EXPECT_EQ(machine.at("/w/g"), "newer");
  EXPECT_EQ(names(machine, "/w"), (Names{"f", "g"}));
}

TEST_F(HomeTest, AMarkThatIsNoMarkCountsAsNone) {
  const Written f = file("/w/f", "new");
  const auto record = store(machine, 1, {f});
  const std::string name = "/disk/" + format::home_mark_name(format::version_folder(job, 1), 0);
  const format::HomeMark other{"another", 0, 1, 9, {}};
  for (const Buffer& mark : {Buffer(7), format::encode(other)}) {
    ASSERT_TRUE(io::publish_file(machine.files, name, mark).ok());
    HomeAgent agent(machine);
    agent.add(record);
    agent.run();
    expect_is(machine, f);
    EXPECT_EQ(mark_of(machine, 1), Names{});
    ASSERT_TRUE(machine.files.remove("/w/f").ok());
    machine.crash(1);  // the same agent would know that it has brought the file
  }
}

TEST_F(HomeTest, AVersionThatWasRemovedDoesNotComeBackAsAMark) {
  const Written f = file("/w/f", "new");
  HomeAgent agent(machine);
  agent.add(store(machine, 1, {f}));
  ASSERT_TRUE(agent.step());  // looked at
  ASSERT_TRUE(agent.step());  // brought
  ASSERT_TRUE(io::remove_tree(machine.files, "/disk/" + format::version_folder(job, 1)).ok());
  agent.run();
  EXPECT_EQ(names(machine, "/disk/" + job), Names{});
}

// --- another writer ------------------------------------------------------------------------------

TEST_F(HomeTest, ANewerFileOfAnotherProgramStays) {
  const Written f = file("/w/f", "captured");
  const auto record = store(machine, 1, {f});
  machine.clock.advance(second);
  machine.put("/w/f", "newer");
  for (int life = 0; life < 2; ++life) {
    HomeAgent agent(machine);
    agent.add(record);
    EXPECT_EQ(agent.settled("/w/f"), "ok") << "the store has nothing newer";
    agent.run_patiently();
    EXPECT_EQ(machine.at("/w/f"), "newer");
    EXPECT_EQ(mark_of(machine, 1), Names{"/w/f"});
    EXPECT_TRUE(agent.at_home().empty()) << "the version stays";
    EXPECT_EQ(agent.plan().counts().kept, 1U);
    EXPECT_EQ(agent.warnings().size(), life == 0 ? 1U : 0U);
  }
  HomeAgent agent(machine);
  agent.add(record);
  const Written again = file("/w/f", "captured later");
  agent.add(store(machine, 2, {again}));
  agent.run();
  expect_is(machine, again);
  EXPECT_EQ(agent.at_home(), (std::vector<VersionNumber>{1, 2}));
}

// Its bytes are old, but it came to the path later: only the inode's time says so.
TEST_F(HomeTest, AnOldFileThatWasMovedThereLaterStays) {
  machine.put("/w/old", "moved");
  HomeAgent agent(machine);
  const Written f = file("/w/f", "captured");
  const auto record = store(machine, 1, {f});
  machine.clock.advance(second);
  ASSERT_TRUE(machine.files.rename("/w/old", "/w/f").ok());
  agent.add(record);
  agent.run();
  EXPECT_EQ(machine.at("/w/f"), "moved");
}

// The next version of a file is often written before the last one is at home.
TEST_F(HomeTest, OwnFilesAreNotTakenForAnothers) {
  HomeAgent agent(machine);
  const Written one = file("/w/f", "one"), two = file("/w/f", "two");
  machine.clock.advance(100 * second);
  agent.add(store(machine, 1, {one}));
  agent.run();
  expect_is(machine, one);
  const auto record = store(machine, 2, {two});
  agent.add(record);
  agent.run();
  expect_is(machine, two);
  // A later agent does not know whose it is, and goes by the times of the bytes.
  const Written three{.path = "/w/f", .bytes = "three", .placed_s = two.placed_s + 2};
  machine.clock.advance(100 * second);
  HomeAgent next(machine);
  next.add(store(machine, 3, {three}));
  next.run();
  expect_is(machine, three);
}

// Its version was removed, and an older one of the path turns up.
TEST_F(HomeTest, AnOlderFileNeverReplacesANewerOne) {
  HomeAgent agent(machine);
  const Written older = file("/w/f", "older"), newer = file("/w/f", "newer");
  agent.add(store(machine, 2, {newer}));
  agent.run();
  agent.plan().gone(2);
  agent.add(store(machine, 1, {older}));
  agent.run();
  expect_is(machine, newer);
  EXPECT_EQ(agent.at_home(), (std::vector<VersionNumber>{2, 1}));
  EXPECT_EQ(agent.warnings(), Names{});
}

}  // namespace
}  // namespace backstay::agent
