// Asking the collector of captured files, against one that is played here.
#include "capture/collector/link.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "capture/files/collect.h"
#include "conformance/temp_directory.h"
#include "wire/socket.h"

namespace backstay::files {
namespace {

// The program that starts a collector is never needed: one listens all the time.
TEST(Collector, ThatEndsAsItIsAskedIsFollowedByTheNextOne) {
  testing::TempDirectory folder;
  const std::string socket = folder.path() + "/collector.sock";
  auto listener = wire::listen_at(socket);
  ASSERT_TRUE(listener.ok());
  std::thread collectors([&] {
    for (const bool answers : {false, false, true}) {
      const Fd asked(::accept(listener->get(), nullptr, nullptr));
      Question question;
      if (!answers) continue;
      EXPECT_GT(::recv(asked.get(), &question, sizeof question, 0), 0);
      Answer answer;
      answer.said = Said::done;
      EXPECT_GT(::send(asked.get(), &answer, answer_bytes_min, MSG_NOSIGNAL), 0);
    }
  });
  const Status there = ensure_collector(socket, "/nonexistent", [](const std::string&) {});
  ::shutdown(listener->get(), SHUT_RDWR);  // where it gave up before
  collectors.join();
  EXPECT_TRUE(there.ok()) << there.error().to_string();
}

}  // namespace
}  // namespace backstay::files
