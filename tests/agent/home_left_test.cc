// What an agent has left at a path, or beside it, when its turn there is over
// (docs/protocol/home.md, "An agent that was killed").
#include "home_world.h"

namespace backstay::agent {
namespace {

using namespace testing;

// Its program has removed the file before, which it may once the file is at its place.
TEST(HomeLeft, AFolderThatIsGoneNeedsNoSync) {
  Machine machine;
  ASSERT_TRUE(machine.files.make_directories("/w/d").ok());
  const Written now{.path = "/w/d/f", .bytes = "new", .placed_s = machine.now_s()};
  HomeAgent agent(machine);
  agent.add(store(machine, 1, {now}));
  ASSERT_TRUE(agent.step() && agent.step());
  expect_is(machine, now);
  ASSERT_TRUE(machine.files.remove("/w/d/f").ok());
  ASSERT_TRUE(machine.files.remove("/w/d").ok());
  EXPECT_EQ(agent.settled("/w/d/f"), "ok");
  EXPECT_EQ(mark_of(machine, 1), Names{});
  EXPECT_EQ(agent.warnings(), Names{});
  ASSERT_TRUE(machine.files.make_directories("/w/d").ok());
  agent.run_patiently();
  EXPECT_EQ(machine.at("/w/d/f"), "none");
}

// The agent is killed at any call. Then somebody renames the folder, or tidies up in it. The next
// agent must not take the file for one that came to its path. (It does where the other one had
// noted its rename and was killed before it, if the temporary file alone is removed.)
TEST(HomeLeft, ATemporaryFileThatIsGoneDoesNotProveThatItsFileCameHome) {
  const auto lost_where = [](const auto& meddle) {
    int lost = 0;
    for (std::uint64_t at = 1, done = 0; done == 0; ++at) {
      Machine machine;
      EXPECT_TRUE(machine.files.make_directories("/w/d").ok());
      const Written f{.path = "/w/d/f", .bytes = text(9000, 'a'), .placed_s = machine.now_s()};
      const auto one = store(machine, 1, {f});
      {
        HomeAgent agent(machine, {io::Fault::stop, at});
        agent.add(one);
        agent.run();
        if (!agent.faults().stopped()) done = 1;
      }
      meddle(machine);
      HomeAgent next(machine);
      next.add(one);
      next.run_patiently();
      const bool there = machine.at("/w/d/f") == f.bytes || machine.at("/w/e/f") == f.bytes;
      lost += mark_of(machine, 1) == Names{} && !there ? 1 : 0;
    }
    return lost;
  };
  EXPECT_EQ(lost_where([](Machine& machine) { (void)machine.files.rename("/w/d", "/w/e"); }), 0);
  const auto tidy = [](Machine& machine) {
    for (const std::string& name : names(machine, "/w/d")) {
      if (name.starts_with(".backstay")) (void)machine.files.remove("/w/d/" + name);
    }
  };
  EXPECT_LE(lost_where(tidy), 1);
}

// A look beside each path of each version would take long on a slow file system.
TEST(HomeLeft, NothingIsLookedForBesideAFileThatIsMarkedOrThatNoAgentBeforeKnew) {
  Machine machine;
  const Written f{.path = "/w/f", .bytes = "f", .placed_s = machine.now_s()};
  const Written g{.path = "/w/g", .bytes = "g", .placed_s = machine.now_s()};
  const auto one = store(machine, 1, {f, g});
  const auto calls = [&](bool before) {
    HomeAgent agent(machine);
    agent.add(one, before);
    EXPECT_TRUE(agent.step());
    return agent.faults().calls();
  };
  (void)calls(false);  // makes the note
  EXPECT_EQ(calls(true) - calls(false), 2U) << "an agent before may have left a temporary file";
  HomeAgent agent(machine);
  agent.add(one);
  EXPECT_EQ(agent.settled(""), "ok");
  EXPECT_EQ(mark_of(machine, 1), Names{});
  EXPECT_EQ(calls(true), calls(false));
}

// No temporary file is left where the file never has its turn again: its program has called it
// back, or the next agent knows nothing of its new name, unless the agent was killed just before it
// noted that.
TEST(HomeLeft, NoTemporaryFileOfAKilledAgentStays) {
  int left = 0;
  for (std::uint64_t at = 1, done = 0; done == 0; ++at) {
    Machine now;
    now.clock.advance(9 * second);
    const Written f{.path = "/w/f", .bytes = text(5000, 'a'), .placed_s = now.now_s() - 5};
    const Written x{.path = "/w/x.tmp", .bytes = text(6000, 'b'), .placed_s = now.now_s() - 4};
    const auto one = store(now, 1, {f, x});
    {
      HomeAgent agent(now, {io::Fault::stop, at});
      agent.add(one);
      EXPECT_TRUE(agent.plan().move(1, "/w/x.tmp", "/w/x", (now.now_s() - 2) * second).ok());
      agent.run();
      if (!agent.faults().stopped()) done = 1;
    }
    HomeAgent next(now);
    next.add(one);
    (void)next.plan().move(1, "/w/f", "", 0);
    next.run_patiently();
    for (const std::string& name : names(now, "/w")) {
      left += name.starts_with(".backstay") ? 1 : 0;
    }
  }
  EXPECT_LE(left, 1);
}

}  // namespace
}  // namespace backstay::agent
