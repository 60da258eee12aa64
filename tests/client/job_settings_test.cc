// Ranks that were configured differently: what counts for the job is what rank 0 has.
#include "client/job_settings.h"

#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "session_fixture.h"
#include "thread_group.h"

namespace backstay::client::test {
namespace {

TEST(JobSettings, AllTakeThoseOfRank0AndKeepTheirNodes) {
  std::array<Config, 3> configs;
  Config& first = configs[0];
  first.storage = {"/disk0", 5};
  first.durable = {"/shared", 3, 4, 6, 7};
  first.drain.nodes_max = 8;
  first.checkpoint = {"calls", 1.5, 9, 2.5, true, true, 45, 3, "fork"};
  first.protect.replicas = 2;
  first.protect.parity = "2,1";
  first.protect.rate_limit_mib_s = 11;
  first.protect.domain = "rack0";
  configs[1].storage.dir = "/disk1";
  configs[1].durable.stop_timeout_s = 12;
  configs[1].protect.domain = "rack1";
  ThreadGroup(3).run([&](const Group& group) {
    const Status status =
        take_settings_of_rank_0(group, configs[static_cast<std::size_t>(group.rank())]);
    EXPECT_TRUE(status.ok());
  });
  for (const Config& config : configs) {
    EXPECT_EQ(config.storage.keep, 5u);
    EXPECT_EQ(config.durable.dir, "/shared");
    EXPECT_EQ(config.durable.every, 3u);
    EXPECT_EQ(config.durable.keep, 4u);
    EXPECT_EQ(config.durable.rate_limit_mib_s, 6u);
    EXPECT_EQ(config.drain.nodes_max, 8u);
    EXPECT_EQ(config.checkpoint.policy, "calls");
    EXPECT_EQ(config.checkpoint.interval_s, 1.5);
    EXPECT_EQ(config.checkpoint.every_calls, 9u);
    EXPECT_EQ(config.checkpoint.mtti_s, 2.5);
    EXPECT_TRUE(config.checkpoint.strict);
    EXPECT_TRUE(config.checkpoint.wait_at_end);
    EXPECT_EQ(config.checkpoint.cut_timeout_s, 45);
    EXPECT_EQ(config.checkpoint.full_every, 3u);
    EXPECT_EQ(config.checkpoint.snapshot, "fork");
    EXPECT_EQ(config.protect.replicas, 2u);
    EXPECT_EQ(config.protect.parity, "2,1");
    EXPECT_EQ(config.protect.rate_limit_mib_s, 11u);
  }
  EXPECT_EQ(configs[1].storage.dir, "/disk1");
  EXPECT_EQ(configs[1].durable.stop_timeout_s, 12);
  EXPECT_EQ(configs[1].protect.domain, "rack1");
  EXPECT_EQ(configs[2].protect.domain, "");
}

// If they counted their calls by different numbers, one would wait in checkpoint() for the others
// without end.
TEST(JobSettings, ASessionUsesThem) {
  const World world("[checkpoint]\npolicy = \"calls\"\nevery_calls = 3\n[protect]\nreplicas = 0\n");
  const std::string other = world.folder() + "/other.toml";
  std::ofstream(other) << "[agent]\nsocket = \"" << world.socket() << "\"\n[storage]\ndir = \""
                       << world.folder() << "/store\"\n[protect]\nparity = \"2,1\"\n";
  std::vector<std::pair<std::uint32_t, std::string>> told;
  FakeAgent::Options options;
  options.hook = [&](const wire::Message& message) {
    if (const auto* hello = std::get_if<wire::Hello>(&message))
      told.emplace_back(hello->replicas, hello->parity);
    return FakeAgent::Action::go_on;
  };
  FakeAgent agent(world.socket(), options);
  std::mutex mutex;
  std::vector<std::vector<bool>> answers;
  ThreadGroup(2).run([&](const Group& group) {
    auto session = Session::start(group, (group.rank() == 0 ? world.config() : other).c_str());
    ASSERT_TRUE(session.ok()) << session.error().to_string();
    std::vector<bool> due;
    for (int call = 0; call < 7; ++call) due.push_back((*session)->due());
    EXPECT_TRUE((*session)->finish().ok());
    const std::scoped_lock lock(mutex);
    answers.push_back(due);
  });
  agent.stop();
  const std::vector<bool> every_third{false, false, true, false, false, true, false};
  EXPECT_EQ(answers, (std::vector{every_third, every_third}));
  EXPECT_EQ(told, (std::vector<std::pair<std::uint32_t, std::string>>{{0, ""}, {0, ""}}));
}

}  // namespace
}  // namespace backstay::client::test
