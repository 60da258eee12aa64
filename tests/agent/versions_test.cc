// Which versions a job has: what their numbers and folders may be, and what a tool takes away.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "format/manifest.h"
#include "format/names.h"
#include "io/posix.h"
#include "job_fixture.h"

namespace backstay::agent::testing {
namespace {

namespace fs = std::filesystem;

class Versions : public JobTest {
 protected:
  Versions() {
    open();
    job_->join_all(1);
  }
  static std::vector<std::byte> content(VersionNumber version) {
    return std::vector<std::byte>(2 * JobHarness::buffer_bytes,
                                  static_cast<std::byte>(version & 0xff));
  }
  wire::Captured save(VersionNumber version) {
    return job_->capture(1, version, [&](Rank) { return content(version); });
  }
  void save_local(VersionNumber version) {
    ASSERT_EQ(save(version).code, Code::ok);
    job_->wait_local(version);
  }
  void comes_back(VersionNumber version) {
    const auto back = job_->restart(1);
    ASSERT_EQ(back.code, Code::ok) << back.message;
    EXPECT_EQ(back.version, version);
    EXPECT_TRUE(back.data.at(0) == content(version));
  }
};

// It may not wait for its own record before older versions make room for it.
TEST_F(Versions, OneThatIsTriedAgainTakesTheRoomOfWhatHasExpired) {
  open();
  job_->join_all(1);
  save_local(1);
  save_local(2);
  trouble_->full = true;
  ASSERT_EQ(save(3).code, Code::ok);
  job_->run_until("failed", [&] { return job_->job().level_of(3).code != Code::ok; });
  job_->leave(0);
  job_->versions_kept = 1;
  job_->join_all(1, /*run=*/8);
  trouble_->room_when_removed = true;
  ASSERT_EQ(save(4).code, Code::ok);
  job_->wait_local(4);
  EXPECT_EQ(job_->job().state().on_disk(1), nullptr);
}

TEST(Names, OnlyWhatWeWriteIsAVersion) {
  EXPECT_EQ(format::version_folder("job", 12), "job/v0000000000000012");
  EXPECT_EQ(format::version_of_folder("v0000000000000012"), 12u);
  EXPECT_EQ(format::version_of_folder("v9999999999999999"), format::version_max);
  for (const char* name :
       {"v0000000000000000", "v10000000000000000", "v00000000000000012", "v12", "v",
        "v000000000000001x", "v-000000000000012", "V0000000000000012", ""}) {
    EXPECT_EQ(format::version_of_folder(name), std::nullopt) << name;
  }
}

// The numbers after it would not fit into a folder's name, and nobody would find the versions
// again.
TEST_F(Versions, AFolderWithoutAVersionDoesNotSetTheNextNumber) {
  save_local(1);
  for (const char* name : {"v9999999999999999", "v10000000000000000", "v77"}) {
    fs::create_directory(dir_ + "/job/" + name);
  }
  open();
  job_->join_all(1, 8);
  EXPECT_EQ(job_->welcome().newest, 1u);
  EXPECT_FALSE(fs::exists(dir_ + "/job/v9999999999999999")) << "the rest of an unfinished version";
  EXPECT_TRUE(fs::exists(dir_ + "/job/v77")) << "it is not ours";
  save_local(2);
  open();
  job_->join_all(1, 9);
  comes_back(2);
}

// As after `cp -r v0000000000000001 v9999999999999999`: its record names another version.
TEST_F(Versions, ACopiedFolderWithALargeNumberStopsNothing) {
  save_local(1);
  const std::string stray = dir_ + "/job/v9999999999999999";
  fs::copy(dir_ + "/job/v0000000000000001", stray, fs::copy_options::recursive);
  open();
  job_->join_all(1, 8);
  EXPECT_EQ(job_->welcome().newest, 1u);
  save_local(2);
  save_local(3);
  save_local(4);
  EXPECT_TRUE(fs::exists(stray + "/node-0000000.segment")) << "it may be somebody's";
  open();
  job_->join_all(1, 9);
  comes_back(4);
}

// A near one may be a version of ours that was damaged: the number is not used again.
TEST_F(Versions, ADamagedVersionKeepsItsNumber) {
  save_local(1);
  fs::copy(dir_ + "/job/v0000000000000001", dir_ + "/job/v0000000000001000",
           fs::copy_options::recursive);
  open();
  job_->join_all(1, 8);
  EXPECT_EQ(job_->welcome().newest, 1000u);
}

// The agent that wrote it still lives, and the pool had no room for the whole version.
TEST_F(Versions, WhatIsDamagedOnTheDiskAndNoMoreInThePoolIsNotCaptured) {
  open(/*room=*/2);
  job_->join_all(1);
  const std::vector<std::byte> large(6 * JobHarness::buffer_bytes, std::byte{7});
  ASSERT_EQ(job_->capture(1, 1, [&](Rank) { return large; }).code, Code::ok);
  job_->wait_local(1);
  fs::resize_file(dir_ + "/job/v0000000000000001/node-0000000.manifest", 100);
  job_->leave(0);
  job_->join_all(1, 8);
  EXPECT_EQ(job_->restart(1).code, Code::corrupt);
  EXPECT_EQ(job_->job().level_of(1).level, Level::none);
  EXPECT_EQ(job_->job().level_of(1).code, Code::corrupt);
  job_->leave(0, /*goodbye=*/false);
  job_->run_until("free: nobody writes it", [&] { return job_->job().forget(1).ok(); });
}

TEST_F(Versions, ARestartAfterARankHasDiedIsRefused) {
  open();
  job_->join_all(2);
  job_->leave(1, /*goodbye=*/false);
  EXPECT_EQ(job_->restart(1).code, Code::rank_lost);
}

TEST_F(Versions, TheLargestVersionIsTheLast) {
  save_local(format::version_max);
  const auto refused = save(format::version_max + 1);
  EXPECT_EQ(refused.code, Code::too_large);
  EXPECT_THAT(refused.message, ::testing::HasSubstr("another name"));
  open();
  job_->join_all(1, 8);
  comes_back(format::version_max);
}

TEST_F(Versions, AVersionThatIsForgottenDoesNotComeBack) {
  for (VersionNumber version = 1; version <= 2; ++version) {
    save_local(version);
  }
  ASSERT_TRUE(job_->job().forget(2).ok());
  EXPECT_EQ(job_->job().level_of(2).code, Code::not_found);
  comes_back(1);
  ASSERT_TRUE(job_->job().forget(1).ok());
  EXPECT_EQ(job_->restart(1).code, Code::none);
  EXPECT_EQ(job_->pool().free_count(), job_->pool().count());
  // Retention does not count what has gone: version 3 is all there is.
  save_local(3);
  comes_back(3);
}

TEST_F(Versions, OneThatIsInThePoolAloneIsForgottenAsAWhole) {
  trouble_->full = true;
  ASSERT_EQ(save(1).code, Code::ok);
  job_->run_until("failed", [&] { return job_->job().level_of(1).code != Code::ok; });
  const Status forgotten = job_->job().forget(1);
  ASSERT_TRUE(forgotten.ok()) << forgotten.error().to_string();
  // The store may just be giving it up.
  job_->run_until("forgotten", [&] { return job_->job().level_of(1).code == Code::not_found; });
  EXPECT_EQ(job_->pool().free_count(), job_->pool().count());
  trouble_->full = false;
  EXPECT_EQ(job_->restart(1).code, Code::none);
  save_local(2);
  EXPECT_EQ(job_->job().state().on_disk(1), nullptr) << "it was written after all";
  comes_back(2);
}

TEST_F(Versions, AVersionThatIsNeededIsNotForgotten) {
  job_->begin(0, 1, content(1));
  job_->run_until("sent", [&] { return job_->sent_all(0); });
  EXPECT_EQ(job_->job().forget(1).error().code(), Code::busy) << "it is being captured";
  job_->end(0);
  EXPECT_EQ(job_->captured(1).code, Code::ok);
  job_->wait_local(1);
  job_->hold_chunks(true);
  job_->start_fetch(0, 1);
  EXPECT_EQ(job_->job().forget(1).error().code(), Code::busy) << "a rank reads it";
  job_->hold_chunks(false);
  EXPECT_EQ(job_->fetched(0).code, Code::ok);
  EXPECT_TRUE(job_->job().forget(1).ok());
}

TEST_F(Versions, ADamagedRecordOfAHigherLevelTakesNothingFromALowerOne) {
  save_local(1);
  job_.reset();
  const std::string folder = dir_ + "/" + format::version_folder("job", 1);
  auto& files = io::posix_filesystem();
  const std::string higher = format::commit_name(folder, Level::protected_);
  ASSERT_TRUE(io::publish_file(files, higher, Buffer(format::commit_record_bytes)).ok());
  open();
  job_->join_all(1);
  comes_back(1);
}

// No newer one will be announced there.
TEST_F(Versions, OfProtectedOnesARunThatProtectsNothingKeepsOne) {
  const auto folder = [this](VersionNumber version) {
    return dir_ + "/" + format::version_folder("job", version);
  };
  auto& files = io::posix_filesystem();
  for (const VersionNumber version : {1u, 2u}) {
    save_local(version);
    const std::string local = format::commit_name(folder(version), Level::local);
    auto record = format::decode_commit(io::read_file(files, local, 1 << 20).value()).value();
    record.level = Level::protected_;
    const std::string name = format::commit_name(folder(version), record.level);
    ASSERT_TRUE(io::publish_file(files, name, format::encode(record)).ok());
  }
  open();
  job_->join_all(1);
  for (const VersionNumber version : {3u, 4u, 5u}) save_local(version);
  job_->start_fetch(0, 5);  // the store answers it after it has removed what expired
  EXPECT_EQ(job_->fetched(0).code, Code::ok);
  EXPECT_FALSE(fs::exists(folder(1)));
  EXPECT_TRUE(fs::exists(folder(2)));
}

// What is whole with the other nodes' parts is not damaged.
TEST_F(Versions, APartOfWhatSeveralNodesSavedIsNotEnoughAndStays) {
  save_local(1);
  job_.reset();
  const std::string folder = dir_ + "/" + format::version_folder("job", 1);
  const std::string record = format::commit_name(folder, Level::local);
  const std::string manifest = format::manifest_name(folder, 0);
  auto& files = io::posix_filesystem();
  auto committed = format::decode_commit(io::read_file(files, record, 1 << 20).value()).value();
  auto part = format::decode_manifest(io::read_file(files, manifest, 1 << 20).value()).value();
  committed.nodes = committed.ranks = part.nodes = part.ranks = 2;
  ASSERT_TRUE(io::publish_file(files, record, format::encode(committed)).ok());
  ASSERT_TRUE(io::publish_file(files, manifest, format::encode(part)).ok());
  open();
  job_->join_all(2);
  const auto back = job_->restart(2);
  EXPECT_EQ(back.code, Code::not_found);
  EXPECT_NE(back.message.find("version 1: it was saved on 2 nodes; start the job on nodes"),
            std::string::npos)
      << back.message;
  EXPECT_FALSE(fs::exists(folder + "/damaged"));
}

TEST_F(Versions, ARankThatCannotGoOnGivesTheVersionUpForAllAndStays) {
  open(8);
  job_->join_all(2);
  for (Rank rank = 0; rank < 2; ++rank) job_->begin(rank, 1, content(1));
  job_->receive(1, wire::Abandon{1, Code::io, "its file is gone"});
  for (Rank rank = 0; rank < 2; ++rank) {
    const auto told = job_->take<wire::Captured>(rank);
    EXPECT_EQ(told.version, 1u);
    EXPECT_EQ(told.code, Code::io);
    EXPECT_EQ(told.message, "rank 1: its file is gone");
  }
  job_->receive(0, wire::Abandon{1});
  EXPECT_EQ(job_->pool().free_count(), 8u);
  const auto next = job_->capture(2, 2, [](Rank) { return content(2); });
  EXPECT_EQ(next.code, Code::ok) << "the connection of rank 1 stays";
}

// Another job of the node could be granted such a buffer, and the rank would write into it.
TEST_F(Versions, ABufferOfAVersionThatWasGivenUpIsTheRanksUntilItAnswers) {
  open(8);
  job_->join_all(3);
  for (Rank rank = 0; rank < 3; ++rank) job_->begin(rank, 1, content(1));
  job_->leave(1, /*goodbye=*/false);
  EXPECT_EQ(job_->take<wire::Captured>(0).code, Code::rank_lost);
  job_->step();
  EXPECT_EQ(job_->pool().free_count(), 4u);
  job_->receive(0,
                wire::Filled{1, {{job_->granted_to(0).front(), JobHarness::buffer_bytes, 0, 0}}});
  EXPECT_EQ(job_->pool().free_count(), 4u) << "it may hand over what it filled before it heard";
  job_->receive(0, wire::Abandon{1});
  EXPECT_EQ(job_->pool().free_count(), 6u);
  job_->receive(0, wire::Abandon{1});
  EXPECT_EQ(job_->pool().free_count(), 6u);
  job_->leave(2, /*goodbye=*/false);
  EXPECT_EQ(job_->pool().free_count(), 8u) << "a process that has ended writes nowhere";
}

}  // namespace
}  // namespace backstay::agent::testing
