// Waiting for an agent that was started: its words decide, and who listens at the end. The agent is
// a shell script here.
#include "client/start.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/clock.h"
#include "base/fd.h"
#include "world.h"

namespace backstay::client::test {
namespace {

using testing::HasSubstr;

AgentAddress script_in(const World& world, const std::string& body) {
  const std::string path = world.folder() + "/agent";
  std::ofstream(path) << "#!/bin/sh\n" << body << "\n";
  EXPECT_EQ(::chmod(path.c_str(), 0700), 0);
  return {world.socket(), path, "", 10};
}

TEST(StartAgent, TellsWhatAnAgentSaidThatEnded) {
  const World world;
  const auto started =
      start_agent(script_in(world, "echo no memory >&2; echo at all >&2"), deadline_in(10));
  ASSERT_FALSE(started.ok());
  EXPECT_EQ(started.error().code(), Code::agent_lost);
  EXPECT_THAT(started.error().message(), HasSubstr("no memory\nat all"));
}

TEST(StartAgent, NamesTheLogOfAnAgentThatSaidNothing) {
  const World world;
  const auto started = start_agent(script_in(world, "exit 1"), deadline_in(10));
  ASSERT_FALSE(started.ok());
  EXPECT_THAT(started.error().message(), HasSubstr(world.folder() + "/agent.log"));
}

TEST(StartAgent, StartsNoneWhereTheSocketsFolderCannotBeMade) {
  const World world;
  const std::string began = world.folder() + "/began";
  AgentAddress address = script_in(world, "touch " + began);
  address.socket_path = address.program + "/folder/agent.sock";
  const auto started = start_agent(address, deadline_in(10));
  ASSERT_FALSE(started.ok());
  EXPECT_EQ(started.error().code(), Code::config);
  EXPECT_THAT(started.error().message(), HasSubstr(address.program + ": Not a directory"));
  EXPECT_FALSE(std::filesystem::exists(began));
}

TEST(StartAgent, WaitsNoLongerThanItsDeadline) {
  const World world;
  const auto started = start_agent(script_in(world, "exec sleep 1"), deadline_in(0.05));
  ASSERT_FALSE(started.ok());
  EXPECT_EQ(started.error().code(), Code::timeout);
  EXPECT_THAT(started.error().message(), HasSubstr("start_timeout_s"));
}

TEST(StartAgent, TakesTheAgentThatWasQuicker) {
  const World world;
  const FakeAgent other(world.socket(), {});
  EXPECT_TRUE(start_agent(script_in(world, "exit 3"), deadline_in(10)).ok());
}

// A debugger around the agent may hold its stderr open: the word is enough.
TEST(StartAgent, BelievesTheWordOfOneThatKeepsItsStderr) {
  const World world;
  const FakeAgent other(world.socket(), {});
  const std::string gate = world.folder() + "/gate";
  ASSERT_EQ(::mkfifo(gate.c_str(), 0600), 0);
  const Fd closed_at_the_end(::open(gate.c_str(), O_RDWR | O_CLOEXEC));
  const std::string body = "exec < " + gate + "; echo listens >&2; read line";
  EXPECT_TRUE(start_agent(script_in(world, body), no_deadline).ok());
}

}  // namespace
}  // namespace backstay::client::test
