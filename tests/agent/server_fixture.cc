#include "server_fixture.h"

namespace backstay::agent::testing {

Peer::Peer(const std::string& path) {
  auto socket = wire::connect_to(path);
  EXPECT_TRUE(socket.ok());
  if (socket.ok()) socket_ = std::move(*socket);
}

bool Peer::readable(int timeout_ms) {
  pollfd look{socket_.get(), POLLIN, 0};
  return ::poll(&look, 1, timeout_ms) == 1;
}

void ServerTest::start(double job_idle_s) {
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
  options.job_idle_s = job_idle_s;
  options.settings = {{"pool.size_mib", "1"}};
  options.world = this;
  adjust(options);
  auto pool = Pool::create({buffers * buffer_bytes, buffer_bytes, false});
  ASSERT_TRUE(pool.ok());
  auto server = Server::create(std::move(options), std::move(*pool));
  ASSERT_TRUE(server.ok());
  server_ = std::move(*server);
  thread_ = std::thread([this] { ended_ = server_->run(); });
}

void ServerTest::TearDown() {
  if (server_) end_server();
  std::filesystem::remove_all(folder_);
}

void ServerTest::end_server() {
  ask_to_end();
  thread_.join();
  EXPECT_TRUE(ended_.ok());
  server_.reset();
}

Peer ServerTest::join(const std::string& job, const std::string& dir) {
  Peer rank(path());
  wire::Hello hello;
  hello.job = job;
  hello.dir = dir;
  hello.run = 7;
  rank.send(hello);
  return rank;
}

Peer ServerTest::tool() {
  Peer one(path());
  one.send(wire::Admin{});
  return one;
}

wire::Answer ServerTest::status() {
  Peer one = tool();
  one.send(wire::Status{});
  return one.take<wire::Answer>();
}

}  // namespace backstay::agent::testing
