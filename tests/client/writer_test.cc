// Writers of real processes at a real agent: `backstay verify` accepts what they wrote, every byte
// of it is in the store, and whatever is killed leaves what the protocol promises.
#include "client/writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <span>

#include "base/checksum.h"
#include "client/files_job.h"
#include "format/manifest.h"
#include "format/names.h"
#include "wire/socket.h"
#include "world.h"

namespace backstay::client::test {
namespace {

using Bytes = std::vector<unsigned char>;  // of a file
constexpr std::size_t mib = 1 << 20;
constexpr double patience_s = 60;

class WriterTest : public ::testing::Test {
 protected:
  WriterTest() {
    std::ofstream(config_) << "[job]\nname = \"test\"\n[storage]\nkeep = 100\ndir = \"" << dir_
                           << "\"\n[pool]\nsize_mib = 8\nbuffer_mib = 1\n[agent]\nsocket = \""
                           << socket_ << "\"\nprogram = \"" << BACKSTAY_AGENT << "\"\n";
  }
  ~WriterTest() override { kill_agent(); }

  WriterSettings settings() {
    auto config = load_config(config_);
    EXPECT_TRUE(config.ok()) << config.error().to_string();
    return writer_settings(*config, config_);
  }
  std::unique_ptr<Writer> join() {
    auto writer = Writer::join(settings());
    EXPECT_TRUE(writer.ok()) << writer.error().to_string();
    return writer.ok() ? std::move(*writer) : nullptr;
  }
  // Also that no process of it is left.
  void kill_agent() {
    const auto peer = wire::connect_to(socket_);
    if (!peer.ok()) return;
    const int pid = wire::pid_of_peer(peer->get());
    if (pid <= 0) return;
    ::kill(pid, SIGKILL);
    pollfd end{peer->get(), POLLIN, 0};
    ::poll(&end, 1, 10'000);
  }

  static format::CapturedFile file(const std::string& path, std::uint64_t at, std::uint64_t bytes) {
    format::CapturedFile one;
    one.path = path;
    one.mode = 0640;
    one.bytes = bytes;
    one.placed_ns = 1;
    if (bytes > 0) one.extents.push_back({0, bytes, at});
    return one;
  }
  // One version with one file, appended in pieces.
  static Result<VersionNumber> save(Writer& writer, const std::string& path, const Bytes& data,
                                    std::size_t piece = 128 << 10) {
    BACKSTAY_TRY(writer.begin());
    for (std::size_t at = 0; at < data.size(); at += piece) {
      BACKSTAY_TRY(writer.append(data.data() + at, std::min(piece, data.size() - at)));
    }
    return writer.end({file(path, 0, data.size())});
  }

  // What lies in the store under the path; every checksum is checked on the way.
  Result<Bytes> stored(VersionNumber version, const std::string& path) const {
    const std::string folder = dir_ + "/" + format::version_folder(files_job_name("test"), version);
    BACKSTAY_ASSIGN(
        const format::Manifest manifest,
        format::decode_manifest(as_bytes(content_of(folder + "/node-0000000.manifest"))));
    if (manifest.objects.size() != 1) return Error(Code::corrupt, "not one object");
    const Bytes segment = content_of(folder + "/node-0000000.segment");
    Bytes object;
    for (const format::ChunkEntry& chunk : manifest.chunks_of(manifest.objects[0])) {
      const auto bytes = as_bytes(segment).subspan(chunk.segment_offset, chunk.length);
      if (checksum(bytes) != chunk.checksum) return Error(Code::corrupt, "a chunk is damaged");
      const auto* from = segment.data() + chunk.segment_offset;
      object.insert(object.end(), from, from + chunk.length);
    }
    return file_in(object, path);
  }
  static Result<Bytes> file_in(const Bytes& object, const std::string& path) {
    const auto all = as_bytes(object);
    BACKSTAY_ASSIGN(const format::Footer footer,
                    format::decode_footer(all.last(format::object_footer_bytes), all.size(),
                                          format::ObjectKind::files));
    BACKSTAY_ASSIGN(
        const auto files,
        format::decode_files(all.subspan(footer.table_offset, footer.table_bytes), footer));
    for (const format::CapturedFile& one : files) {
      if (one.path != path) continue;
      Bytes data(one.bytes);
      for (const format::Extent& extent : one.extents) {
        std::memcpy(data.data() + extent.file_offset, object.data() + extent.object_offset,
                    extent.bytes);
      }
      return data;
    }
    return Error(Code::not_found, path);
  }
  static Bytes content_of(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static std::span<const std::byte> as_bytes(const Bytes& data) {
    return std::as_bytes(std::span(data));
  }
  // The version proves right, and its file is the data.
  void expect_stored(VersionNumber version, const std::string& path, const Bytes& data) const {
    const std::string verify =
        fmt::format("BACKSTAY_DIR={} {} verify --no-mark {} {} > {}/said 2>&1", dir_, BACKSTAY_TOOL,
                    files_job_name("test"), version, world_.folder());
    EXPECT_EQ(std::system(verify.c_str()), 0) << verify;
    const auto back = stored(version, path);
    ASSERT_TRUE(back.ok()) << version << ": " << back.error().to_string();
    EXPECT_TRUE(*back == data) << path << ": " << back->size() << " of " << data.size();
  }

  // Runs `body` in a child; returns its pid.
  static pid_t in_child(const std::function<void()>& body) {
    const pid_t child = ::fork();
    if (child == 0) {
      body();
      ::_exit(0);
    }
    return child;
  }
  static void expect_ended_well(pid_t child) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }

  World world_;
  std::string config_ = world_.folder() + "/writer.toml";
  std::string dir_ = world_.folder() + "/store";
  std::string socket_ = world_.folder() + "/writer.sock";
};

TEST_F(WriterTest, StartsAnAgentAndBringsBytesToTheDisk) {
  const auto writer = join();
  ASSERT_NE(writer, nullptr);
  const Bytes data = pattern(3 * mib + 12345, 1);
  const auto version = save(*writer, "/w/out", data);
  ASSERT_TRUE(version.ok()) << version.error().to_string();
  ASSERT_TRUE(writer->wait(*version, Level::local, patience_s).ok());
  expect_stored(*version, "/w/out", data);
}

TEST_F(WriterTest, AnObjectMayBeLargerThanThePool) {
  const auto writer = join();
  const Bytes data = pattern(40 * mib + 1, 2);
  const auto version = save(*writer, "/w/large", data, 3 * mib + 7);
  ASSERT_TRUE(version.ok()) << version.error().to_string();
  ASSERT_TRUE(writer->wait(*version, Level::local, patience_s).ok());
  expect_stored(*version, "/w/large", data);
}

TEST_F(WriterTest, PiecesOfAnySize) {
  const auto writer = join();
  const Bytes data = pattern(2 * mib + 77, 3);
  std::vector<VersionNumber> versions;
  for (const std::size_t piece : {std::size_t{97}, std::size_t{4096}, mib, mib + 1, 3 * mib}) {
    const auto version = save(*writer, "/w/out", data, piece);
    ASSERT_TRUE(version.ok()) << version.error().to_string();
    ASSERT_TRUE(writer->wait(*version, Level::local, patience_s).ok());
    versions.push_back(*version);
  }
  for (const VersionNumber version : versions) expect_stored(version, "/w/out", data);
}

TEST_F(WriterTest, SeveralFilesHolesAndNothing) {
  const auto writer = join();
  ASSERT_TRUE(writer->begin().ok());
  ASSERT_TRUE(writer->append("hello world\n", 12).ok());
  EXPECT_EQ(writer->payload_bytes(), 12U);
  ASSERT_TRUE(writer->append("end\n", 4).ok());
  auto two = file("/w/a", 0, 12);
  two.bytes = 4100;
  two.extents.push_back({4096, 4, 12});
  const auto version = writer->end({file("/w/empty", 0, 0), two});
  ASSERT_TRUE(version.ok()) << version.error().to_string();
  ASSERT_TRUE(writer->wait(*version, Level::local, patience_s).ok());
  Bytes data(4100);
  std::memcpy(data.data(), "hello world\n", 12);
  std::memcpy(data.data() + 4096, "end\n", 4);
  expect_stored(*version, "/w/a", data);
  expect_stored(*version, "/w/empty", {});
}

TEST_F(WriterTest, CallsOutOfOrderAndTablesThatCannotBe) {
  const auto writer = join();
  EXPECT_EQ(writer->append("x", 1).error().code(), Code::state);
  EXPECT_EQ(writer->end({}).error().code(), Code::state);
  EXPECT_TRUE(writer->abandon().ok());
  ASSERT_TRUE(writer->begin().ok());
  EXPECT_EQ(writer->begin().error().code(), Code::state);
  EXPECT_EQ(writer->wait(1, Level::local, 1).error().code(), Code::state);
  ASSERT_TRUE(writer->append("x", 1).ok());
  EXPECT_EQ(writer->end({file("relative", 0, 1)}).error().code(), Code::invalid);
  EXPECT_EQ(writer->end({file("/a/../b", 0, 1)}).error().code(), Code::invalid);
  EXPECT_EQ(writer->end({file("/a", 0, 1), file("/a", 0, 1)}).error().code(), Code::invalid);
  EXPECT_EQ(writer->end({file("/a", 1, 1)}).error().code(), Code::invalid);
  const auto version = writer->end({file("/a", 0, 1)});
  ASSERT_TRUE(version.ok()) << "the version was still open";
  ASSERT_TRUE(writer->wait(*version, Level::local, patience_s).ok());
  EXPECT_EQ(writer->wait(*version, Level::protected_, patience_s).error().code(),
            Code::unsupported);
  expect_stored(*version, "/a", {'x'});
}

TEST_F(WriterTest, AbandonLeavesNothingAndTheNextVersionIsGood) {
  const auto writer = join();
  const Bytes data = pattern(20 * mib, 4);
  ASSERT_TRUE(writer->begin().ok());
  ASSERT_TRUE(writer->append(data.data(), data.size()).ok());
  ASSERT_TRUE(writer->abandon().ok());
  const auto version = save(*writer, "/w/out", data);
  ASSERT_TRUE(version.ok()) << version.error().to_string();
  ASSERT_TRUE(writer->wait(*version, Level::local, patience_s).ok());
  expect_stored(*version, "/w/out", data);
}

TEST_F(WriterTest, TwoProcessesAtOnce) {
  const auto keep = join();  // one agent for both
  std::vector<pid_t> children;
  for (const unsigned seed : {5U, 6U}) {
    children.push_back(in_child([&] {
      const auto writer = Writer::join(settings());
      if (!writer.ok()) ::_exit(1);
      for (int round = 0; round < 3; ++round) {
        const Bytes data = pattern(12 * mib + seed, seed);
        const auto version = save(**writer, fmt::format("/w/{}", seed), data);
        if (!version.ok() || !(*writer)->wait(*version, Level::local, patience_s).ok()) ::_exit(2);
        std::ofstream(fmt::format("{}/saved-{}-{}", world_.folder(), seed, round)) << *version;
      }
    }));
  }
  for (const pid_t child : children) expect_ended_well(child);
  std::set<VersionNumber> numbers;
  for (const unsigned seed : {5U, 6U}) {
    for (int round = 0; round < 3; ++round) {
      VersionNumber version = 0;
      std::ifstream(fmt::format("{}/saved-{}-{}", world_.folder(), seed, round)) >> version;
      EXPECT_TRUE(numbers.insert(version).second);
      expect_stored(version, fmt::format("/w/{}", seed), pattern(12 * mib + seed, seed));
    }
  }
}

TEST_F(WriterTest, ThatIsKilledLeavesWhatHasEnded) {
  const auto other = join();
  for (int step = 0; step < 6; ++step) {
    const Bytes data = pattern(10 * mib, 7);
    const pid_t child = in_child([&] {
      const auto kill_at = [&](int at) {
        if (step == at) ::kill(::getpid(), SIGKILL);
      };
      auto writer = Writer::join(settings());
      if (!writer.ok()) ::_exit(1);
      kill_at(0);
      if (!(*writer)->begin().ok()) ::_exit(2);
      kill_at(1);
      (void)(*writer)->append(data.data(), 1000);
      kill_at(2);
      (void)(*writer)->append(data.data() + 1000, data.size() - 1000);
      kill_at(3);
      const auto version = (*writer)->end({file("/w/out", 0, data.size())});
      if (!version.ok()) ::_exit(3);
      std::ofstream(world_.folder() + "/ended") << *version << std::flush;
      kill_at(4);
      if (!(*writer)->wait(*version, Level::local, patience_s).ok()) ::_exit(4);
      kill_at(5);
    });
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << step << ": " << status;
    const auto after = save(*other, "/w/other", data);
    ASSERT_TRUE(after.ok()) << step << ": " << after.error().to_string();
    ASSERT_TRUE(other->wait(*after, Level::local, patience_s).ok());
    VersionNumber ended = 0;
    std::ifstream(world_.folder() + "/ended") >> ended;
    EXPECT_EQ(ended != 0, step >= 4);
    if (ended == 0) continue;
    ASSERT_TRUE(other->wait(ended, Level::local, patience_s).ok());
    expect_stored(ended, "/w/out", data);
    std::filesystem::remove(world_.folder() + "/ended");
  }
}

TEST_F(WriterTest, AnAgentThatIsKilledIsAnErrorAndTheNextOneGoesOn) {
  const Bytes data = pattern(20 * mib, 8);
  std::vector<VersionNumber> local;
  for (int step = 0; step < 4; ++step) {
    auto writer = join();
    ASSERT_NE(writer, nullptr);
    const auto before = save(*writer, "/w/out", data);
    ASSERT_TRUE(before.ok()) << before.error().to_string();
    EXPECT_TRUE(local.empty() || *before > local.back());
    ASSERT_TRUE(writer->wait(*before, Level::local, patience_s).ok());
    local.push_back(*before);
    if (step == 0) kill_agent();
    Status status = writer->begin();
    if (step == 1) kill_agent();
    if (status.ok()) status = writer->append(data.data(), 1000);
    if (step == 2) kill_agent();
    if (status.ok()) status = writer->append(data.data(), data.size());
    if (step == 3) kill_agent();
    if (status.ok()) {
      const auto ended = writer->end({file("/w/out", 0, 1000)});
      status = ended.ok() ? Status() : Status(ended.error());
    }
    ASSERT_FALSE(status.ok()) << step;
    EXPECT_EQ(status.error().code(), Code::agent_lost) << step << status.error().to_string();
    EXPECT_EQ(writer->begin().error().code(), Code::agent_lost);
    EXPECT_EQ(writer->wait(local.back(), Level::local, 1).error().code(), Code::agent_lost);
  }
  for (const VersionNumber version : local) expect_stored(version, "/w/out", data);
}

TEST_F(WriterTest, TheChildOfAForkIsRefusedAndDoesTheParentNoHarm) {
  auto writer = join();
  const Bytes data = pattern(3 * mib, 9);
  ASSERT_TRUE(writer->begin().ok());
  ASSERT_TRUE(writer->append(data.data(), mib + 5).ok());
  expect_ended_well(in_child([&] {
    const bool refused = writer->append("x", 1).error().code() == Code::state &&
                         writer->end({}).error().code() == Code::state &&
                         writer->abandon().error().code() == Code::state &&
                         writer->begin().error().code() == Code::state;
    if (!refused) ::_exit(1);
    writer.reset();
    auto own = Writer::join(settings());
    if (!own.ok() || !save(**own, "/w/child", data).ok()) ::_exit(2);
  }));
  ASSERT_TRUE(writer->append(data.data() + mib + 5, data.size() - mib - 5).ok());
  const auto version = writer->end({file("/w/out", 0, data.size())});
  ASSERT_TRUE(version.ok()) << version.error().to_string();
  ASSERT_TRUE(writer->wait(*version, Level::local, patience_s).ok());
  expect_stored(*version, "/w/out", data);
}

TEST_F(WriterTest, DescriptorsCloseOnExec) {
  const auto writer = join();
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename().string());
    std::error_code gone;
    const std::string to = std::filesystem::read_symlink(entry.path(), gone).string();
    if (gone || to.find("socket") == std::string::npos) continue;
    EXPECT_NE(::fcntl(fd, F_GETFD) & FD_CLOEXEC, 0) << to;
  }
}

TEST(FilesJob, NameIsOneThatAJobMayHave) {
  EXPECT_EQ(files_job_name("heat", "n1"), "heat.files.n1");
  EXPECT_EQ(files_job_name("heat", "n1.cluster.org"), "heat.files.n1.cluster.org");
  EXPECT_EQ(files_job_name("heat", "a b/c"), "heat.files.a-b-c");
  EXPECT_EQ(files_job_name("heat", ""), "heat.files.localhost");
  const std::string job(100, 'j');
  const std::string one = files_job_name(job, "n1");
  EXPECT_TRUE(check_job_name(one).ok()) << one;
  EXPECT_NE(one, files_job_name(job, "n2"));
  EXPECT_NE(one, job);
  EXPECT_TRUE(check_job_name(files_job_name("heat")).ok());
}

}  // namespace
}  // namespace backstay::client::test
