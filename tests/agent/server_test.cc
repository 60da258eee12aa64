// The main loop over a real socket: it must answer whoever comes, whatever others do.
#include "agent/server.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>

#include <filesystem>
#include <thread>

#include "wire/socket.h"

namespace backstay::agent {
namespace {

class ServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // SIGTERM is the server's; the thread below inherits the mask.
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    std::string name = (std::filesystem::temp_directory_path() / "server-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    ServerOptions options;
    options.socket_path = path();
    options.make_tier = [](const std::string&, const std::string&, Pool&,
                           const std::function<void(const DiskFacts&)>&) {
      return Result<std::unique_ptr<tier::Tier>>(Error(Code::io, "no tier in this test"));
    };
    auto pool = Pool::create({1 << 20, 64 * 1024, false});
    ASSERT_TRUE(pool.ok());
    auto server = Server::create(std::move(options), std::move(*pool));
    ASSERT_TRUE(server.ok());
    server_ = std::move(*server);
    thread_ = std::thread([this] { ended_ = server_->run(); });
  }
  void TearDown() override {
    pthread_kill(thread_.native_handle(), SIGTERM);
    thread_.join();
    EXPECT_TRUE(ended_.ok());
    server_.reset();
    std::filesystem::remove_all(folder_);
  }

  std::string path() const { return folder_ + "/s/agent.sock"; }

  // True if the server answers a tool within ten seconds.
  bool answers() {
    auto socket = wire::connect_to(path());
    if (!socket.ok() || !wire::send(socket->get(), wire::Admin{}).ok()) return false;
    if (!wire::send(socket->get(), wire::Status{}).ok()) return false;
    pollfd readable{socket->get(), POLLIN, 0};
    if (poll(&readable, 1, 10'000) != 1) return false;
    const auto received = wire::receive(socket->get());
    return received.ok() && std::holds_alternative<wire::Answer>(received->message);
  }

  std::string folder_;
  std::unique_ptr<Server> server_;
  std::thread thread_;
  Status ended_;
};

TEST_F(ServerTest, AnswersATool) { EXPECT_TRUE(answers()); }

TEST_F(ServerTest, SilentPeersHoldNobodyUp) {
  const auto silent = wire::connect_to(path());
  const auto another = wire::connect_to(path());
  ASSERT_TRUE(silent.ok() && another.ok());
  ASSERT_TRUE(wire::send(another->get(), wire::Admin{}).ok());
  EXPECT_TRUE(answers());
}

TEST_F(ServerTest, EndsWithPeersConnected) {
  const auto silent = wire::connect_to(path());
  ASSERT_TRUE(silent.ok());
  EXPECT_TRUE(answers());
  // TearDown asks it to end and waits.
}

}  // namespace
}  // namespace backstay::agent
