// Writers played over the agent's socket: they join, open versions, fill the pool together, die at
// each step, break the protocol, and find the disk full.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "format/manifest.h"
#include "format/names.h"
#include "refusing_tier.h"
#include "server_fixture.h"

namespace backstay::agent::testing {
namespace {

using nlohmann::json;

class WritersTest : public ServerTest {
 protected:
  Made tier_in(const std::string&) override {
    return Made(std::make_unique<RefusingTier>(disk_, trouble_));
  }

  // A writer that plays by the rules, as far as it is told to go.
  struct Played {
    Peer peer;
    wire::Welcome welcome = {};
    VersionNumber version = 0;
    std::vector<std::uint32_t> granted = {};
    std::uint64_t bytes = 0;
  };
  Peer join_as_writer(const std::string& job = "job.files.n1", std::uint32_t keep = 100) {
    Peer peer(path());
    wire::Join join;
    join.job = job;
    join.dir = folder_;
    join.pid = 4711;
    join.keep = keep;
    peer.send(join);
    return peer;
  }
  Played writer(std::uint32_t keep = 100) {
    Played one{join_as_writer("job.files.n1", keep)};
    one.welcome = one.peer.take<wire::Welcome>();
    return one;
  }
  static void open(Played& one, std::uint32_t buffers = 1) {
    one.peer.send(wire::Open{buffers});
    const auto opened = one.peer.take<wire::Opened>();
    EXPECT_EQ(opened.code, Code::ok);
    one.version = opened.version;
    one.bytes = 0;
  }
  static void take_grant(Played& one) {
    const auto grant = one.peer.take<wire::Grant>();
    EXPECT_EQ(grant.version, one.version);
    one.granted.insert(one.granted.end(), grant.buffers.begin(), grant.buffers.end());
  }
  static void hand_over(Played& one, std::uint32_t length = buffer_bytes) {
    if (one.granted.empty()) take_grant(one);
    ASSERT_FALSE(one.granted.empty());
    one.peer.send(wire::Filled{one.version, {{one.granted.front(), length, one.bytes, 77}}});
    one.granted.erase(one.granted.begin());
    one.bytes += length;
  }
  // A whole version of so many buffers, which must be captured.
  static void save(Played& one, std::uint32_t full_buffers) {
    open(one);
    for (std::uint32_t i = 0; i < full_buffers; ++i) {
      hand_over(one);
      one.peer.send(wire::More{one.version, 1});
    }
    take_grant(one);
    hand_over(one, 100);
    one.peer.send(wire::Finish{one.version, one.bytes});
    const auto captured = one.peer.take<wire::Captured>();
    EXPECT_EQ(captured.version, one.version);
    EXPECT_EQ(captured.code, Code::ok) << captured.message;
  }
  static wire::LevelIs level(Played& one, VersionNumber version, Level wanted = Level::local) {
    one.peer.send(wire::Await{version, wanted});
    return one.peer.take<wire::LevelIs>();
  }
  static Code failure(Peer& peer) { return peer.take<wire::Failure>().code; }

  json status() { return json::parse(ServerTest::status().json); }
  template <typename Condition>
  void until(const char* what, Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    json now = status();
    while (!condition(now) && std::chrono::steady_clock::now() < deadline) now = status();
    EXPECT_TRUE(condition(now)) << "never happened: " << what << ": " << now.dump();
  }
  void until_all_free() {
    until("all buffers free", [](const json& now) { return now["pool"]["free"] == buffers; });
  }
  std::vector<std::string> folders() { return *disk_->list("job.files.n1"); }

  std::shared_ptr<tier::Tier> disk_ = tier::make_memory_tier();
  std::shared_ptr<Warning> trouble_ = std::make_shared<Warning>();
};

TEST_F(WritersTest, AVersionIsOneObjectOfItsWriter) {
  auto a = writer(), b = writer();
  EXPECT_TRUE(a.welcome.run != 0 && a.welcome.run == b.welcome.run);
  EXPECT_EQ(a.welcome.writer, 0U);
  EXPECT_EQ(b.welcome.writer, 1U);
  save(a, 2);
  save(b, 0);
  EXPECT_GT(b.version, a.version);
  for (auto* one : {&a, &b}) {
    EXPECT_EQ(level(*one, one->version).level, Level::local);
    const auto name =
        format::manifest_name(format::version_folder("job.files.n1", one->version), 0);
    const auto bytes = disk_->get(name, 1 << 20);
    ASSERT_TRUE(bytes.ok());
    const auto manifest = format::decode_manifest(*bytes);
    ASSERT_TRUE(manifest.ok()) << manifest.error().to_string();
    ASSERT_EQ(manifest->objects.size(), 1U);
    EXPECT_EQ(manifest->objects[0].id,
              format::ObjectId(format::OwnerKind::writer, one->welcome.writer,
                               format::ObjectKind::files));
    EXPECT_EQ(manifest->objects[0].bytes, one->bytes);
    EXPECT_EQ(manifest->run, one->welcome.run);
    EXPECT_EQ(manifest->nodes, 1U);
  }
  until_all_free();
}

TEST_F(WritersTest, AnObjectMayBeLargerThanThePool) {
  auto one = writer();
  save(one, 3 * buffers);
  // Not whole in the pool: it is called captured once it is local.
  EXPECT_EQ(level(one, one.version, Level::captured).level, Level::local);
}

TEST_F(WritersTest, SeveralVersionsAreInFlight) {
  std::vector<Played> all;
  for (int i = 0; i < 4; ++i) all.push_back(writer());
  for (auto& one : all) open(one);
  std::set<VersionNumber> numbers;
  for (int round = 0; round < 2 * int{buffers}; ++round) {
    for (auto& one : all) {
      hand_over(one);
      one.peer.send(wire::More{one.version, 1});
      numbers.insert(one.version);
    }
  }
  EXPECT_EQ(numbers.size(), all.size());
  for (auto& one : all) {
    hand_over(one, 64);
    one.peer.send(wire::Finish{one.version, one.bytes});
    EXPECT_EQ(one.peer.take<wire::Captured>().code, Code::ok);
    EXPECT_EQ(level(one, one.version).level, Level::local);
  }
  until_all_free();
}

TEST_F(WritersTest, TogetherHoldHalfOfThePoolAndTheNextWaitsForOneBuffer) {
  std::vector<Played> idle;
  for (std::uint32_t i = 0; i < buffers / 2; ++i) {
    idle.push_back(writer());
    open(idle.back());
    take_grant(idle.back());
  }
  auto next = writer();
  open(next);
  ServerTest::status();
  EXPECT_FALSE(next.peer.readable(0)) << "half of the pool is for ranks";
  hand_over(idle[3]);  // not the last that it needs, but it waits for no other now
  take_grant(next);
  hand_over(next, 64);
  next.peer.send(wire::Finish{next.version, 64});
  EXPECT_EQ(next.peer.take<wire::Captured>().code, Code::ok);
}

TEST_F(WritersTest, WhoHasFewestIsServedFirst) {
  auto greedy = writer();
  open(greedy, 1000);
  while (greedy.granted.size() < buffers / 2) take_grant(greedy);
  auto modest = writer();
  open(modest);
  hand_over(greedy);
  take_grant(modest);
  ServerTest::status();
  EXPECT_FALSE(greedy.peer.readable(0));
}

TEST_F(WritersTest, AWriterThatDiesTakesItsOpenVersionWithIt) {
  auto other = writer();
  for (int step = 0; step < 4; ++step) {
    auto one = writer();
    if (step >= 1) open(one, 3);
    if (step >= 2) take_grant(one);
    if (step >= 3) hand_over(one);
    const VersionNumber version = one.version;
    one.peer.close();
    until_all_free();
    if (version == 0) continue;
    EXPECT_EQ(level(other, version).code, Code::not_found);
    save(other, 1);
    EXPECT_GT(other.version, version) << "a number is not used again";
    EXPECT_EQ(level(other, other.version).level, Level::local);
    until_all_free();
  }
  EXPECT_EQ(folders().size(), 3U) << "what was given up leaves nothing";
}

TEST_F(WritersTest, AWriterThatDiesAfterItHasFinishedIsNotNeeded) {
  auto other = writer();
  for (const std::uint32_t full : {0U, 2U, 2U * buffers}) {
    auto one = writer();
    open(one);
    for (std::uint32_t i = 0; i < full; ++i) {
      hand_over(one);
      one.peer.send(wire::More{one.version, 1});
    }
    hand_over(one, 64);
    one.peer.send(wire::Finish{one.version, one.bytes});
    const VersionNumber version = one.version;
    one.peer.close();
    until("gone", [&](const json& now) {
      return now["jobs"].size() == 1 && level(other, version).level >= Level::local;
    });
  }
  until_all_free();
}

TEST_F(WritersTest, AbandonGivesUpAndTheWriterGoesOn) {
  auto one = writer();
  open(one, 4);
  hand_over(one);
  one.peer.send(wire::Abandon{one.version});
  one.granted.clear();
  until_all_free();
  // What it had been granted for that version comes before the next is opened.
  one.peer.send(wire::Open{1});
  while (one.peer.readable(10'000)) {
    auto received = wire::receive(one.peer.socket());
    ASSERT_TRUE(received.ok());
    const auto* opened = std::get_if<wire::Opened>(&received->message);
    if (opened == nullptr) continue;
    EXPECT_GT(opened->version, one.version);
    one.version = opened->version;
    break;
  }
  one.bytes = 0;
  hand_over(one, 64);
  one.peer.send(wire::Finish{one.version, 64});
  EXPECT_EQ(one.peer.take<wire::Captured>().code, Code::ok);
  EXPECT_EQ(level(one, one.version).level, Level::local);
}

struct BrokenProtocol : WritersTest {
  using Step = std::function<void(Played&)>;
  // What a writer with one version and one buffer does.
  const std::vector<std::pair<const char*, Step>> steps = {
      {"a rank's message",
       [](Played& one) {
         one.peer.send(wire::Begin{1, 100});
       }},
      {"join twice", [](Played& one) { one.peer.send(wire::Join{}); }},
      {"no buffer", [](Played& one) { one.peer.send(wire::Open{0}); }},
      {"open twice", [](Played& one) { one.peer.send(wire::Open{1}); }},
      {"a buffer that is not its own",
       [](Played& one) {
         one.peer.send(wire::Filled{one.version, {{15, 64, 0, 1}}});
       }},
      {"a buffer beyond the pool",
       [](Played& one) {
         one.peer.send(wire::Filled{one.version, {{1u << 31, 64, 0, 1}}});
       }},
      {"empty", [](Played& one) { hand_over(one, 0); }},
      {"longer than a buffer", [](Played& one) { hand_over(one, buffer_bytes + 1); }},
      {"out of order",
       [](Played& one) {
         one.bytes = 64;
         hand_over(one, 64);
       }},
      {"the same buffer twice",
       [](Played& one) {
         const std::uint32_t buffer = one.granted.front();
         one.peer.send(wire::Filled{one.version, {{buffer, 64, 0, 1}, {buffer, 64, 64, 1}}});
       }},
      {"another length",
       [](Played& one) {
         hand_over(one, 64);
         one.peer.send(wire::Finish{one.version, 65});
       }},
      {"no footer",
       [](Played& one) {
         one.peer.send(wire::Finish{one.version, 0});
       }},
      {"another version", [](Played& one) { one.peer.send(wire::Abandon{one.version + 7}); }},
      {"more of nothing", [](Played& one) {
         one.peer.send(wire::More{one.version, 0});
       }}};
};

TEST_F(BrokenProtocol, EndsOneConnection) {
  auto other = writer();
  for (const auto& [what, step] : steps) {
    auto one = writer();
    if (std::string(what) != "no buffer") {
      open(one);
      take_grant(one);
    }
    step(one);
    const Code code = failure(one.peer);
    EXPECT_TRUE(code == Code::invalid || code == Code::state) << what;
    one.peer.close();
    until_all_free();
  }
  save(other, 1);
  EXPECT_EQ(level(other, other.version).level, Level::local);
}

TEST_F(WritersTest, MessagesOfVersionsThatAreNotThereAreNoHarm) {
  auto one = writer();
  for (const wire::Message& message :
       {wire::Message(wire::More{12, 1}), wire::Message(wire::Finish{12, 100}),
        wire::Message(wire::Abandon{12}), wire::Message(wire::Filled{12, {}})}) {
    one.peer.send(message);
  }
  save(one, 1);
}

TEST_F(WritersTest, AJobIsOfRanksOrOfWriters) {
  auto one = writer();
  Peer rank = join("job.files.n1", folder_);
  EXPECT_EQ(failure(rank), Code::state);
  Peer ranks = join("job", folder_);
  ranks.take<wire::Welcome>();
  Peer late = join_as_writer("job");
  EXPECT_EQ(failure(late), Code::state);
  save(one, 1);
}

TEST_F(WritersTest, KeepCountsVersionsAndTheNewestJoinSetsIt) {
  auto one = writer(100);
  for (int i = 0; i < 5; ++i) {
    save(one, 0);
    EXPECT_EQ(level(one, one.version).level, Level::local);
  }
  EXPECT_EQ(folders().size(), 5U);
  auto next = writer(2);
  save(next, 0);
  EXPECT_EQ(level(next, next.version).level, Level::local);
  until("removed", [&](const json&) { return folders().size() == 2; });
}

TEST_F(WritersTest, ANewRunBeginsOnceTheAgentHasClosedTheJob) {
  RunId first = 0;
  VersionNumber last = 0;
  {
    auto one = writer();
    first = one.welcome.run;
    save(one, 1);
    last = one.version;
    level(one, last);
    one.peer.send(wire::Goodbye{});
  }
  until("closed", [](const json& now) { return now["jobs"].empty(); });
  auto one = writer();
  EXPECT_NE(one.welcome.run, first);
  EXPECT_EQ(one.welcome.writer, 0U);
  EXPECT_EQ(one.welcome.newest, last);
  save(one, 1);
  EXPECT_EQ(one.version, last + 1);
}

// --- a full disk ---------------------------------------------------------------------------------

TEST_F(WritersTest, CapturedOnAFullDiskStaysAndIsWrittenOnceThereIsRoom) {
  trouble_->full = true;
  auto one = writer();
  save(one, 1);
  const VersionNumber first = one.version;
  const auto now = level(one, first);
  EXPECT_EQ(now.level, Level::captured);
  EXPECT_EQ(now.code, Code::no_space);
  save(one, 1);
  EXPECT_EQ(level(one, one.version).code, Code::no_space);
  EXPECT_EQ(level(one, first).code, Code::no_space) << "a newer version takes no place of an older";
  one.peer.send(wire::Goodbye{});
  until("left", [](const json& all) { return all["jobs"][0]["connected"] == 0; });
  trouble_->full = false;
  end_server();  // which tries once more
  EXPECT_EQ(folders().size(), 2U);
}

TEST_F(WritersTest, AFullPoolThatCannotBeWrittenIsAnErrorAndNotAHang) {
  trouble_->full = true;
  auto one = writer();
  open(one);
  std::optional<wire::Captured> outcome;
  for (std::uint32_t i = 0; i <= 2 * buffers && !outcome; ++i) {
    if (!one.peer.readable(10'000)) break;
    auto received = wire::receive(one.peer.socket());
    ASSERT_TRUE(received.ok());
    if (const auto* given_up = std::get_if<wire::Captured>(&received->message)) outcome = *given_up;
    if (const auto* grant = std::get_if<wire::Grant>(&received->message)) {
      one.granted = grant->buffers;
      hand_over(one);
      one.peer.send(wire::More{one.version, 1});
    }
  }
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->version, one.version);
  EXPECT_EQ(outcome->code, Code::no_space);
  one.peer.send(wire::Abandon{one.version});
  until_all_free();
  trouble_->full = false;
  save(one, 2);
  EXPECT_EQ(level(one, one.version).level, Level::local);
}

TEST_F(WritersTest, ABufferIsTheWritersUntilItHasHeardThatItsVersionWasGivenUp) {
  trouble_->full = true;
  auto slow = writer();
  open(slow);
  take_grant(slow);  // and it copies into it for long
  auto other = writer();
  open(other, 64);
  while (other.peer.readable(10'000)) {
    auto received = wire::receive(other.peer.socket());
    ASSERT_TRUE(received.ok());
    if (std::holds_alternative<wire::Captured>(received->message)) break;
    const auto* grant = std::get_if<wire::Grant>(&received->message);
    ASSERT_NE(grant, nullptr);
    ASSERT_NE(grant->buffers[0], slow.granted[0]);
    other.granted = grant->buffers;
    hand_over(other);
    other.peer.send(wire::More{other.version, 1});
  }
  other.peer.send(wire::Abandon{other.version});
  until("one is held", [](const json& now) { return now["pool"]["free"] == buffers - 1; });
  trouble_->full = false;
  hand_over(slow, 64);
  slow.peer.send(wire::Finish{slow.version, 64});
  EXPECT_EQ(slow.peer.take<wire::Captured>().code, Code::ok);
}

}  // namespace
}  // namespace backstay::agent::testing
