// What an agent notes before it renames captured files, and what the next one reads
// (docs/protocol/home.md, "An agent that was killed").
#include "store/home/placing_note.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "io/faulty.h"
#include "io/memory.h"

namespace backstay::agent {
namespace {

using File = store::PlacingNote::File;

struct PlacingNoteTest : ::testing::Test {
  PlacingNoteTest() { EXPECT_TRUE(files.make_directories("/j").ok()); }
  store::PlacingNote note(const std::string& boot = "boot 1") {
    return {files, "/j/placing", boot};
  }
  std::string found(store::PlacingNote& in, const File& file) {
    const auto* place = in.find(file);
    return place == nullptr ? "nothing" : place->to + " " + std::to_string(place->placed_ns);
  }
  bool is_on_disk(const File& file) {
    const auto bytes = io::read_file(files, "/j/placing", 1 << 20);
    store::PlacingNote next = note();
    const bool found_it = next.find(file) != nullptr;
    (void)files.remove("/j/placing");
    EXPECT_TRUE(!bytes.ok() || io::publish_file(files, "/j/placing", *bytes).ok());
    return found_it;
  }
  std::uint64_t size() { return files.look("/j/placing")->bytes; }

  io::MemoryFileSystem files;
  const File x{7, 1, "/w/x.tmp"};
  const File y{7, 2, "/w/\n\xff y"};
};

TEST_F(PlacingNoteTest, TheNextAgentOfThisBootReadsIt) {
  {
    store::PlacingNote one = note();
    one.add(x, {"/w/x", 20});
    one.add(y, {y.path, 30});
  }
  store::PlacingNote next = note();
  EXPECT_EQ(found(next, x), "/w/x 20");
  EXPECT_EQ(found(next, y), y.path + " 30");
  EXPECT_EQ(found(next, {8, 1, "/w/x.tmp"}), "nothing") << "another run's version 1";
  store::PlacingNote third = note();
  EXPECT_EQ(found(third, x), "/w/x 20") << "nothing is marked yet";
  store::PlacingNote rebooted = note("boot 2");
  EXPECT_EQ(found(rebooted, x), "nothing");
  store::PlacingNote again = note();
  EXPECT_EQ(found(again, x), "nothing") << "the note of that boot is gone";
}

TEST_F(PlacingNoteTest, ThatATemporaryFileWasMadeIsNotThatItWasRenamed) {
  {
    store::PlacingNote one = note();
    one.made(x, {"/w/x", 20});
    one.made(y, {y.path, 30});
    one.add(y, {y.path, 30});
  }
  for (int turn = 0; turn < 2; ++turn) {  // the first one writes it again
    store::PlacingNote next = note();
    EXPECT_EQ(found(next, x), "/w/x 20");
    ASSERT_NE(next.find(x), nullptr);
    EXPECT_TRUE(next.find(x)->made_only);
    ASSERT_NE(next.find(y), nullptr);
    EXPECT_FALSE(next.find(y)->made_only);
  }
  store::PlacingNote next = note();
  next.made(y, {y.path, 30});
  EXPECT_TRUE(next.find(y)->made_only) << "it was taken for one to be brought again";
  EXPECT_TRUE(next.take_back("/w/x").ok());
  EXPECT_EQ(found(next, x), "nothing");
}

TEST_F(PlacingNoteTest, WithoutAPathOrABootNothingIsNoted) {
  store::PlacingNote none(files, "", "boot 1");
  none.add(x, {"/w/x", 20});
  EXPECT_TRUE(none.take_back("/w/x").ok());
  store::PlacingNote no_boot = note("");
  no_boot.add(x, {"/w/x", 20});
  EXPECT_FALSE(files.look("/j/placing").ok());
}

TEST_F(PlacingNoteTest, WhatIsTakenBackOrMarkedIsNotFound) {
  store::PlacingNote one = note();
  one.add(x, {"/w/x", 20});
  EXPECT_TRUE(one.take_back("/w/x").ok());
  one.add(y, {y.path, 30});
  one.take_back(VersionNumber{2});
  store::PlacingNote next = note();
  EXPECT_EQ(found(next, x), "nothing");
  EXPECT_EQ(found(next, y), "nothing");
  next.add(x, {"/w/x", 20});
  next.marked(1);
  EXPECT_EQ(found(next, x), "nothing");
  store::PlacingNote third = note();
  EXPECT_EQ(found(third, x), "nothing");
}

TEST_F(PlacingNoteTest, ALongNoteIsWrittenAgainWithoutWhatIsMarked) {
  store::PlacingNote one = note();
  one.add(x, {"/w/x", 20});
  for (VersionNumber version = 2; version < 5000; ++version) {
    one.add({7, version, "/w/" + std::string(100, 'n')}, {"/w/n", version});
    one.marked(version);
  }
  EXPECT_LT(size(), std::uint64_t{300} << 10);
  store::PlacingNote next = note();
  EXPECT_EQ(found(next, x), "/w/x 20");
  EXPECT_LT(size(), 200U);
}

// A line that is cut off or damaged ends what is read.
TEST_F(PlacingNoteTest, HalfALineOrADamagedOneSaysNothing) {
  {
    store::PlacingNote one = note();
    one.add(x, {"/w/x", 20});
    one.add(y, {y.path, 30});
  }
  const Buffer good = *io::read_file(files, "/j/placing", 1 << 20);
  const auto put = [&](Bytes bytes) {
    ASSERT_TRUE(io::publish_file(files, "/j/placing", bytes).ok());
  };
  for (std::size_t at = 0; at < good.size(); ++at) {
    put(Bytes(good).first(at));
    store::PlacingNote cut = note();
    EXPECT_EQ(found(cut, y), "nothing") << at;
    Buffer bad = good;
    bad[at] ^= std::byte{1};
    put(bad);
    store::PlacingNote damaged = note();
    const std::string of_x = found(damaged, x), of_y = found(damaged, y);
    EXPECT_TRUE(of_x == "nothing" || of_x == "/w/x 20") << at << of_x;
    EXPECT_TRUE(of_y == "nothing") << at << of_y;
  }
}

// A line without its end counts as one that was being written: only whole ones are damaged here.
TEST_F(PlacingNoteTest, ADamagedLineMayHaveTakenOthersBack) {
  {
    store::PlacingNote one = note();
    one.add(x, {"/w/x", 20});
    ASSERT_TRUE(one.take_back("/w/x").ok());
  }
  const Buffer good = *io::read_file(files, "/j/placing", 1 << 20);
  for (std::size_t at = 0; at < good.size(); ++at) {
    if (good[at] == std::byte{0}) continue;
    Buffer bad = good;
    bad[at] ^= std::byte{1};
    ASSERT_TRUE(io::publish_file(files, "/j/placing", bad).ok());
    store::PlacingNote damaged = note();
    EXPECT_EQ(found(damaged, x), "nothing") << at;
  }
}

TEST_F(PlacingNoteTest, OnceThereIsRoomAgainItNotesAgain) {
  const auto faults = std::make_shared<io::Faults>(io::FaultPlan{io::Fault::no_space, 6});
  const auto faulty = io::make_faulty_filesystem(files, faults);
  store::PlacingNote one(*faulty, "/j/placing", "boot 1");
  one.add(x, {"/w/x", 20});
  one.add({7, 3, "/w/z"}, {"/w/z", 25});
  ASSERT_FALSE(faults->chosen().empty()) << "no line failed";
  one.marked(3);
  one.add(y, {y.path, 30});
  store::PlacingNote next = note();
  EXPECT_EQ(found(next, x), "/w/x 20");
  EXPECT_EQ(found(next, y), y.path + " 30");
}

// Only a note that says nothing of the file lets its temporary file be removed.
TEST_F(PlacingNoteTest, WhatCannotBeTakenBackIsSaid) {
  for (const io::Fault fault : {io::Fault::io, io::Fault::no_space, io::Fault::torn}) {
    for (std::uint64_t at = 1;; ++at) {
      (void)files.remove("/j/placing");
      const auto faults = std::make_shared<io::Faults>(io::FaultPlan{fault, at});
      const auto faulty = io::make_faulty_filesystem(files, faults);
      store::PlacingNote one(*faulty, "/j/placing", "boot 1");
      one.add(x, {"/w/x", 20});
      for (int turn = 0; turn < 2; ++turn) {
        const bool taken_back = one.take_back("/w/x").ok();
        const std::string text = fmt::format("{} in turn {}", faults->chosen(), turn);
        EXPECT_TRUE(!taken_back || !is_on_disk(x)) << text;
        EXPECT_TRUE(taken_back || turn == 0) << text;
      }
      if (faults->chosen().empty()) break;
    }
  }
}

}  // namespace
}  // namespace backstay::agent
