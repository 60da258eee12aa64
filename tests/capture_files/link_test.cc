// Asking the collector of captured files, against one that is played here.
#include "capture/collector/link.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "capture/files/collect.h"
#include "conformance/temp_directory.h"
#include "wire/socket.h"

namespace backstay::files {
namespace {

// Calls `asks` with the socket of three collectors, one after the other, of which two end as they
// are asked. The program that starts a collector is never needed: one listens all the time.
Status asked_in_turn(Ask expected, const std::function<Status(const std::string& socket)>& asks) {
  testing::TempDirectory folder;
  const std::string socket = folder.path() + "/collector.sock";
  auto listener = wire::listen_at(socket);
  if (!listener.ok()) return listener.error();
  std::thread collectors([&] {
    for (const bool answers : {false, false, true}) {
      const Fd asked(::accept(listener->get(), nullptr, nullptr));
      Question question;
      if (!answers) continue;
      EXPECT_GT(::recv(asked.get(), &question, sizeof question, 0), 0);
      EXPECT_EQ(question.ask, expected);
      Answer answer;
      answer.said = Said::done;
      answer.version = 7;
      EXPECT_GT(::send(asked.get(), &answer, answer_bytes_min, MSG_NOSIGNAL), 0);
    }
  });
  Status done = asks(socket);
  ::shutdown(listener->get(), SHUT_RDWR);  // where it gave up before
  collectors.join();
  return done;
}

constexpr const char* no_program = "/nonexistent";

TEST(Collector, ThatEndsAsItIsAskedIsFollowedByTheNextOne) {
  const Status there = asked_in_turn(Ask::watch, [](const std::string& socket) {
    return ensure_collector(socket, no_program, [](const std::string&) {});
  });
  EXPECT_TRUE(there.ok()) << there.error().to_string();
}

TEST(Collector, ThatEndsAsItIsToSyncAFileIsFollowedByTheNextOne) {
  const Fd memory(::memfd_create("file", MFD_CLOEXEC));
  const Status synced = asked_in_turn(Ask::sync, [&](const std::string& socket) {
    Link link(socket, no_program);
    const Finished file{.memory = memory.get(), .target = memory.get(), .opened = {}};
    const Answered answered = sync(link, file, memory.get());
    EXPECT_EQ(answered.version, 7U);
    return link.status(answered, "sync a file");
  });
  EXPECT_TRUE(synced.ok()) << synced.error().to_string();
}

// The second question is whether the agent has the file from the first collector.
TEST(Collector, ThatEndsAsItIsHandedAFileHasTheNextOneSettleIt) {
  const Fd memory(::memfd_create("file", MFD_CLOEXEC));
  const Status settled = asked_in_turn(Ask::settle, [&](const std::string& socket) {
    Link link(socket, no_program);
    const Finished file{.memory = memory.get(), .target = memory.get(), .opened = {}};
    EXPECT_EQ(keep(link, file, Until::captured, 0).way, Way::gone);
    return link.status(settle_taken(link, file), "settle a file");
  });
  EXPECT_TRUE(settled.ok()) << settled.error().to_string();
}

}  // namespace
}  // namespace backstay::files
