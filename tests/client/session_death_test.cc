// What a program sees when the agent dies at any point, refuses, or cannot be started.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <functional>
#include <future>
#include <iterator>
#include <mutex>
#include <utility>

#include "base/clock.h"
#include "base/machine.h"
#include "client/session.h"
#include "session_fixture.h"
#include "thread_group.h"

namespace backstay::client::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// --- an agent that dies --------------------------------------------------------------------------

// The name of the message on which the agent dies, before it obeys it.
class Death : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(AtMessage, Death, testing::Values("begin", "filled", "end"));

TEST_P(Death, FailsThatCheckpointOnAllRanksAndTheNextOneIsGood) {
  const World world;
  FakeAgent::Options options;
  options.buffers = 6;
  bool armed = true;
  options.hook = [&](const wire::Message& message) {
    if (!armed || std::string(name_of(message)) != GetParam()) return FakeAgent::Action::go_on;
    armed = false;
    return FakeAgent::Action::die;
  };
  auto agent = std::make_unique<FakeAgent>(world.socket(), options);
  ThreadGroup job(3);
  testing::internal::CaptureStderr();
  job.run([&](const Group& group) {
    auto session = session_in(world, group);
    Data data = pattern(2000, static_cast<unsigned>(group.rank()));
    const Data saved = data;
    ASSERT_TRUE(protect(*session, "u", data).ok());
    EXPECT_EQ(code_of(session->checkpoint()), Code::agent_lost);
    EXPECT_EQ(session->version(), 0U);
    EXPECT_EQ(code_of(session->checkpoint()), Code::agent_lost) << "no agent can be started";
    std::int64_t everybody = 1;
    everybody = *group.minimum(everybody);
    if (group.rank() == 0)
      agent = std::make_unique<FakeAgent>(world.socket(), FakeAgent::Options());
    everybody = *group.minimum(everybody);
    const Status taken = session->checkpoint();
    EXPECT_TRUE(taken.ok()) << taken.error().to_string();
    std::fill(data.begin(), data.end(), 0);
    EXPECT_TRUE(session->restart().ok());
    EXPECT_EQ(data, saved);
  });
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("backstay: "));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << "reported once: " << said;
  agent->stop();
  EXPECT_EQ(agent->problem(), "");
}

// Nothing fails, and a version that was in its memory only may be lost: that is said.
TEST(DeathBetweenCalls, IsReportedOnceAndTheNextVersionIsGood) {
  const World world;
  auto agent = std::make_unique<FakeAgent>(world.socket(), FakeAgent::Options());
  ThreadGroup job(2);
  testing::internal::CaptureStderr();
  job.run([&](const Group& group) {
    auto session = session_in(world, group);
    Data data = pattern(700, static_cast<unsigned>(group.rank()));
    ASSERT_TRUE(protect(*session, "u", data).ok());
    ASSERT_TRUE(session->checkpoint().ok());
    std::int64_t everybody = 1;
    everybody = *group.minimum(everybody);
    if (group.rank() == 0) {
      agent.reset();
      agent = std::make_unique<FakeAgent>(world.socket(), FakeAgent::Options());
    }
    everybody = *group.minimum(everybody);
    EXPECT_TRUE(session->checkpoint().ok());
    EXPECT_TRUE(session->checkpoint().ok());
  });
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(
      said,
      HasSubstr(
          "backstay: an agent of this job is gone; a new one is started; what had not reached"));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

class DeathInRestart : public testing::TestWithParam<std::tuple<const char*, int>> {};
INSTANTIATE_TEST_SUITE_P(AtMessage, DeathInRestart,
                         testing::Combine(testing::Values("restart", "verified", "restored"),
                                          testing::Values(1, 2)));

TEST_P(DeathInRestart, GivesTheWholeVersionOrAClearError) {
  const auto [name, which] = GetParam();
  const World world;
  FakeAgent::Options options;
  int left = which;
  options.hook = [&, name = std::string(name)](const wire::Message& message) {
    const bool now = name == name_of(message) && --left == 0;
    return now ? FakeAgent::Action::die : FakeAgent::Action::go_on;
  };
  FakeAgent agent(world.socket(), options);
  ThreadGroup job(2);
  std::mutex mutex;
  std::set<Code> codes;
  testing::internal::CaptureStderr();
  job.run([&](const Group& group) {
    auto session = session_in(world, group);
    const auto seed = static_cast<unsigned>(group.rank());
    Data data = pattern(700, seed);
    const Data saved = data;
    ASSERT_TRUE(protect(*session, "u", data).ok());
    ASSERT_TRUE(session->checkpoint().ok());
    refill(data, seed + 10);
    const Data before = data;
    const Code code = code_of(session->restart());
    EXPECT_TRUE(code != Code::ok || data == saved);
    EXPECT_TRUE(code != Code::agent_lost || data == before);
    const std::lock_guard lock(mutex);
    codes.insert(code);
  });
  (void)testing::internal::GetCapturedStderr();
  EXPECT_EQ(codes.size(), 1U) << "all ranks get the same answer";
  // Both ranks wait for the answer to restored: each has copied everything by then or has not
  // heard deliver. Before that nothing was touched.
  if (std::string(name) != "restored") {
    EXPECT_EQ(*codes.begin(), Code::agent_lost);
  }
}

// The agent dies where `name` comes for the `which`th time; another one is there at once. Rank 0
// has little and rank 1 more than the pool holds: at the first restored one of them usually lacks a
// part.
TEST_P(DeathInRestart, IsMadeUpForByANewAgent) {
  const auto [name, which] = GetParam();
  const World world;
  FakeAgent::Options options;
  options.never_hold = true;
  int left = which;
  options.hook = [&, name = std::string(name)](const wire::Message& message) {
    const bool now = name == name_of(message) && --left == 0;
    return now ? FakeAgent::Action::reborn : FakeAgent::Action::go_on;
  };
  FakeAgent agent(world.socket(), options);
  ThreadGroup job(2);
  testing::internal::CaptureStderr();
  job.run([&](const Group& group) {
    auto session = session_in(world, group);
    const auto seed = static_cast<unsigned>(group.rank());
    Data data = pattern(group.rank() == 0 ? 300 : 20'000, seed);
    const Data saved = data;
    ASSERT_TRUE(protect(*session, "u", data).ok());
    ASSERT_TRUE(session->checkpoint().ok());
    refill(data, seed + 10);
    const auto restarted = session->restart();
    EXPECT_TRUE(restarted.ok()) << restarted.error().to_string();
    EXPECT_EQ(data, saved);
    EXPECT_TRUE(session->checkpoint().ok());
  });
  const std::string said = testing::internal::GetCapturedStderr();
  const bool tried_again = said.find("restart tries once more") != std::string::npos;
  if (std::string(name) != "restored") {
    EXPECT_TRUE(tried_again) << said;
  } else if (which == 2) {
    EXPECT_FALSE(tried_again) << "both had everything: " << said;
  }
  EXPECT_LE(left, 0) << "the agent did not die";
  agent.stop();
  EXPECT_EQ(agent.problem(), "");
}

// Each agent dies at the first chunk that is given back after it was delivered: rank 1 has more
// chunks than the pool has buffers, so it certainly lacks a part then.
TEST(DeathInRestart, OfTheSecondAgentTooLeavesRegionsUndefined) {
  const World world;
  FakeAgent::Options options;
  options.never_hold = true;
  FakeAgent* its_agent = nullptr;
  std::size_t given_back = 0;
  options.hook = [&](const wire::Message& message) {
    const auto* verified = std::get_if<wire::Verified>(&message);
    if (verified == nullptr) return FakeAgent::Action::go_on;
    given_back += verified->buffers.size();
    if (given_back <= its_agent->chunks_stored()) return FakeAgent::Action::go_on;  // pass 1
    given_back = 0;
    return FakeAgent::Action::reborn;
  };
  FakeAgent agent(world.socket(), options);
  its_agent = &agent;
  ThreadGroup job(2);
  testing::internal::CaptureStderr();
  job.run([&](const Group& group) {
    auto session = session_in(world, group);
    Data data = pattern(group.rank() == 0 ? 300 : 20'000, 1);
    ASSERT_TRUE(protect(*session, "u", data).ok());
    ASSERT_TRUE(session->checkpoint().ok());
    const auto restarted = session->restart();
    EXPECT_EQ(code_of(restarted), Code::io);
    EXPECT_THAT(restarted.error().message(), HasSubstr("undefined"));
  });
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("restart tries once more"));
}

TEST(Death, OfARankGivesTheVersionUpForTheOthers) {
  const World world;
  FakeAgent::Options options;
  bool armed = true;
  options.hook = [&](const wire::Message& message) {
    if (!armed || !std::holds_alternative<wire::Filled>(message)) return FakeAgent::Action::go_on;
    armed = false;
    return FakeAgent::Action::drop_rank;
  };
  FakeAgent agent(world.socket(), options);
  ThreadGroup job(3);
  testing::internal::CaptureStderr();
  job.run([&](const Group& group) {
    auto session = session_in(world, group);
    Data data = pattern(700, 1);
    ASSERT_TRUE(protect(*session, "u", data).ok());
    EXPECT_EQ(code_of(session->checkpoint()), Code::agent_lost) << "for one rank the agent is gone";
    const Status again = session->checkpoint();
    EXPECT_TRUE(again.ok()) << again.error().to_string();
  });
  (void)testing::internal::GetCapturedStderr();
  agent.stop();
  EXPECT_EQ(agent.problem(), "");
  EXPECT_EQ(std::ranges::count(agent.log, "abandon"), 2) << "each gives its buffers back";
}

// Not taken for an agent that is not there: no other one is started, and the agent's words are not
// lost.
TEST(Start, BelievesAnAgentThatCannotFindTheFolder) {
  const World world;
  FakeAgent::Options options;
  options.refuse_hello = Code::not_found;
  int hellos = 0;
  options.hook = [&](const wire::Message&) { return ++hellos, FakeAgent::Action::go_on; };
  FakeAgent agent(world.socket(), options);
  const auto started = Session::start(Group(), world.config().c_str());
  EXPECT_EQ(code_of(started), Code::agent_lost);
  EXPECT_THAT(started.error().message(), HasSubstr("refused for a test"));
  agent.stop();
  EXPECT_EQ(hellos, 1);
}

// --- an agent that hangs -------------------------------------------------------------------------

constexpr const char* hang_soon = "hang_timeout_s = 0.2\n";

// Says nothing from the given message on.
FakeAgent::Options hanging_from(const char* what) {
  FakeAgent::Options options;
  options.hook = [name = std::string(what), hangs = false](const wire::Message& message) mutable {
    hangs = hangs || name == name_of(message);
    return hangs ? FakeAgent::Action::ignore : FakeAgent::Action::go_on;
  };
  return options;
}

TEST(HungAgent, IsGivenUpByEveryCallThatWaitsForIt) {
  const struct {
    const char* from;
    std::function<Status(Session&)> call;
  } cases[] = {
      {"begin", [](Session& session) { return session.checkpoint(); }},
      {"end", [](Session& session) { return session.checkpoint(); }},
      {"await", [](Session& session) { return session.wait(1, Level::local, -1); }},
      {"fetch",
       [](Session& session) {
         unsigned char byte = 0;
         return session.read_region(1, "u", &byte, 1);
       }},
  };
  for (const auto& one : cases) {
    const World world(hang_soon);
    FakeAgent agent(world.socket(), hanging_from(one.from));
    auto session = session_in(world);
    auto data = pattern(1000, 1);
    ASSERT_TRUE(protect(*session, "u", data).ok());
    const Status status = one.call(*session);
    ASSERT_EQ(code_of(status), Code::agent_lost) << one.from;
    EXPECT_THAT(status.error().message(), HasSubstr("has not answered for 0.2 s")) << one.from;
    EXPECT_THAT(status.error().message(), HasSubstr("kill -9 " + std::to_string(::getpid())));
  }
}

// Each checkpoint waited for start_timeout_s, 10 s here.
TEST(HungAgent, CostsLaterCheckpointsAMomentUntilItAnswersAgain) {
  const World world(hang_soon);
  std::atomic<bool> hangs{false};
  FakeAgent::Options options;
  options.hook = [&](const wire::Message&) {
    return hangs ? FakeAgent::Action::ignore : FakeAgent::Action::go_on;
  };
  FakeAgent agent(world.socket(), options);
  auto session = session_in(world);
  auto data = pattern(1000, 1);
  ASSERT_TRUE(protect(*session, "u", data).ok());
  hangs = true;
  testing::internal::CaptureStderr();
  const std::uint64_t began = system_clock().monotonic_ns();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(code_of(session->checkpoint()), Code::agent_lost);
  EXPECT_LT(system_clock().monotonic_ns() - began, 8'000'000'000);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("has not answered for 0.2 s"));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << "once: " << said;
  hangs = false;
  EXPECT_EQ(code_of(session->checkpoint()), Code::ok);
}

TEST(HungAgent, InARestartLeavesTheRegionsAsTheyWere) {
  const World world(std::string(hang_soon) + "[checkpoint]\nwait_at_end = false\n");
  std::string text = text_of(world.config());
  text.replace(text.find("start_timeout_s = 10"), 20, "start_timeout_s = 0.1");
  std::ofstream(world.config()) << text;
  FakeAgent agent(world.socket(), hanging_from("verified"));
  auto session = session_in(world);
  auto data = pattern(1000, 1);
  ASSERT_TRUE(protect(*session, "u", data).ok());
  ASSERT_TRUE(session->checkpoint().ok());
  refill(data, 2);
  EXPECT_EQ(code_of(session->restart()), Code::agent_lost);
  EXPECT_EQ(data, pattern(1000, 2));
}

// It has granted so much that telling it what is filled does not fit into the socket.
TEST(HungAgent, ThatDoesNotReadIsGivenUpToo) {
  const World world(hang_soon);
  std::promise<void> wake;
  FakeAgent::Options options;
  options.buffers = 20'000;
  options.hook = [awake = wake.get_future().share()](const wire::Message& message) {
    if (!std::holds_alternative<wire::Filled>(message)) return FakeAgent::Action::go_on;
    awake.wait();
    return FakeAgent::Action::die;
  };
  FakeAgent agent(world.socket(), options);
  auto session = session_in(world);
  auto data = pattern(std::size_t{options.buffers} * options.buffer_bytes / 2, 1);
  ASSERT_TRUE(protect(*session, "u", data).ok());
  const Status status = session->checkpoint();
  wake.set_value();
  ASSERT_EQ(code_of(status), Code::agent_lost);
  EXPECT_THAT(status.error().message(), HasSubstr("has not answered for 0.2 s"));
}

// It waits for its disk, or for other ranks: it has no news, but it answers.
TEST(HungAgent, IsNotOneThatAnswersAndIsBusy) {
  const World world(hang_soon);
  FakeAgent::Options options;
  int asked = 0;
  options.hook = [&](const wire::Message& message) {
    if (std::holds_alternative<wire::Begin>(message)) return FakeAgent::Action::ignore;
    const bool question = std::holds_alternative<wire::Query>(message);
    return question && ++asked == 4 ? FakeAgent::Action::die : FakeAgent::Action::go_on;
  };
  FakeAgent agent(world.socket(), options);
  auto session = session_in(world);
  auto data = pattern(1000, 1);
  ASSERT_TRUE(protect(*session, "u", data).ok());
  const Status status = session->checkpoint();
  ASSERT_EQ(code_of(status), Code::agent_lost);
  EXPECT_THAT(status.error().message(), Not(HasSubstr("has not answered")));
  agent.stop();
  EXPECT_EQ(asked, 4);
}

// --- start ---------------------------------------------------------------------------------------

TEST(Start, HandsOnWhatTheAgentRefuses) {
  for (const Code code : {Code::busy, Code::protocol, Code::unsupported}) {
    const World world;
    FakeAgent::Options options;
    options.refuse_hello = code;
    FakeAgent agent(world.socket(), options);
    const auto started = Session::start(Group(), world.config().c_str());
    EXPECT_EQ(code_of(started), code);
    EXPECT_THAT(started.error().message(), HasSubstr("refused for a test"));
  }
}

TEST(Start, SaysWhereTheAgentsProgramWasLookedFor) {
  const World world;
  const auto started = Session::start(Group(), world.config().c_str());
  ASSERT_EQ(code_of(started), Code::agent_lost);
  EXPECT_THAT(started.error().message(), HasSubstr("/nonexistent/backstayd"));
}

void wait_less(const World& world) {
  std::string text = text_of(world.config());
  text.replace(text.find("start_timeout_s = 10"), 20, "start_timeout_s = 0.1");
  std::ofstream(world.config()) << text;
}

TEST(Start, WaitsNoLongerThanConfiguredForAnAgentThatSaysNothing) {
  const World world;
  wait_less(world);
  FakeAgent::Options options;
  options.hook = [](const wire::Message&) { return FakeAgent::Action::ignore; };
  FakeAgent agent(world.socket(), options);
  const auto started = Session::start(Group(), world.config().c_str());
  ASSERT_EQ(code_of(started), Code::agent_lost);
  EXPECT_THAT(started.error().message(),
              AllOf(HasSubstr(world.socket()), HasSubstr("has not answered")));
}

// In the end there is no time left for its answer.
TEST(Start, SaysWhyAnAgentPutItOffUntilTheEnd) {
  const World world;
  wait_less(world);
  FakeAgent::Options options;
  options.refuse_hello = Code::again;
  options.hook = [first = true](const wire::Message&) mutable {
    return std::exchange(first, false) ? FakeAgent::Action::go_on : FakeAgent::Action::ignore;
  };
  FakeAgent agent(world.socket(), options);
  const auto started = Session::start(Group(), world.config().c_str());
  ASSERT_EQ(code_of(started), Code::agent_lost);
  EXPECT_THAT(started.error().message(),
              AllOf(HasSubstr("refused for a test"), HasSubstr("start_timeout_s (0.1 s)"),
                    Not(HasSubstr("has not answered"))));
}

TEST(Start, SaysOnceThatTheAgentWasStartedWithOtherSettings) {
  const World world("[pool]\nsize_mib = 64\nbuffer_mib = 8\n[network]\nport = 7070\n");
  FakeAgent::Options options;
  options.settings = {{"pool.size_mib", "32"},
                      {"pool.buffer_mib", "8"},
                      {"pool.huge_pages", "false"},
                      {"network.port", "0"},
                      {"of.later", "1"}};
  testing::internal::CaptureStderr();
  {
    FakeAgent agent(world.socket(), options);
    ThreadGroup(2).run([&](const Group& group) { (void)session_in(world, group); });
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "backstay: the agent was started with other settings, which count until it ends: "
            "pool.size_mib is 32 there, 64 here. For those of this program, end it (backstay agent "
            "stop) when no program uses it (backstay status), and start again\n");
  FakeAgent agent(world.socket(), options);
  testing::internal::CaptureStderr();
  ThreadGroup(2, 2).run([&](const Group& group) { (void)session_in(world, group); });
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("node 0 (" + host_name() + "): the agent was"), HasSubstr("node 1 ("),
                    HasSubstr("64 here; network.port is 0 there, 7070 here.")));
}

TEST(Start, TakesTheNumberAfterTheNewest) {
  const World world;
  FakeAgent agent(world.socket(), {});
  for (VersionNumber number = 1; number <= 3; ++number) {
    auto session = session_in(world);
    ASSERT_TRUE(session->checkpoint().ok());
    EXPECT_EQ(session->version(), number);
  }
}

}  // namespace
}  // namespace backstay::client::test
