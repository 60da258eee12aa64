// The main loop over a real socket: it must answer whoever comes, whatever others do.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <time.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "agent/job_lock.h"
#include "server_fixture.h"

namespace backstay::agent::testing {
namespace {

TEST_F(ServerTest, AnswersATool) { EXPECT_FALSE(status().json.empty()); }

TEST_F(ServerTest, SilentPeersHoldNobodyUp) {
  const Peer silent(path());
  const Peer another = tool();
  EXPECT_FALSE(status().json.empty());
}

TEST_F(ServerTest, EndsWithPeersConnected) {
  const Peer silent(path());
  EXPECT_FALSE(status().json.empty());
  // TearDown asks it to end and waits.
}

TEST_F(ServerTest, LeavesTheSocketOfAnotherAgent) {
  // Somebody cleaned the folder up, and another agent was started: in one step, as ours would listen again.
  const std::string new_path = path() + ".new";
  const auto other = wire::listen_at(new_path);
  ASSERT_TRUE(other.ok());
  std::filesystem::rename(new_path, path());
  end_server();
  EXPECT_TRUE(wire::connect_to(path()).ok());
}

TEST_F(ServerTest, TellsAboutAFolderWhoseNameIsNotUtf8) {
  Peer rank = join("job", folder_ + "/d\xff");
  EXPECT_EQ(rank.take<wire::Welcome>().newest, 0u);
  const auto told = nlohmann::json::parse(status().json, nullptr, false);
  ASSERT_TRUE(told.is_object());
  EXPECT_EQ(told["jobs"][0]["dir"], folder_ + "/d\xef\xbf\xbd");
}

TEST_F(ServerTest, TellsEachRankWhatItWasStartedWith) {
  Peer rank = join("job", folder_ + "/d");
  const auto settings = rank.take<wire::Welcome>().settings;
  ASSERT_EQ(settings.size(), 1u);
  EXPECT_EQ(settings[0].key + " " + settings[0].value, "pool.size_mib 1");
}

// Time that the main loop's thread has computed.
double computed_s(std::thread& thread) {
  clockid_t clock{};
  timespec used{};
  EXPECT_EQ(pthread_getcpuclockid(thread.native_handle(), &clock), 0);
  EXPECT_EQ(clock_gettime(clock, &used), 0);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

int unread_bytes(const Peer& peer) {
  int bytes = 0;
  EXPECT_EQ(ioctl(peer.socket(), FIONREAD, &bytes), 0);
  return bytes;
}

TEST_F(ServerTest, SleepsOnceASlowPeerHasReadEverything) {
  Peer slow = tool();
  int answers = 0;
  // Until exactly one answer does not fit into the socket any more.
  for (int before = -1; unread_bytes(slow) > before; ++answers) {
    before = unread_bytes(slow);
    slow.send(wire::Status{});
    EXPECT_FALSE(status().json.empty());
    ASSERT_LT(answers, 10'000);
  }
  for (int left = answers; left > 0; --left) EXPECT_FALSE(slow.take<wire::Answer>().json.empty());
  const double before_s = computed_s(thread_);
  EXPECT_FALSE(slow.readable(300));
  EXPECT_LT(computed_s(thread_) - before_s, 0.01);
  slow.send(wire::Status{});
  EXPECT_FALSE(slow.take<wire::Answer>().json.empty());
}

TEST_F(ServerTest, AFolderThatHangsHoldsNobodyElseUp) {
  std::filesystem::create_directories(folder_ + "/hung/job");
  const Fd lock(::open((folder_ + "/hung/job/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  // Whoever opens a leased file waits until the lease is given back, as on a disk that hangs.
  ::signal(SIGIO, SIG_IGN);
  if (::fcntl(lock.get(), F_SETLEASE, F_WRLCK) != 0) GTEST_SKIP() << "no leases here";
  Peer rank = join("job", folder_ + "/hung");
  EXPECT_FALSE(status().json.empty());
  Peer other = join("job", folder_ + "/good");
  EXPECT_EQ(other.take<wire::Welcome>().newest, 0u);
  EXPECT_FALSE(rank.readable(0));
  EXPECT_EQ(::fcntl(lock.get(), F_SETLEASE, F_UNLCK), 0);
  EXPECT_EQ(rank.take<wire::Welcome>().newest, 0u);
}

TEST_F(ServerTest, AJobThatAnotherAgentServesIsRefusedAndMayComeAgain) {
  auto held = lock_job(folder_ + "/d", "job");
  ASSERT_TRUE(held.ok());
  EXPECT_EQ(join("job", folder_ + "/d").take<wire::Failure>().code, Code::busy);
  held->reset();
  EXPECT_EQ(join("job", folder_ + "/d").take<wire::Welcome>().newest, 0u);
}

TEST_F(ServerTest, AFolderThatCannotBeMadeIsTheConfigurationsFault) {
  std::ofstream(folder_ + "/file") << "in the way";
  const auto refused = join("job", folder_ + "/file/store").take<wire::Failure>();
  EXPECT_EQ(refused.code, Code::config);
  EXPECT_NE(refused.message.find(folder_ + "/file: "), std::string::npos) << refused.message;
}

}  // namespace
}  // namespace backstay::agent::testing
