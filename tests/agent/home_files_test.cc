// What the collector is told that lets files come elsewhere, or nowhere (docs/protocol/home.md, "A
// rename on the way").
#include "agent/home/home_files.h"

#include <gtest/gtest.h>

#include "agent/disk/links.h"

namespace backstay::agent {
namespace {

constexpr RunId run_of_files = 7;

struct Heard final : Outbox, StoreLink {
  void send(ConnectionId connection, wire::Message message, std::vector<int>) override {
    if (const auto* moved = std::get_if<wire::MovedHome>(&message)) {
      answers.emplace_back(connection, moved->code);
    }
  }
  void close(ConnectionId) override {}
  void post(Command) override {}
  void post_drain(DrainCommand) override {}
  void post_home(HomeOrders posted) override { orders = std::move(posted); }
  HomeOrders orders;
  std::vector<std::pair<ConnectionId, Code>> answers;
};

class HomeFilesTest : public ::testing::Test {
 protected:
  HomeFilesTest() {
    state_.files_come_home = true;
    state_.run = run_of_files;
    StoredVersion stored;
    stored.version = stored.record.version = 1;
    stored.record.run = run_of_files;
    stored.level = stored.record.level = Level::local;
    state_.versions.found(stored, Where::disk);
    files_.begin_run();
    files_.pump();
    FilesFound found;
    found.files.push_back({"/w/x", 10, 1});
    answer(FilesLookedAt{1, std::move(found)});
  }
  void answer(HomeAnswer answer) {
    std::visit([&](auto& one) { files_.on(std::move(one)); }, answer);
  }
  void call_back(ConnectionId connection, RunId of_run) {
    files_.move(connection, {1, of_run, "/w/x", "", 0});
  }
  using Answers = std::vector<std::pair<ConnectionId, Code>>;

  std::unique_ptr<Pool> pool_ = std::move(Pool::create({1 << 20, 1 << 16, false}).value());
  Heard heard_;
  JobState state_{.name = "job.files.n1",
                  .dir = "/d",
                  .pool = *pool_,
                  .outbox = heard_,
                  .store = heard_,
                  .events = heard_,
                  .clock = system_clock()};
  HomeFiles files_{state_};
};

TEST_F(HomeFilesTest, WhoCallsBackAFileOnItsWayIsAnsweredOnceItIsKnownWhatBecameOfIt) {
  ASSERT_TRUE(std::holds_alternative<BringFile>(heard_.orders.at(0)));
  call_back(5, run_of_files);
  files_.move(6, {1, run_of_files, "/w/x", "/w/y", 20});
  EXPECT_EQ(heard_.answers, (Answers{{6, Code::busy}}));
  // Somebody waits for it, so it would be looked at again at once.
  files_.settle(9, {"/w/x"});
  answer(FileBrought{1, "/w/x", Brought::held, "a program has it open"});
  EXPECT_EQ(heard_.answers, (Answers{{6, Code::busy}, {5, Code::ok}}));
  ASSERT_TRUE(std::holds_alternative<MarkHome>(heard_.orders.at(0))) << "it is not to be brought";
}

TEST_F(HomeFilesTest, WhoCallsBackAFileThatComesIsToldSo) {
  call_back(5, run_of_files);
  answer(FileBrought{1, "/w/x", Brought::home});
  EXPECT_EQ(heard_.answers, (Answers{{5, Code::state}}));
}

// Retention may be quicker than the collector.
TEST_F(HomeFilesTest, AVersionThatIsRemovedWasAtHome) {
  answer(FileBrought{1, "/w/x", Brought::home});
  answer(HomeMarked{1, Status()});
  ASSERT_EQ(files_.take_at_home(), std::vector<VersionNumber>{1});
  state_.versions.removed(1, Where::disk);
  files_.gone(1);
  call_back(5, run_of_files);
  call_back(5, run_of_files + 1);
  EXPECT_EQ(heard_.answers, (Answers{{5, Code::state}, {5, Code::not_found}}));
}

TEST_F(HomeFilesTest, WhoHasGoneIsNotAnswered) {
  call_back(5, run_of_files);
  files_.disconnected(5);
  answer(FileBrought{1, "/w/x", Brought::held, "a program has it open"});
  EXPECT_EQ(heard_.answers, Answers{});
}

TEST_F(HomeFilesTest, WhatHasComeIsNotWarnedOfAnyMore) {
  answer(FileBrought{1, "/w/x", Brought::failed, "no room", Code::no_space});
  answer(HomeMarked{1, Status()});
  StoredVersion stored;
  stored.version = stored.record.version = 2;
  stored.record.run = run_of_files;
  stored.level = stored.record.level = Level::local;
  files_.local(stored);
  files_.pump();
  FilesFound found;
  found.files.push_back({"/w/y", 10, 2});
  answer(FilesLookedAt{2, std::move(found)});
  answer(FileBrought{2, "/w/y", Brought::failed, "no room", Code::no_space});
  answer(HomeMarked{2, Status()});
  EXPECT_EQ(state_.not_home.warnings.size(), 2U);
  files_.settle(9, {"/w/y"});
  answer(FileBrought{2, "/w/y", Brought::home});
  answer(HomeMarked{2, Status()});
  EXPECT_EQ(state_.not_home.warnings,
            std::vector<std::string>{"/w/x of version 1 not at its path yet: no room"});
}

TEST_F(HomeFilesTest, AVersionOfAnotherRunIsAnotherOne) {
  answer(FileBrought{1, "/w/x", Brought::failed, "no room", Code::no_space});
  call_back(5, run_of_files + 1);
  EXPECT_EQ(heard_.answers, (Answers{{5, Code::not_found}}));
  call_back(5, 0);
  EXPECT_EQ(heard_.answers, (Answers{{5, Code::not_found}, {5, Code::ok}}));
}

}  // namespace
}  // namespace backstay::agent
