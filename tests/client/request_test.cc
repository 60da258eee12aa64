// Requests to checkpoint that an agent counts for its ranks.
#include <gmock/gmock.h>

#include <chrono>

#include "client/session.h"
#include "session_fixture.h"
#include "thread_group.h"

namespace backstay::client::test {
namespace {

// `backstay checkpoint --wait` waits for an answer.
TEST(Request, ThatComesWhileRanksConnectAgainIsOpenUntilAVersionIsCaptured) {
  const World world("[checkpoint]\npolicy = \"request\"\ninterval_s = 0.2\n");
  FakeAgent* asked = nullptr;
  bool dropped = false;
  FakeAgent::Options options;
  options.hook = [&](const wire::Message& message) {
    if (dropped && std::holds_alternative<wire::Hello>(message)) asked->request_checkpoint(false);
    if (dropped || !std::holds_alternative<wire::Filled>(message)) return FakeAgent::Action::go_on;
    dropped = true;
    return FakeAgent::Action::drop_rank;
  };
  FakeAgent agent(world.socket(), options);
  asked = &agent;
  ThreadGroup job(2);
  testing::internal::CaptureStderr();
  job.run([&](const Group& group) {
    auto session = session_in(world, group);
    Data data = pattern(700, 1);
    ASSERT_TRUE(protect(*session, "u", data).ok());
    EXPECT_EQ(code_of(session->checkpoint()), Code::agent_lost);
    agent.end_with = Code::io;
    EXPECT_EQ(code_of(session->checkpoint()), Code::io) << "of the agent that is connected again";
    agent.end_with = Code::ok;
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    bool due = false, goes_on = true;
    while (!due && goes_on) {
      due = session->due();
      goes_on = *group.minimum(std::chrono::steady_clock::now() < until ? 1 : 0) != 0;
    }
    EXPECT_TRUE(due);
  });
  (void)testing::internal::GetCapturedStderr();
}

}  // namespace
}  // namespace backstay::client::test
