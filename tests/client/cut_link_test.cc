// Cuts of six ranks, as threads, on three nodes with a real agent each. The agents are killed at
// each step of a cut: it is given up on all ranks, and comes again once the agents are back.
#include "client/cut_link.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <functional>

#include "base/checksum.h"
#include "cut/rank.h"
#include "session_fixture.h"
#include "thread_group.h"
#include "wire/socket.h"

namespace backstay::client::test {
namespace {

constexpr int nodes = 3, ranks = 6;
using What = cut::Order::What;

class Filled final : public ObjectSource {
 public:
  explicit Filled(unsigned char fill) : fill_(fill) {}
  std::uint64_t object_bytes() const override { return 3'000'000; }
  Result<std::uint64_t> read_next(std::span<std::byte> to) override {
    std::fill(to.begin(), to.end(), std::byte{fill_});
    return checksum(to);
  }

 private:
  unsigned char fill_;
};

// What the ranks of a test know together.
struct Shared {
  std::atomic<int> connects_wanted{0};
  std::atomic<int> served{0};  // requests of rank 0
  std::atomic<int> given_up{0};
  std::atomic<bool> done{false};
  std::atomic<bool> failed{false};
  std::function<void(What)> seen_by_rank_0 = [](What) {};
};

// A rank that stands whenever it is asked to.
class Program {
 public:
  Program(Session& session, Shared& shared, int rank)
      : session_(session),
        link_(session),
        shared_(shared),
        rank_(rank),
        machine_(static_cast<cut::RankNumber>(rank), ranks) {
    machine_.open(0);
  }

  void run(int requests) {
    left_ = requests;
    if (rank_ == 0) (void)link_.request();
    while (!shared_.done) {
      if (connects_ < shared_.connects_wanted) {
        ++connects_;
        const Status found = link_.find_agent();
        EXPECT_TRUE(found.ok()) << found.error().to_string();
        if (!found.ok()) shared_.failed = shared_.done = true;
      }
      for (const auto& news : link_.take()) {
        std::visit([this](const auto& it) { on(it); }, news);
      }
      pollfd look{link_.descriptor(), POLLIN, 0};
      ::poll(&look, look.fd < 0 ? 0 : 1, 10);
    }
  }
  VersionNumber version() const { return session_.version(); }

 private:
  void on(const cut::Order& order) {
    if (rank_ == 0) shared_.seen_by_rank_0(order.what);
    machine_.receive(order);
    collect();
  }
  void on(const CutLink::Over& over) {
    if (!over.how.ok()) {
      ++shared_.given_up;
      return;
    }
    ++shared_.served;
    if (--left_ > 0) {
      (void)link_.request();
    } else {
      shared_.done = true;
    }
  }
  void on(const CutLink::AgentLost&) {
    machine_.lose_coordinator();
    collect();
    int wanted = connects_;  // unless another rank wants it already
    shared_.connects_wanted.compare_exchange_strong(wanted, connects_ + 1);
  }
  void on(const CutLink::AgentFound&) { machine_.find_coordinator(); }

  void collect() {
    for (auto outputs = machine_.take(); !outputs.empty(); outputs = machine_.take()) {
      bool saves = false;
      for (const auto& output : outputs) {
        if (const auto* report = std::get_if<cut::Report>(&output)) (void)link_.report(*report);
        if (std::holds_alternative<cut::Stop>(output)) machine_.stands();
        saves = saves || std::holds_alternative<cut::Save>(output);
      }
      Filled object(static_cast<unsigned char>(rank_));
      if (saves && link_.save(object).ok()) machine_.saved();
    }
  }

  Session& session_;
  CutLink link_;
  Shared& shared_;
  int rank_;
  cut::Rank machine_;
  int left_ = 0;
  int connects_ = 0;
};

class CutLinkTest : public ::testing::Test {
 protected:
  CutLinkTest() {
    for (int node = 0; node < nodes; ++node) {
      std::filesystem::create_directories(folder(node));
      std::ofstream(config(node)) << "[job]\nname = \"cuts\"\n[storage]\ndir = \"" << folder(node)
                                  << "/store\"\n[pool]\nsize_mib = 32\nbuffer_mib = 1\n"
                                  << "[network]\ndevice = \"lo\"\nheartbeat_s = 0.05\n"
                                  << "[protect]\nreplicas = 0\n[agent]\nsocket = \"" << socket(node)
                                  << "\"\nprogram = \"" << BACKSTAY_AGENT << "\"\n";
    }
  }
  ~CutLinkTest() override {
    for (int node = 0; node < nodes; ++node) kill_agent(node);
  }
  std::string folder(int node) const { return world_.folder() + "/n" + std::to_string(node); }
  std::string config(int node) const { return folder(node) + "/backstay.toml"; }
  std::string socket(int node) const { return folder(node) + "/agent.sock"; }

  // And waits for its end.
  void kill_agent(int node) const {
    const auto peer = wire::connect_to(socket(node));
    if (!peer.ok()) return;
    const int pid = wire::pid_of_peer(peer->get());
    if (pid <= 0) return;
    ::kill(pid, SIGKILL);
    pollfd end{peer->get(), POLLIN, 0};
    ::poll(&end, 1, 10'000);
  }

  // All ranks serve so many requests of rank 0; then the last version is on all disks.
  void run(Shared& shared, int requests) {
    ThreadGroup(ranks, nodes).run([&](const Group& group) {
      auto session = Session::start(group, config(group.node()).c_str());
      ASSERT_TRUE(session.ok()) << session.error().to_string();
      Program program(**session, shared, group.rank());
      program.run(requests);
      const auto newest = group.maximum(static_cast<std::int64_t>(program.version()));
      const Status local = (*session)->wait(static_cast<VersionNumber>(*newest), Level::local, 30);
      EXPECT_TRUE(local.ok()) << local.error().to_string();
      (void)(*session)->finish();
    });
    EXPECT_FALSE(shared.failed);
    EXPECT_EQ(shared.served, requests);
  }

  const World world_;
};

TEST_F(CutLinkTest, EachRequestIsServed) {
  Shared shared;
  run(shared, 3);
  EXPECT_EQ(shared.given_up, 0);
}

TEST_F(CutLinkTest, EachAgentIsKilledAtEachStep) {
  struct Kill {
    What step;
    int node;
  };
  std::vector<Kill> kills;
  for (const What step : {What::run_on, What::stop, What::save, What::go_on}) {
    for (int node = 0; node < nodes; ++node) kills.push_back({step, node});
  }
  Shared shared;
  std::size_t next = 0;  // of the thread of rank 0
  shared.seen_by_rank_0 = [&](What what) {
    if (next == kills.size() || what != kills[next].step) return;
    kill_agent(kills[next].node);
    ++next;
  };
  run(shared, static_cast<int>(kills.size()) + 1);
  EXPECT_EQ(next, kills.size());
}

}  // namespace
}  // namespace backstay::client::test
