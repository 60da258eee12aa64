// When the main loop closes a job whose program has ended: its lock, its thread and its buffers come
// free, and a program that comes back finds its versions in the pool as long as they are there.
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "agent/job_lock.h"
#include "agent/server.h"
#include "client/session.h"
#include "tier/memory.h"
#include "wire/socket.h"

namespace backstay::agent {
namespace {

using client::Group;
using client::Session;
using nlohmann::json;

constexpr std::uint32_t buffer_bytes = 64 * 1024;
constexpr std::uint32_t buffers = 16;
constexpr double for_ever = 1e6;

// What a tier of the test does. It outlives the agent's jobs, as a disk would.
class SharedTier final : public tier::Tier {
 public:
  SharedTier(tier::Tier& disk, std::atomic<bool>& full) : disk_(disk), full_(full) {}
  Result<std::unique_ptr<tier::Writer>> create(const std::string& name,
                                               std::uint64_t bytes) override {
    if (full_) return Error(Code::no_space, "the disk is full");
    return disk_.create(name, bytes);
  }
  Result<std::unique_ptr<tier::Reader>> open(const std::string& name) override {
    return disk_.open(name);
  }
  Status put(const std::string& name, Bytes content) override { return disk_.put(name, content); }
  Result<Buffer> get(const std::string& name, std::uint64_t bytes_max) override {
    return disk_.get(name, bytes_max);
  }
  Result<std::vector<std::string>> list(const std::string& prefix) override {
    return disk_.list(prefix);
  }
  Status remove(const std::string& name) override { return disk_.remove(name); }
  Status sync(const std::string& prefix) override { return disk_.sync(prefix); }

 private:
  tier::Tier& disk_;
  std::atomic<bool>& full_;
};

class ServerJobs : public ::testing::Test {
 protected:
  void start(double job_idle_s) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    std::string name = (std::filesystem::temp_directory_path() / "server-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    ServerOptions options;
    options.socket_path = folder_ + "/s/agent.sock";
    options.job_idle_s = job_idle_s;
    options.make_tier = [this](const std::string&, const std::string&, Pool&, const ReportDisk&) {
      return Result<std::unique_ptr<tier::Tier>>(std::make_unique<SharedTier>(*disk_, full_));
    };
    auto pool = Pool::create({buffers * buffer_bytes, buffer_bytes, false});
    ASSERT_TRUE(pool.ok());
    auto server = Server::create(std::move(options), std::move(*pool));
    ASSERT_TRUE(server.ok());
    server_ = std::move(*server);
    thread_ = std::thread([this] { ended_ = server_->run(); });
    auto tool = wire::connect_to(folder_ + "/s/agent.sock");
    ASSERT_TRUE(tool.ok() && wire::send(tool->get(), wire::Admin{}).ok());
    tool_ = std::move(*tool);
  }
  void TearDown() override {
    pthread_kill(thread_.native_handle(), SIGTERM);
    thread_.join();
    EXPECT_TRUE(ended_.ok());
    server_.reset();
    std::filesystem::remove_all(folder_);
  }

  json status() {
    EXPECT_TRUE(wire::send(tool_.get(), wire::Status{}).ok());
    const auto received = wire::receive(tool_.get());
    EXPECT_TRUE(received.ok());
    return json::parse(std::get<wire::Answer>(received->message).json);
  }
  // Asks the agent again and again: each question is a turn of its loop.
  template <typename Condition>
  json status_once(const char* what, Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    json now = status();
    while (!condition(now) && std::chrono::steady_clock::now() < deadline) now = status();
    EXPECT_TRUE(condition(now)) << "never happened: " << what << ": " << now.dump();
    return now;
  }
  json closed() {
    return status_once("closed", [](const json& now) { return now["jobs"].empty(); });
  }
  json all_left() {
    return status_once("left", [](const json& now) { return now["jobs"][0]["connected"] == 0; });
  }

  std::unique_ptr<Session> session(const std::string& job = "job") {
    const std::string config = folder_ + "/" + job + ".toml";
    std::ofstream(config) << "[job]\nname = \"" << job << "\"\n[storage]\ndir = \"" << folder_
                          << "\"\n[agent]\nsocket = \"" << folder_
                          << "/s/agent.sock\"\nprogram = \"/nonexistent/backstayd\"\n";
    auto started = Session::start(Group(), config.c_str());
    EXPECT_TRUE(started.ok()) << started.error().to_string();
    backstay_array array{};
    array.dims = 1;
    array.shape[0] = data_.size();
    EXPECT_TRUE((*started)->protect("u", data_.data(), &array, BACKSTAY_BYTE).ok());
    return std::move(*started);
  }
  // A program that saves one version and ends once it is local.
  void save(const std::string& job = "job") {
    auto program = session(job);
    ASSERT_TRUE(program->checkpoint().ok());
    ASSERT_TRUE(program->wait(program->version(), Level::local, 20).ok());
  }
  // Whether another agent could serve the job.
  Code code_of_lock(const std::string& job) {
    const auto lock = lock_job(folder_, job);
    return lock.ok() ? Code::ok : lock.error().code();
  }
  static std::size_t threads() {
    std::filesystem::directory_iterator all("/proc/self/task");
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }

  std::string folder_;
  std::unique_ptr<tier::Tier> disk_ = tier::make_memory_tier();
  std::atomic<bool> full_ = false;
  std::vector<unsigned char> data_ = std::vector<unsigned char>(3 * buffer_bytes, 7);
  std::unique_ptr<Server> server_;
  std::thread thread_;
  Status ended_;
  Fd tool_;
};

TEST_F(ServerJobs, WithNothingInThePoolAreClosedAtOnce) {
  start(for_ever);
  const std::size_t before = threads();
  for (int job = 0; job < 20; ++job) {
    const auto program = session("job" + std::to_string(job));
    EXPECT_EQ(code_of_lock("job" + std::to_string(job)), Code::busy);
  }
  closed();
  // Not more: the pool's own thread ends some time, and the kernel lists a joined one a moment longer.
  status_once("threads ended", [&](const json&) { return threads() <= before; });
  EXPECT_EQ(code_of_lock("job3"), Code::ok) << "another agent may serve it";
  session("job3");  // and so may this one
}

TEST_F(ServerJobs, WithVersionsInThePoolStayForAFastRestart) {
  start(for_ever);
  save();
  const json left = all_left();
  EXPECT_TRUE(left["jobs"][0]["versions"][0]["in_pool"]);
  EXPECT_EQ(code_of_lock("job"), Code::busy);
  ASSERT_TRUE(session()->restart().ok());
  EXPECT_EQ(status()["disk"]["read_bytes"], 0) << "it came from the pool";
}

TEST_F(ServerJobs, AreClosedOnceNobodyCameForLong) {
  start(0.01);
  save();
  const json after = closed();
  EXPECT_EQ(after["pool"]["free"], buffers);
  EXPECT_EQ(code_of_lock("job"), Code::ok);
  std::fill(data_.begin(), data_.end(), 0);
  const auto program = session();
  ASSERT_TRUE(program->restart().ok());
  EXPECT_EQ(program->version(), 1u);
  EXPECT_EQ(data_[0], 7);
}

TEST_F(ServerJobs, AreClosedOnceOthersNeededTheirBuffers) {
  start(for_ever);
  save("small");
  data_.resize((buffers - 1) * buffer_bytes);
  save("large");
  const json now = status_once("one", [](const json& all) { return all["jobs"].size() == 1; });
  EXPECT_EQ(now["jobs"][0]["job"], "large");
  EXPECT_EQ(code_of_lock("small"), Code::ok);
}

// Far more than the pool has room for, of which only little is read.
TEST_F(ServerJobs, GiveOneRegionWithoutMovingTheOthers) {
  start(0);
  std::vector<unsigned char> small(1000, 9);
  data_.resize(4 * buffers * buffer_bytes, 1);
  {
    auto program = session();
    backstay_array array{};
    array.dims = 1;
    array.shape[0] = small.size();
    ASSERT_TRUE(program->protect("v", small.data(), &array, BACKSTAY_BYTE).ok());
    ASSERT_TRUE(program->checkpoint().ok());
    ASSERT_TRUE(program->wait(1, Level::local, 20).ok());
  }
  closed();
  auto program = session();
  std::vector<unsigned char> read(small.size());
  ASSERT_TRUE(program->read_region(1, "v", read.data(), read.size()).ok());
  EXPECT_EQ(read, small);
  EXPECT_LE(status()["disk"]["read_bytes"], 4 * buffer_bytes);
  std::vector<unsigned char> large(data_.size());
  ASSERT_TRUE(program->read_region(1, "u", large.data(), large.size()).ok());
  EXPECT_EQ(large, data_);
}

// What was reported is not dropped while the agent lives.
TEST_F(ServerJobs, StayWithAVersionThatCouldNotBeWritten) {
  start(0);
  full_ = true;
  {
    auto program = session();
    ASSERT_TRUE(program->checkpoint().ok());
    EXPECT_EQ(program->wait(1, Level::local, 20).error().code(), Code::no_space);
  }
  all_left();
  { const auto other = session("other"); }
  status_once("other closed", [](const json& now) { return now["jobs"].size() == 1; });
  full_ = false;
  auto program = session();
  ASSERT_TRUE(program->restart().ok());
  EXPECT_EQ(program->version(), 1u);
}

}  // namespace
}  // namespace backstay::agent
