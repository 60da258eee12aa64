// Streams of several ranks, as threads, at a real agent: each has its own, and what fails on one of
// them fails on all, alike.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <csignal>
#include <fstream>
#include <span>

#include "client/stream_session.h"
#include "session_fixture.h"
#include "thread_group.h"
#include "wire/socket.h"

namespace backstay::client::test {
namespace {

using testing::HasSubstr;
constexpr std::size_t stream_mib = 1 << 20;

class StreamsTest : public ::testing::Test {
 protected:
  explicit StreamsTest(int pool_mib = 6) {
    std::ofstream(config_) << "[job]\nname = \"test\"\n[storage]\ndir = \"" << world_.folder()
                           << "/store\"\n[pool]\nsize_mib = " << pool_mib
                           << "\nbuffer_mib = 1\n[agent]\nsocket = \"" << socket_
                           << "\"\nprogram = \"" << BACKSTAY_AGENT << "\"\n";
  }
  // Also that no process of it is left.
  ~StreamsTest() override {
    const auto peer = wire::connect_to(socket_);
    if (!peer.ok()) return;
    const int pid = wire::pid_of_peer(peer->get());
    if (pid <= 0) return;
    ::kill(pid, SIGKILL);
    pollfd end{peer->get(), POLLIN, 0};
    ::poll(&end, 1, 10'000);
  }
  std::unique_ptr<Session> session(const Group& group) const {
    auto started = Session::start(group, config_.c_str());
    EXPECT_TRUE(started.ok()) << started.error().to_string();
    return started.ok() ? std::move(*started) : nullptr;
  }
  static Status write(Session& session, const std::string& name, const Data& data,
                      std::size_t piece = 100'000, bool close = true) {
    StreamSession streams(session);
    BACKSTAY_ASSIGN(const auto id, streams.open(name));
    for (std::size_t at = 0; at < data.size(); at += piece) {
      BACKSTAY_TRY(streams.write(id, data.data() + at, std::min(piece, data.size() - at)));
    }
    return close ? streams.close(id) : Status();
  }
  static Data read(Session& session, VersionNumber version, const std::string& name) {
    StreamSession streams(session);
    const auto bytes = streams.bytes(version, name);
    EXPECT_TRUE(bytes.ok()) << bytes.error().to_string();
    Data data(bytes.ok() ? *bytes : 0);
    const Status done = streams.read(version, name, 0, data.data(), data.size());
    EXPECT_TRUE(done.ok()) << done.error().to_string();
    return data;
  }

  World world_;
  std::string config_ = world_.folder() + "/streams.toml";
  std::string socket_ = world_.folder() + "/streams.sock";
};

class StreamsOfASmallPool : public StreamsTest {
 protected:
  StreamsOfASmallPool() : StreamsTest(5) {}
};

TEST_F(StreamsTest, EachRankHasItsOwn) {
  ThreadGroup(3).run([&](const Group& group) {
    auto own = session(group);
    const auto rank = static_cast<unsigned>(group.rank());
    Data u = pattern(10'000, rank);
    const Data before = u;
    ASSERT_TRUE(protect(*own, "u", u).ok());
    for (unsigned round = 0; round < 3; ++round) {
      const Data mine = pattern(200'000 * rank + round, rank + 10 * round);
      if (rank > 0) {
        ASSERT_TRUE(write(*own, "mine", mine).ok());
      }
      const Status taken = own->checkpoint();
      ASSERT_TRUE(taken.ok()) << taken.error().to_string();
      const auto count = StreamSession(*own).count(own->version());
      ASSERT_TRUE(count.ok()) << count.error().to_string();
      EXPECT_EQ(*count, rank > 0 ? 1U : 0U);
      if (rank > 0) {
        EXPECT_EQ(read(*own, own->version(), "mine"), mine);
      }
    }
    EXPECT_EQ(own->version(), 3U);
    std::fill(u.begin(), u.end(), 0);
    const auto back = own->restart();
    ASSERT_TRUE(back.ok()) << back.error().to_string();
    EXPECT_EQ(u, before);
    EXPECT_TRUE(own->finish().ok());
  });
}

// Ranks that wait for each other between writes: each holds a buffer that it has begun.
TEST_F(StreamsTest, APoolOfTwoBuffersARankIsEnough) {
  ThreadGroup(3).run([&](const Group& group) {
    auto own = session(group);
    StreamSession streams(*own);
    const auto id = streams.open("long");
    ASSERT_TRUE(id.ok());
    const auto rank = static_cast<unsigned>(group.rank());
    const Data all = pattern(9 * stream_mib + 1234 * rank, rank);
    for (std::size_t at = 0; at < all.size(); at += 300'000) {
      const std::size_t bytes = std::min<std::size_t>(300'000, all.size() - at);
      ASSERT_TRUE(streams.write(*id, all.data() + at, bytes).ok());
      ASSERT_TRUE(group.maximum(0).ok());
    }
    ASSERT_TRUE(streams.close(*id).ok());
    const Status taken = own->checkpoint();
    ASSERT_TRUE(taken.ok()) << taken.error().to_string();
    EXPECT_EQ(read(*own, own->version(), "long"), all);
    EXPECT_TRUE(own->finish().ok());
  });
}

TEST_F(StreamsOfASmallPool, AreRefusedAndArraysAreNot) {
  ThreadGroup(3).run([&](const Group& group) {
    auto own = session(group);
    Data u = pattern(3 * stream_mib, 1);
    ASSERT_TRUE(protect(*own, "u", u).ok());
    if (group.rank() == 1) {
      const Status written = write(*own, "s", pattern(10, 1));
      ASSERT_EQ(code_of(written), Code::unsupported);
      EXPECT_THAT(written.error().message(), HasSubstr("pool.size_mib"));
    }
    const Status refused = own->checkpoint();
    ASSERT_EQ(code_of(refused), Code::unsupported);
    const Status taken = own->checkpoint();
    ASSERT_TRUE(taken.ok()) << taken.error().to_string();
    EXPECT_TRUE(own->finish().ok());
  });
}

TEST_F(StreamsTest, OneThatIsOpenFailsTheCheckpointOnAllRanks) {
  ThreadGroup(3).run([&](const Group& group) {
    auto own = session(group);
    const auto rank = static_cast<unsigned>(group.rank());
    ASSERT_TRUE(write(*own, "s", pattern(stream_mib + 5, rank), 1000, rank != 2).ok());
    EXPECT_EQ(code_of(own->checkpoint()), Code::state);
    const Data again = pattern(2 * stream_mib, rank + 7);
    ASSERT_TRUE(write(*own, "s", again).ok());
    const Status taken = own->checkpoint();
    ASSERT_TRUE(taken.ok()) << taken.error().to_string();
    EXPECT_EQ(read(*own, own->version(), "s"), again);
    // And so at a restart: one rank has streams, and the others hear of it first.
    if (rank == 0) {
      ASSERT_TRUE(write(*own, "t", pattern(stream_mib + 5, 1)).ok());
    }
    const auto back = own->restart();
    ASSERT_TRUE(back.ok()) << back.error().to_string();
    EXPECT_EQ(*back, own->version());
    ASSERT_TRUE(own->checkpoint().ok());
    EXPECT_TRUE(own->finish().ok());
  });
}

TEST_F(StreamsTest, ComeBackOnTheSameNumberOfRanksOnly) {
  ThreadGroup(2).run([&](const Group& group) {
    auto own = session(group);
    ASSERT_TRUE(write(*own, "s", pattern(1000, 1)).ok());
    ASSERT_TRUE(own->checkpoint().ok());
    ASSERT_TRUE(own->wait(1, Level::local, 60).ok());
    EXPECT_TRUE(own->finish().ok());
  });
  ThreadGroup(3).run([&](const Group& group) {
    auto own = session(group);
    const auto back = own->restart();
    ASSERT_EQ(code_of(back), Code::rank_count);
    EXPECT_THAT(back.error().message(), HasSubstr("streams belong to their ranks"));
    if (group.rank() < 2) {
      EXPECT_EQ(read(*own, 1, "s"), pattern(1000, 1));
    }
    EXPECT_TRUE(own->finish().ok());
  });
}

TEST_F(StreamsTest, ARankThatDiesTakesTheVersionWithIt) {
  ThreadGroup(2).run([&](const Group& group) {
    auto own = session(group);
    const Data data = pattern(3 * stream_mib, 1);
    ASSERT_TRUE(write(*own, "s", data).ok());
    ASSERT_TRUE(own->checkpoint().ok());
    ASSERT_TRUE(write(*own, "s", data).ok());
    ASSERT_TRUE(group.maximum(0).ok());
    if (group.rank() == 1) return own->leave_silently();
    Status written;
    for (int i = 0; written.ok() && i < 10'000; ++i) {
      written = write(*own, "t" + std::to_string(i), data);
    }
    EXPECT_EQ(code_of(written), Code::rank_lost);
    EXPECT_EQ(read(*own, 1, "s"), data);
    own->leave_silently();
  });
}

}  // namespace
}  // namespace backstay::client::test
