// The main loop over a real socket: it must answer whoever comes, whatever others do.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <spdlog/sinks/ostream_sink.h>
#include <sys/ioctl.h>
#include <time.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/clock.h"
#include "base/log.h"
#include "format/manifest.h"
#include "format/names.h"
#include "net/loopback.h"
#include "refusing_tier.h"
#include "server_fixture.h"
#include "store/job_lock.h"
#include "tier/memory.h"

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
  // Somebody cleaned the folder up, and another agent was started: in one step, as ours would
  // listen again.
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
  auto held = store::lock_job(folder_ + "/d", "job");
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

// One of two nodes, with a version that the other one has not said that it holds.
class InDoubtServer : public ServerTest {
 protected:
  static constexpr double stop_s = 20;

  void SetUp() override {
    disk_ = tier::make_memory_tier();
    const std::string folder = format::version_folder("job", 1);
    format::Manifest manifest;
    manifest.job = "job";
    manifest.version = 1;
    manifest.run = 7;
    manifest.nodes = manifest.ranks = 2;
    manifest.segment_bytes = 4096;
    manifest.chunk_bytes_max = buffer_bytes;
    ASSERT_TRUE(
        format::build_index(manifest, std::vector{std::pair(Rank{0}, std::uint64_t{0})}).ok());
    ASSERT_TRUE(disk_->put(format::manifest_name(folder, 0), format::encode(manifest)).ok());
    spdlog::default_logger()->sinks().push_back(sink_);
    start();
  }
  void TearDown() override {
    ServerTest::TearDown();
    auto& sinks = spdlog::default_logger()->sinks();
    std::erase(sinks, sink_);
  }
  Made tier_in(const std::string&) override {
    return Made(std::make_unique<RefusingTier>(disk_, std::make_shared<Warning>()));
  }
  void adjust(ServerOptions& options) override { options.copy_stop_s = stop_s; }
  Result<Network> make_network(const MemberId&, const std::string&) override {
    return Network{network_.make("here"), 0.01};
  }
  Peer join_two() {
    Peer rank(path());
    wire::Hello hello;
    hello.job = "job";
    hello.dir = folder_ + "/d";
    hello.run = 7;
    hello.ranks = hello.nodes = 2;
    rank.send(hello);
    return rank;
  }

  std::shared_ptr<tier::Tier> disk_;
  net::LoopbackNetwork network_{system_clock()};
  std::ostringstream log_;
  std::shared_ptr<spdlog::sinks::sink> sink_ =
      std::make_shared<spdlog::sinks::ostream_sink_mt>(log_);
};

TEST_F(InDoubtServer, DoesNotWaitForANodeThatIsLost) {
  Peer rank = join_two();  // or the job would be closed before the agent ends
  rank.take<wire::Welcome>();
  rank.send(wire::Neighbours{true, {{0, "here", ""}, {1, "nobody", ""}}});  // who never comes
  status();                                                                 // it has heard that
  ask_to_end();
  thread_.join();
  EXPECT_FALSE(server_->gave_up()) << "it waited for all of durable.stop_timeout_s";
  server_.reset();
  EXPECT_NE(log_.str().find("left undecided"), std::string::npos) << log_.str();
  EXPECT_TRUE(disk_->get(format::manifest_name(format::version_folder("job", 1), 0), 4096).ok());
}

// Who starts the program anew is refused many times a second until the agent has ended.
TEST_F(InDoubtServer, SaysOnceThatItRefusesWhoComesMeanwhile) {
  Peer rank = join_two();
  rank.take<wire::Welcome>();
  ask_to_end();
  std::string why;
  for (int times = 0; times < 3; ++times) {
    const auto refused = join("job", folder_ + "/d").take<wire::Failure>();
    EXPECT_EQ(refused.code, Code::again);
    why = refused.message;
  }
  EXPECT_NE(why.find("waits for other nodes"), std::string::npos) << why;
  end_server();  // the second signal: at once
  const std::string log = log_.str();
  const auto first = log.find("connection refused");
  ASSERT_NE(first, std::string::npos) << log;
  EXPECT_EQ(log.find("connection refused", first + 1), std::string::npos) << log;
}

}  // namespace
}  // namespace backstay::agent::testing
