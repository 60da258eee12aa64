// Files that a real process captures come to their own paths through a real agent, which is killed
// at every step (docs/protocol/home.md).
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "base/clock.h"
#include "client/files_job.h"
#include "client/writer.h"
#include "wire/socket.h"
#include "world.h"

namespace backstay::client::test {
namespace {

using Bytes = std::vector<unsigned char>;
namespace fs = std::filesystem;
constexpr double home_patience_s = 60;
constexpr std::uint64_t file_mib = 1 << 20;

class FilesHomeTest : public ::testing::Test {
 protected:
  FilesHomeTest() {
    fs::create_directory(place_);
    std::ofstream(config_) << "[job]\nname = \"test\"\n[storage]\nkeep = 2\ndir = \"" << dir_
                           << "\"\n[pool]\nsize_mib = 8\nbuffer_mib = 1\n[agent]\nsocket = \""
                           << socket_ << "\"\nprogram = \"" << BACKSTAY_AGENT << "\"\n";
  }
  ~FilesHomeTest() override { end_agent(SIGKILL); }

  // The next agent that is started stops at this point.
  static void next_agent_dies_at(const std::string& point) {
    ::setenv("BACKSTAY_FAILPOINT", (point + "=kill").c_str(), 1);
  }
  std::unique_ptr<Writer> join() {
    auto config = load_config(config_);
    EXPECT_TRUE(config.ok()) << config.error().to_string();
    auto writer = Writer::join(writer_settings(*config, config_));
    ::unsetenv("BACKSTAY_FAILPOINT");
    EXPECT_TRUE(writer.ok()) << writer.error().to_string();
    return writer.ok() ? std::move(*writer) : nullptr;
  }
  // Also that no process of it is left.
  void end_agent(int signal) {
    const auto peer = wire::connect_to(socket_);
    if (!peer.ok()) return;
    const int pid = wire::pid_of_peer(peer->get());
    if (pid <= 0) return;
    if (signal != 0) ::kill(pid, signal);
    pollfd end{peer->get(), POLLIN, 0};
    EXPECT_EQ(::poll(&end, 1, 60'000), 1) << "the agent goes on";
  }

  std::string at(const std::string& name) const { return place_ + "/" + name; }
  // What a program closes now: three bytes, a hole, and the rest.
  static format::CapturedFile file(const std::string& path, const Bytes& data) {
    format::CapturedFile one;
    one.path = path;
    one.mode = 0640;
    one.bytes = data.size() + 2 * file_mib;
    one.placed_ns = system_clock().wall_ns();
    const auto now = static_cast<std::int64_t>(one.placed_ns / 1'000'000'000);
    one.modified = {now, 123'456'789};
    one.accessed = {now - 5, 987'654'321};
    one.extents = {{0, 3, 0}, {2 * file_mib + 3, data.size() - 3, 3}};
    return one;
  }
  // One version with one file.
  static Result<VersionNumber> save(Writer& writer, const format::CapturedFile& one,
                                    const Bytes& data) {
    BACKSTAY_TRY(writer.begin());
    BACKSTAY_TRY(writer.append(data.data(), data.size()));
    return writer.end({one});
  }
  static Bytes content(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return Bytes{std::istreambuf_iterator<char>(in), {}};
  }
  static Bytes whole(const Bytes& data) {
    Bytes all(data.begin(), data.begin() + 3);
    all.resize(2 * file_mib + 3);
    all.insert(all.end(), data.begin() + 3, data.end());
    return all;
  }
  static void expect_home(const format::CapturedFile& one, const Bytes& data) {
    EXPECT_TRUE(content(one.path) == whole(data)) << one.path;
    struct stat facts {};
    ASSERT_EQ(::stat(one.path.c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 07777, one.mode);
    EXPECT_EQ(facts.st_mtim.tv_sec, one.modified.seconds);
    EXPECT_EQ(facts.st_mtim.tv_nsec, one.modified.nanoseconds);
    EXPECT_LT(static_cast<std::uint64_t>(facts.st_blocks) * 512, one.bytes) << "a hole";
  }
  // Nothing but these; no temporary file.
  std::set<std::string> names() const {
    std::set<std::string> all;
    for (const auto& entry : fs::directory_iterator(place_)) {
      all.insert(entry.path().filename().string());
    }
    return all;
  }
  std::size_t versions() const {
    std::size_t count = 0;
    for (const auto& entry : fs::directory_iterator(dir_ + "/" + files_job_name("test"))) {
      count += entry.path().filename().string().starts_with("v") ? 1 : 0;
    }
    return count;
  }
  nlohmann::json tool(const std::string& words) const {
    const std::string command =
        fmt::format("{} {} --config {} --json 2>/dev/null", BACKSTAY_TOOL, words, config_);
    std::string out;
    FILE* pipe = ::popen(command.c_str(), "r");
    for (char text[4096]; std::fgets(text, sizeof text, pipe) != nullptr;) out += text;
    ::pclose(pipe);
    return nlohmann::json::parse(out, nullptr, /*allow_exceptions=*/false);
  }

  World world_;
  std::string place_ = world_.folder() + "/place";
  std::string config_ = world_.folder() + "/files.toml";
  std::string dir_ = world_.folder() + "/versions";
  std::string socket_ = world_.folder() + "/files.sock";
};

TEST_F(FilesHomeTest, ACapturedFileComesHome) {
  const auto writer = join();
  const Bytes data = pattern(3 * file_mib, 1);
  const auto out = file(at("out"), data);
  ASSERT_TRUE(save(*writer, out, data).ok());
  const Status settled = writer->settle(out.path, home_patience_s);
  ASSERT_TRUE(settled.ok()) << settled.error().to_string();
  expect_home(out, data);
  EXPECT_EQ(names(), std::set<std::string>{"out"});
  const auto listed = tool("ls test --files");
  ASSERT_EQ(listed["files"].size(), 1U) << listed.dump();
  EXPECT_EQ(listed["files"][0]["home"], true);
}

// The last one counts, and versions whose files are at home go.
TEST_F(FilesHomeTest, AFileThatIsWrittenAgainAndAgain) {
  const auto writer = join();
  format::CapturedFile out;
  Bytes data;
  for (unsigned round = 0; round < 30; ++round) {
    data = pattern(100'000, round);
    out = file(at("out"), data);
    const auto saved = save(*writer, out, data);
    ASSERT_TRUE(saved.ok()) << saved.error().to_string();
  }
  const Status settled = writer->settle("", home_patience_s);
  ASSERT_TRUE(settled.ok()) << settled.error().to_string();
  expect_home(out, data);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (versions() > 2 && std::chrono::steady_clock::now() < deadline) ::sched_yield();
  EXPECT_EQ(versions(), 2U);
}

TEST_F(FilesHomeTest, AFolderThatIsMissingIsNamedAndWaitedFor) {
  const auto writer = join();
  const Bytes data = pattern(1000, 2);
  const auto out = file(at("later/out"), data);
  ASSERT_TRUE(save(*writer, out, data).ok());
  const Status settled = writer->settle(out.path, home_patience_s);
  ASSERT_FALSE(settled.ok());
  EXPECT_NE(settled.error().message().find("later"), std::string::npos)
      << settled.error().message();
  EXPECT_TRUE(writer->settle(at("another"), home_patience_s).ok());
  const auto listed = tool("ls test --files");
  EXPECT_EQ(listed["not_home"], 1) << listed.dump();
  const auto job = tool("status")["jobs"][0];
  EXPECT_EQ(job["home"]["waiting"], 1) << job.dump();
  EXPECT_EQ(job["home"]["failed"], 1);
  EXPECT_NE(job["home"]["warnings"].dump().find(out.path), std::string::npos);
  EXPECT_NE(job["notes"].dump().find("1 captured file is not at its own path yet"),
            std::string::npos)
      << job.dump();
  for (unsigned round = 0; round < 5; ++round) {  // its version stays meanwhile
    const auto other = file(at("other"), data);
    ASSERT_TRUE(save(*writer, other, data).ok());
    ASSERT_TRUE(writer->settle(other.path, home_patience_s).ok());
  }
  fs::create_directory(at("later"));
  const Status now = writer->settle(at("later/"), home_patience_s);
  ASSERT_TRUE(now.ok()) << now.error().to_string();
  expect_home(out, data);
}

// What stood at the path stays until the new file is whole; the next agent goes on.
TEST_F(FilesHomeTest, TheAgentIsKilledAtEveryStep) {
  const Bytes data = pattern(2 * file_mib, 3);
  for (const std::string point : {"home.1", "home.2", "home.3", "home.4", "home.5", "home.6"}) {
    SCOPED_TRACE(point);
    std::ofstream(at("out")) << "old";
    next_agent_dies_at(point);
    auto writer = join();
    const auto out = file(at("out"), data);
    ASSERT_TRUE(save(*writer, out, data).ok());
    const Status settled = writer->settle(out.path, home_patience_s);
    ASSERT_FALSE(settled.ok());
    EXPECT_EQ(settled.error().code(), Code::agent_lost) << settled.error().to_string();
    const Bytes seen = content(out.path);
    EXPECT_TRUE(seen == whole(data) || std::string(seen.begin(), seen.end()) == "old");
    writer = join();
    const Status after = writer->settle(out.path, home_patience_s);
    ASSERT_TRUE(after.ok()) << after.error().to_string();
    expect_home(out, data);
    EXPECT_EQ(names(), std::set<std::string>{"out"});
    writer.reset();
    end_agent(SIGKILL);
    fs::remove(out.path);
  }
}

TEST_F(FilesHomeTest, ARemovedFileDoesNotComeBack) {
  auto writer = join();
  const Bytes data = pattern(1000, 4);
  const auto out = file(at("out"), data), later = file(at("later/out"), data);
  ASSERT_TRUE(save(*writer, later, data).ok());
  ASSERT_TRUE(save(*writer, out, data).ok());
  ASSERT_TRUE(writer->settle(out.path, home_patience_s).ok());
  fs::remove(out.path);
  end_agent(SIGKILL);
  writer = join();
  EXPECT_FALSE(writer->settle("", home_patience_s).ok());  // the next agent has tried all
  EXPECT_EQ(names(), std::set<std::string>{});
}

TEST_F(FilesHomeTest, AnAgentThatIsStoppedBringsFilesFirst) {
  auto writer = join();
  const Bytes data = pattern(5 * file_mib, 5);
  const auto out = file(at("out"), data);
  ASSERT_TRUE(save(*writer, out, data).ok());
  end_agent(SIGTERM);
  expect_home(out, data);
}

}  // namespace
}  // namespace backstay::client::test
