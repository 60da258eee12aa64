// The main loop over a real socket, in a thread of its own, with a tier of the test's choice.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "agent/server/server.h"
#include "tier/memory.h"
#include "wire/socket.h"

namespace backstay::agent::testing {

// A peer of the agent: a rank or a tool.
class Peer {
 public:
  explicit Peer(const std::string& path);
  int socket() const { return socket_.get(); }
  void close() { socket_.reset(); }
  void send(const wire::Message& message) { EXPECT_TRUE(wire::send(socket_.get(), message).ok()); }
  // True if something comes, or the connection ends, in time.
  bool readable(int timeout_ms);
  // The next message, which must come within ten seconds and be a T.
  template <typename T>
  T take() {
    if (!readable(10'000)) {
      ADD_FAILURE() << "the agent does not answer";
      return {};
    }
    auto received = wire::receive(socket_.get());
    EXPECT_TRUE(received.ok()) << received.error().to_string();
    if (!received.ok()) return {};
    if (auto* message = std::get_if<T>(&received->message)) return std::move(*message);
    const auto* failure = std::get_if<wire::Failure>(&received->message);
    ADD_FAILURE() << "another message: " << (failure == nullptr ? "" : failure->message);
    return {};
  }

 private:
  Fd socket_;
};

class ServerTest : public ::testing::Test, protected ServerWorld {
 protected:
  using Made = Result<std::unique_ptr<tier::Tier>>;
  static constexpr std::uint32_t buffer_bytes = 64 * 1024;
  static constexpr std::uint32_t buffers = 16;
  static constexpr double for_ever = 1e6;

  void SetUp() override { start(); }
  void start(double job_idle_s = for_ever);
  void TearDown() override;
  // Ends nothing by itself: it is blocked, and the server reads it from its signalfd.
  void ask_to_end() {
    pthread_kill(thread_.native_handle(), SIGTERM);  // NOLINT(bugprone-bad-signal-to-kill-thread)
  }
  void end_server();

  virtual void adjust(ServerOptions&) {}
  // Called in a store's thread.
  virtual Made tier_in(const std::string&) { return tier::make_memory_tier(); }
  // ServerWorld
  Made make_tier(const std::string& dir, const std::string&, Pool&, const ReportDisk&) override {
    return tier_in(dir);
  }
  Made open_tier(const std::string&) override { return tier::make_memory_tier(); }
  Made open_shared(const std::string&) override {
    return Error(Code::unsupported, "this test has no shared storage");
  }
  Result<Network> make_network(const MemberId&, const std::string&) override {
    return Error(Code::unsupported, "this agent serves jobs on one node only");
  }

  std::string path() const { return folder_ + "/s/agent.sock"; }

  // Says hello for a job of one rank.
  Peer join(const std::string& job, const std::string& dir);
  Peer tool();
  // The server's answer to a tool. It has by then handled everything that was sent to it before.
  wire::Answer status();

  std::string folder_;
  std::unique_ptr<Server> server_;
  std::thread thread_;
  Status ended_;
};

}  // namespace backstay::agent::testing
