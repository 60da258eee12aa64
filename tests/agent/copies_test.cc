// Copies of captured files on another host (docs/protocol/home.md#copies-on-another-host): a giver
// and a keeper on two machines, with a line between them that a test can break.
#include <fmt/format.h>
#include <signal.h>
#include <sys/socket.h>

#include <set>
#include <thread>

#include "base/fd.h"
#include "home_world.h"
#include "store/home/copy_giver.h"
#include "store/home/copy_keeper.h"
#include "store/home/home_mark.h"
#include "store/home/lost_files.h"

namespace backstay::agent {
namespace {

using namespace testing;

constexpr std::uint64_t copy_crashes = 4;
constexpr std::uint64_t never = UINT64_MAX;

// The owner's machine, which also has the shared folder /w, and the keeper's.
struct CopiesWorld {
  Written file(const std::string& path, const std::string& bytes) {
    owner.put(path, "");
    owner.clock.advance(3 * second);
    return {.path = path, .bytes = bytes, .placed_s = owner.now_s() - 2};
  }

  static std::unique_ptr<tier::Tier> tier(io::FileSystem& files,
                                          const std::shared_ptr<io::Faults>& faults) {
    auto make_ring = [faults]() -> Result<std::unique_ptr<io::Ring>> {
      return io::make_faulty_ring(io::make_memory_ring({.depth = 2, .seed = 1}), faults);
    };
    return tier::open_dir_tier(files, make_ring, {.root = "/disk"}).value();
  }

  Status heard(VersionNumber version) {
    if (!agent_lives) return Error(Code::agent_lost, "no agent");
    if (is_renamed) return Error(Code::state, "renamed on its way");
    told.push_back(version);
    return {};
  }

  // One life of the keeper, of so many rounds. `plan`: what goes wrong on its machine.
  Result<store::CopyKeeper::Round> keep(io::FaultPlan plan = {}, unsigned rounds = 1) {
    faults = std::make_shared<io::Faults>(plan);
    const auto files = io::make_faulty_filesystem(keeper.files, faults);
    const auto own = tier(*files, faults);
    const auto theirs = tier(owner.files, std::make_shared<io::Faults>());
    store::CopyGiver giver(
        {.tier = theirs.get(),
         .job = job,
         .host = "owner",
         .dir = "/disk",
         .look_at_folder = [this](const std::string& path) { return look(path, 7); },
         .copied = [this](VersionNumber version, RunId) { return heard(version); }});
    questions = 0;
    store::CopyKeeper one(
        {.tier = own.get(),
         .clock = &keeper.clock,
         .job = job,
         .host = "owner",
         .look_at_folder = [this](const std::string& path) { return look(path, inode_here); }},
        [&](const store::LineMessage& question) -> Result<store::LineMessage> {
          const bool lost = ++questions >= breaks_at;
          if (lost && !answer_is_lost) return Error(Code::agent_lost, "the line is broken");
          store::LineMessage answer = giver.answer(question);
          if (lost) return Error(Code::agent_lost, "the line is broken");
          return answer;
        });
    for (; rounds > 1; --rounds) (void)one.round().ok();
    return one.round();
  }

  static Result<store::FolderFacts> look(const std::string& path, std::uint64_t inode) {
    if (path != "/w") return Error(Code::not_found, "no such folder");
    return store::FolderFacts{.inode = inode, .born_ns = 5};
  }

  // The owner is lost: its disk is not read.
  store::LostFiles::Outcome bring(VersionNumber newer_elsewhere = 0) {
    const auto own = tier(keeper.files, std::make_shared<io::Faults>());
    store::LostFiles lost({.name = "job.files of lost hosts",
                           .from = own.get(),
                           .files = &owner.files,
                           .clock = &owner.clock,
                           .same_folder = [](const std::string&) { return Status(); }});
    lost.add(job, newer_elsewhere);
    return lost.bring();
  }

  std::set<VersionNumber> copies() {
    std::set<VersionNumber> all;
    const auto own = tier(keeper.files, std::make_shared<io::Faults>());
    const auto found = store::scan(*own, job);
    if (!found.ok()) return all;
    for (const StoredVersion& version : *found)
      if (const auto note = store::read_note(*own, job, version.version);
          version.good() && note.ok() && *note)
        all.insert(version.version);
    return all;
  }

  Machine owner;
  Machine keeper;
  std::shared_ptr<io::Faults> faults;
  std::uint64_t inode_here = 7;
  std::uint64_t questions = 0;
  std::uint64_t breaks_at = never;
  bool answer_is_lost = false;  // of the question at which it breaks
  bool agent_lives = true;
  bool is_renamed = false;  // as the agent says
  std::vector<VersionNumber> told;
};

using Versions = std::vector<VersionNumber>;
using Set = std::set<VersionNumber>;

struct CopiesTest : ::testing::Test, CopiesWorld {};

TEST_F(CopiesTest, BringTheFilesOfALostHostHome) {
  const Written a = file("/w/a", text(9000, 'a'));
  const Written b = file("/w/b", "bytes");
  store(owner, 1, {a});
  store(owner, 2, {b});
  const auto round = keep();
  ASSERT_TRUE(round.ok()) << round.error().to_string();
  EXPECT_EQ(round->waiting, 2u);
  EXPECT_EQ(round->copies, 2u);
  EXPECT_EQ(told, (Versions{1, 2}));
  EXPECT_EQ(bring().brought.size(), 2u);
  expect_is(owner, a);
  expect_is(owner, b);
  EXPECT_EQ(names(owner, "/w"), (Names{"a", "b"}));
}

TEST_F(CopiesTest, OlderOnesThanAnotherHostHasBroughtAreNoTrouble) {
  for (const bool elsewhere : {true, false}) {
    CopiesWorld world;
    store(world.owner, 1, {world.file("/w/a", "old")});
    ASSERT_TRUE(world.keep().ok());
    world.owner.clock.advance(3 * second);
    world.owner.put("/w/a", "newer");
    EXPECT_EQ(world.bring(elsewhere ? 2 : 0).left.size(), elsewhere ? 0u : 1u);
    EXPECT_EQ(io::read_file(world.owner.files, "/w/a", 100)->size(), 5u);
    const auto own = CopiesWorld::tier(world.keeper.files, std::make_shared<io::Faults>());
    const auto mark = store::read_home_mark(*own, store::look_at(*own, job, 1).record, 0);
    ASSERT_TRUE(mark.ok() && *mark);
    EXPECT_EQ((*mark)->files.empty(), elsewhere);
  }
}

TEST_F(CopiesTest, WhatIsAtHomeHasNoneAndLosesTheOneItHad) {
  const Written a = file("/w/a", text(9000, 'a'));
  const auto first = store(owner, 1, {a});
  ASSERT_TRUE(keep().ok());
  EXPECT_EQ(copies(), Set{1});
  const auto second_one = store(owner, 2, {file("/w/b", "bytes")});
  HomeAgent host(owner);
  host.add(first);
  host.add(second_one);
  host.run();
  const auto round = keep();
  ASSERT_TRUE(round.ok());
  EXPECT_EQ(round->waiting, 0u);
  EXPECT_EQ(copies(), Set{});
  EXPECT_EQ(names(keeper, "/disk/" + job), Names{});
  EXPECT_EQ(told, Versions{1});
}

TEST_F(CopiesTest, OfAVersionThatWasRemovedGoesOnceANewerOneIsThere) {
  store(owner, 1, {file("/w/a", "a")});
  ASSERT_TRUE(keep().ok());
  const auto disk = tier(owner.files, std::make_shared<io::Faults>());
  ASSERT_TRUE(disk->remove(job).ok());
  ASSERT_TRUE(keep().ok());
  EXPECT_EQ(copies(), Set{1}) << "the owner's disk is a new one";
  store(owner, 2, {file("/w/b", "b")});
  ASSERT_TRUE(keep().ok());
  EXPECT_EQ(copies(), Set{2});
}

TEST_F(CopiesTest, AFolderThatIsNotTheSameHasNoCopyAndIsNotTold) {
  inode_here = 8;
  store(owner, 1, {file("/w/a", "a")});
  const auto round = keep();
  ASSERT_TRUE(round.ok());
  EXPECT_EQ(round->copies, 0u);
  ASSERT_EQ(round->troubles.size(), 1u);
  EXPECT_NE(round->troubles[0].find("/w here is not the folder that owner has"), std::string::npos);
  EXPECT_EQ(told, Versions{});
  EXPECT_EQ(copies(), Set{});
  inode_here = 7;
  ASSERT_TRUE(keep().ok());
  EXPECT_EQ(told, Versions{1});
}

TEST_F(CopiesTest, AnAgentThatComesLaterIsTold) {
  agent_lives = false;
  store(owner, 1, {file("/w/a", "a")});
  auto round = keep();
  ASSERT_TRUE(round.ok());
  EXPECT_EQ(round->copies, 1u);
  EXPECT_EQ(round->troubles, Names{});
  agent_lives = true;
  ASSERT_TRUE(keep().ok());
  EXPECT_EQ(told, Versions{1});
}

TEST_F(CopiesTest, OfAFileThatIsRenamedOnItsWayAreNotSafeAndNoTrouble) {
  is_renamed = true;
  store(owner, 1, {file("/w/a", "a")});
  const auto round = keep();
  ASSERT_TRUE(round.ok());
  EXPECT_EQ(round->troubles, Names{});
  EXPECT_EQ(told, Versions{});
  is_renamed = false;
  ASSERT_TRUE(keep().ok());
  EXPECT_EQ(told, Versions{1});
}

TEST_F(CopiesTest, ADamagedVersionHasNoneAndTheOthersHaveTheirs) {
  store(owner, 1, {file("/w/a", text(9000, 'a'))});
  store(owner, 2, {file("/w/b", "b")});
  const std::string segment = "/disk/" + format::segment_name(format::version_folder(job, 1), 0);
  Buffer bad = *io::read_file(owner.files, segment, 1 << 20);
  bad[format::segment_alignment] ^= std::byte{4};
  ASSERT_TRUE(io::publish_file(owner.files, segment, bad).ok());
  const auto round = keep();
  ASSERT_TRUE(round.ok());
  EXPECT_EQ(round->copies, 1u);
  EXPECT_EQ(round->troubles.size(), 1u);
  EXPECT_EQ(copies(), Set{2});
}

// Of a line that breaks at each question, before the giver has it or before the answer is here.
TEST_F(CopiesTest, TheNextKeeperGoesOnWhereTheLineBroke) {
  CopiesWorld whole;
  store(whole.owner, 1, {whole.file("/w/a", text(9000, 'a'))});
  ASSERT_TRUE(whole.keep().ok());
  const std::uint64_t all = whole.questions;
  ASSERT_GT(all, 8u);
  for (const bool late : {false, true}) {
    for (std::uint64_t at = 1; at <= all; ++at) {
      SCOPED_TRACE(fmt::format("question {}{}", at, late ? ", answer lost" : ""));
      CopiesWorld world;
      const Written a = world.file("/w/a", text(9000, 'a'));
      store(world.owner, 1, {a});
      world.breaks_at = at;
      world.answer_is_lost = late;
      EXPECT_FALSE(world.keep().ok());
      EXPECT_TRUE(world.told.empty() || world.copies() == Set{1});
      world.breaks_at = never;
      ASSERT_TRUE(world.keep().ok());
      EXPECT_EQ(world.copies(), Set{1});
      ASSERT_FALSE(world.told.empty());
      EXPECT_EQ(world.bring().brought.size(), 1u);
      expect_is(world.owner, a);
    }
  }
}

struct CopiesLives : ::testing::TestWithParam<io::Fault> {};

// Each call of the keeper's machine goes wrong once, or is the last one before it stops and loses
// what was not synced. What was told comes home; the next keeper goes on.
TEST_P(CopiesLives, WhatWasToldIsThere) {
  const auto fill = [](CopiesWorld& world) {
    const Written a = world.file("/w/a", text(9000, 'a'));
    const Written b = world.file("/w/b", "bytes");
    store(world.owner, 1, {a});
    store(world.owner, 2, {b});
    return std::pair(a, b);
  };
  CopiesWorld whole;
  fill(whole);
  ASSERT_TRUE(whole.keep().ok());
  const std::uint64_t calls = whole.faults->calls();
  ASSERT_GT(calls, 20u);
  for (std::uint64_t call = 1; call <= calls; ++call) {
    for (std::uint64_t seed = 0; seed < copy_crashes; ++seed) {
      SCOPED_TRACE(fmt::format("call {} seed {}", call, seed));
      CopiesWorld world;
      const auto [a, b] = fill(world);
      (void)world.keep({GetParam(), call}).ok();
      world.keeper.files.crash(seed);
      for (const VersionNumber version : world.told)
        EXPECT_TRUE(world.copies().contains(version)) << version;
      ASSERT_TRUE(world.keep().ok());
      EXPECT_EQ(world.copies(), (Set{1, 2}));
      EXPECT_EQ(world.bring().brought.size(), 2u);
      expect_is(world.owner, a);
      expect_is(world.owner, b);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EachFault, CopiesLives,
                         ::testing::Values(io::Fault::stop, io::Fault::stop_midway, io::Fault::io,
                                           io::Fault::no_space, io::Fault::torn));

TEST(CopyGiver, GivesOneJobsFolderAlone) {
  Machine machine;
  store(machine, 1, {{.path = "/w/a", .bytes = "a"}});
  store(machine, 1, {{.path = "/w/a", .bytes = "a"}}, "job.files.host2");
  const auto disk = CopiesWorld::tier(machine.files, std::make_shared<io::Faults>());
  store::CopyGiver giver({.tier = disk.get(),
                          .job = job,
                          .host = "owner",
                          .dir = "/disk",
                          .look_at_folder = {},
                          .copied = {}});
  const auto listed = [&](const std::string& name) {
    return store::error_of(giver.answer(store::line_question("list", {{"name", name}})));
  };
  EXPECT_TRUE(listed(job).ok());
  EXPECT_EQ(listed("").error().code(), Code::invalid);
  EXPECT_EQ(listed("job.files.host2").error().code(), Code::invalid);
  EXPECT_EQ(listed(job + "/../job.files.host2").error().code(), Code::invalid);
  EXPECT_FALSE(store::error_of(giver.answer(store::line_question("remove", {{"name", job}}))).ok());
  EXPECT_FALSE(store::error_of(giver.answer(store::line_question("list", {{"name", 7}}))).ok());
}

TEST(CopyNote, IsReadAsItWasWritten) {
  const store::CopyNote note{"n1",
                             {{"/w/a b\nc", {.inode = 7, .born_ns = 9}}, {"/w", {.inode = 8}}}};
  const Buffer bytes = encode(note);
  const auto read = store::decode_note(bytes);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->host, "n1");
  ASSERT_EQ(read->folders.size(), 2u);
  EXPECT_EQ(read->folders.at("/w/a b\nc").inode, 7u);
  EXPECT_EQ(read->folders.at("/w/a b\nc").born_ns, 9u);
  EXPECT_EQ(read->folders.at("/w").inode, 8u);
  for (std::size_t cut = 1; cut < bytes.size(); ++cut) {
    const auto part = store::decode_note(Bytes(bytes).first(bytes.size() - cut));
    EXPECT_TRUE(!part.ok() || part->folders.size() < 2) << cut;
  }
}

TEST(SameFolder, IsTheSameInodeAndBirthOrOnAFileSystemThatHostsShare) {
  EXPECT_TRUE(store::same_folder({.inode = 2, .born_ns = 3}, {.inode = 2, .born_ns = 3}));
  EXPECT_FALSE(store::same_folder({.inode = 2, .born_ns = 3}, {.inode = 2, .born_ns = 4}));
  EXPECT_FALSE(
      store::same_folder({.inode = 2, .born_ns = 3, .network = true}, {.inode = 3, .born_ns = 3}));
  EXPECT_TRUE(store::same_folder({.inode = 2, .network = true}, {.inode = 2, .born_ns = 4}));
  EXPECT_FALSE(store::same_folder({.inode = 2}, {.inode = 2}));
}

struct CopyLineTest : ::testing::Test {
  CopyLineTest() {
    ::signal(SIGPIPE, SIG_IGN);
    int ends[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    ours.reset(ends[0]);
    theirs.reset(ends[1]);
  }
  Fd ours;
  Fd theirs;
};

TEST_F(CopyLineTest, CarriesQuestionsAndAnswersUntilOneEndGoes) {
  Status served = Error(Code::internal, "");
  std::thread giver([&] {
    store::CopyLine line(theirs.get(), theirs.get(), 20);
    served = line.serve([](const store::LineMessage& question) {
      store::LineMessage answer = question;
      answer.head["seen"] = question.data.size();
      return answer;
    });
  });
  store::CopyLine line(ours.get(), ours.get(), 20);
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{3} << 20}) {
    const auto answer = line.ask(store::line_question("read", {}, Buffer(bytes, std::byte{5})));
    ASSERT_TRUE(answer.ok()) << answer.error().to_string();
    EXPECT_EQ(answer->head.value("seen", std::size_t{7}), bytes);
    EXPECT_EQ(answer->data, Buffer(bytes, std::byte{5}));
  }
  ours.reset();
  giver.join();
  EXPECT_TRUE(served.ok());
}

TEST_F(CopyLineTest, SilenceNonsenseAndAnEndAreErrors) {
  store::CopyLine line(ours.get(), ours.get(), 0.01);
  EXPECT_EQ(line.ask(store::line_question("greet")).error().code(), Code::agent_lost) << "silence";
  const std::string nonsense = "bash: no such command: backstay\n";
  ASSERT_GT(::send(theirs.get(), nonsense.data(), nonsense.size(), 0), 0);
  EXPECT_EQ(line.ask(store::line_question("greet")).error().code(), Code::protocol);
  theirs.reset();
  EXPECT_FALSE(line.ask(store::line_question("greet")).ok());
}

}  // namespace
}  // namespace backstay::agent
