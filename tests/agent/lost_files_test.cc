// The captured files of lost hosts come home out of the durable directory
// (docs/protocol/home.md#files-of-a-lost-host).
#include "store/home/lost_files.h"

#include <fmt/format.h>

#include "home_world.h"

namespace backstay::agent {
namespace {

using namespace testing;

constexpr std::uint64_t crashes = 4;

struct World {
  // Captured now, on a host that is lost: its placeholder stands at its path.
  Written file(const std::string& path, const std::string& bytes) {
    machine.put(path, "");
    machine.clock.advance(3 * second);
    return {.path = path, .bytes = bytes, .placed_s = machine.now_s() - 2};
  }

  // One life of who brings them; `plan`: what goes wrong.
  store::LostFiles::Outcome bring(io::FaultPlan plan = {}) {
    faults = std::make_shared<io::Faults>(plan);
    const auto files = io::make_faulty_filesystem(machine.files, faults);
    auto make_ring = [this]() -> Result<std::unique_ptr<io::Ring>> {
      return io::make_faulty_ring(io::make_memory_ring({.depth = 2, .seed = 1}), faults);
    };
    auto tier = tier::open_dir_tier(*files, make_ring, {.root = "/disk"});
    if (!tier.ok()) return {};
    store::LostFiles lost({.name = "job.files of lost hosts",
                           .from = tier->get(),
                           .files = files.get(),
                           .clock = &machine.clock,
                           .same_folder = [this](const std::string& folder) {
                             return folder == other_folder
                                        ? Status(Error(Code::unsupported, "not shared"))
                                        : Status();
                           }});
    for (const std::string& of : jobs) lost.add(of);
    return lost.bring();
  }

  static Names paths(const std::vector<store::LostFiles::File>& files) {
    Names all;
    for (const auto& one : files) all.push_back(one.path);
    return all;
  }

  Machine machine;
  std::shared_ptr<io::Faults> faults;
  std::string other_folder;
  Names jobs{job};
};

struct LostFilesTest : ::testing::Test, World {};

TEST_F(LostFilesTest, WhatIsNotAtHomeComesHomeInOrder) {
  const Written a = file("/w/a", text(9000, 'a'));
  const Written older = file("/w/b", "older");
  const Written b = file("/w/b", text(5000, 'b'));
  machine.put("/w/b", "");
  machine.clock.advance(second);
  const Written newer{.path = "/w/b", .bytes = b.bytes, .placed_s = machine.now_s()};
  store(machine, 1, {a, older});
  store(machine, 2, {newer});
  const auto outcome = bring();
  expect_is(machine, a);
  expect_is(machine, newer);
  EXPECT_EQ(paths(outcome.brought), (Names{"/w/a", "/w/b"}));
  EXPECT_EQ(paths(outcome.left), Names{});
  EXPECT_EQ(names(machine, "/w"), (Names{"a", "b"}));
  EXPECT_EQ(mark_of(machine, 1), Names{});
  EXPECT_EQ(mark_of(machine, 2), Names{});
}

TEST_F(LostFilesTest, WhatItsUserChangedOrRemovedStaysAndIsToldOnce) {
  const Written changed = file("/w/changed", "captured");
  const Written removed = file("/w/removed", "captured");
  store(machine, 1, {changed, removed});
  machine.clock.advance(5 * second);
  machine.put("/w/changed", "the user's");
  ASSERT_TRUE(machine.files.remove("/w/removed").ok());
  EXPECT_EQ(paths(bring().left), (Names{"/w/changed", "/w/removed"}));
  EXPECT_EQ(machine.at("/w/changed"), "the user's");
  EXPECT_EQ(machine.at("/w/removed"), "none");
  EXPECT_EQ(paths(bring().left), Names{});
  EXPECT_EQ(mark_of(machine, 1), (Names{"/w/changed", "/w/removed"})) << "they can be exported";
}

// Two hosts wrote it, and the job of the newer one is looked at first.
TEST_F(LostFilesTest, OfTwoLostHostsTheNewerFileOfAPathComesHome) {
  const Written older = file("/w/f", "of the first host");
  const Written newer = file("/w/f", "of the second one");
  store(machine, 1, {older, file("/w/g", "beside it")});
  store(machine, 1, {newer}, "job.files.a");
  jobs = {"job.files.a", job};
  const auto outcome = bring();
  EXPECT_EQ(machine.at("/w/f"), newer.bytes);
  EXPECT_EQ(paths(outcome.brought), (Names{"/w/f", "/w/g"}));
  EXPECT_EQ(paths(outcome.left), Names{});
  EXPECT_EQ(mark_of(machine, 1), Names{});
  EXPECT_EQ(paths(bring().brought), Names{});
}

// Once marked, it is never brought again, also where a placeholder of another capture stands there.
TEST_F(LostFilesTest, WhatIsMarkedIsNotBroughtAgain) {
  const Written once = file("/w/f", "once");
  store(machine, 1, {once});
  bring();
  ASSERT_TRUE(machine.files.remove("/w/f").ok());
  const auto again = bring();
  EXPECT_EQ(paths(again.brought), Names{});
  EXPECT_EQ(paths(again.left), Names{});
  EXPECT_EQ(machine.at("/w/f"), "none");
}

// The host had brought it; a user has set another mode since.
TEST_F(LostFilesTest, WhatStandsThereWithItsBytesIsLeftAlone) {
  const Written same = file("/w/f", text(9000, 'f'));
  const auto record = store(machine, 1, {same});
  HomeAgent host(machine);
  host.add(record);
  host.run();
  ASSERT_TRUE(
      machine.files.remove("/disk/" + format::home_mark_name(format::version_folder(job, 1), 0))
          .ok());
  const auto inode = machine.files.look("/w/f")->inode;
  EXPECT_EQ(paths(bring().brought), Names{});
  EXPECT_EQ(machine.files.look("/w/f")->inode, inode);
  EXPECT_EQ(mark_of(machine, 1), Names{});
}

TEST_F(LostFilesTest, DamagedAndIncompleteVersionsAreToldAndTheOthersComeHome) {
  const Written a = file("/w/a", text(9000, 'a'));
  const Written b = file("/w/b", "bytes");
  store(machine, 1, {a});
  store(machine, 2, {b});
  const std::string segment = "/disk/" + format::segment_name(format::version_folder(job, 1), 0);
  Buffer bad = *io::read_file(machine.files, segment, 1 << 20);
  bad[format::segment_alignment] ^= std::byte{4};
  ASSERT_TRUE(io::publish_file(machine.files, segment, bad).ok());
  ASSERT_TRUE(machine.files.make_directories("/disk/" + format::version_folder(job, 3)).ok());
  const auto outcome = bring();
  EXPECT_EQ(machine.at("/w/a"), "");
  expect_is(machine, b);
  ASSERT_EQ(outcome.left.size(), 2u);
  EXPECT_EQ(outcome.left[0].version, 3u);
  EXPECT_NE(outcome.left[0].why.find("not copied whole"), std::string::npos);
  EXPECT_EQ(outcome.left[1].path, "/w/a");
  EXPECT_EQ(paths(bring().left), (Names{"", "/w/a"})) << "it is told and tried again";
}

TEST_F(LostFilesTest, AFolderThatIsGoneOrOfThisHostAloneIsTold) {
  ASSERT_TRUE(machine.files.make_directories("/local").ok());
  other_folder = "/local";
  const Written here = file("/local/f", "captured");
  const Written gone = file("/w/g", "captured");
  store(machine, 1, {here, gone});
  machine.clock.advance(second);
  ASSERT_TRUE(machine.files.remove("/w/g").ok());
  ASSERT_TRUE(machine.files.remove("/w").ok());
  EXPECT_EQ(paths(bring().left), (Names{"/local/f", "/w/g"}));
  EXPECT_EQ(machine.at("/local/f"), "");
}

struct LostFilesLives : ::testing::TestWithParam<io::Fault> {};

// Each call goes wrong once, or is the last one before the machine stops and loses what was not
// synced. The next life of who brings the files goes on.
TEST_P(LostFilesLives, WhoBringsThemFailsOrIsKilledAndTheNextOneGoesOn) {
  const auto fill = [](World& world) {
    const Written a = world.file("/w/a", text(9000, 'a'));
    const Written b = world.file("/w/b", "bytes");
    store(world.machine, 1, {a});
    store(world.machine, 2, {b});
    return std::pair(a, b);
  };
  World whole;
  fill(whole);
  whole.bring();
  const std::uint64_t calls = whole.faults->calls();
  ASSERT_GT(calls, 20u);
  for (std::uint64_t call = 1; call <= calls; ++call) {
    for (std::uint64_t seed = 0; seed < crashes; ++seed) {
      SCOPED_TRACE(fmt::format("call {} seed {}", call, seed));
      World world;
      Machine& machine = world.machine;
      const auto [a, b] = fill(world);
      world.bring({GetParam(), call});
      machine.files.crash(seed);
      const std::string left = machine.at("/w/a");
      EXPECT_TRUE(left.empty() || left == a.bytes);
      EXPECT_EQ(World::paths(world.bring().left), Names{});
      expect_is(machine, a);
      expect_is(machine, b);
      EXPECT_EQ(names(machine, "/w"), (Names{"a", "b"}));
      EXPECT_EQ(mark_of(machine, 1), Names{});
      EXPECT_EQ(mark_of(machine, 2), Names{});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EachFault, LostFilesLives,
                         ::testing::Values(io::Fault::stop, io::Fault::stop_midway, io::Fault::io,
                                           io::Fault::no_space, io::Fault::torn, io::Fault::flip));

}  // namespace
}  // namespace backstay::agent
