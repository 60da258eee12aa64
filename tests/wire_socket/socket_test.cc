// The local socket: who may connect, what happens to stale names, and that descriptors never leak.
#include "wire/socket.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <thread>

namespace backstay::wire {
namespace {

class Folder {
 public:
  Folder() {
    char name[] = "/tmp/backstay-socket-XXXXXX";
    path_ = ::mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string at(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

std::array<Fd, 2> socket_pair() {
  int fds[2] = {-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
  return {Fd(fds[0]), Fd(fds[1])};
}

int open_descriptors() {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

mode_t mode_of(const std::string& path) {
  struct stat info {};
  EXPECT_EQ(::lstat(path.c_str(), &info), 0) << path;
  return info.st_mode & 0777;
}

TEST(Socket, CarriesAMessageAndDescriptors) {
  const auto [left, right] = socket_pair();
  const Fd memory(::memfd_create("test", MFD_CLOEXEC));
  ASSERT_EQ(::write(memory.get(), "hello", 5), 5);
  Welcome welcome;
  welcome.pool_bytes = 1234;
  ASSERT_TRUE(send(left.get(), welcome, {memory.get()}).ok());

  auto received = receive(right.get());
  ASSERT_TRUE(received.ok()) << received.error().to_string();
  ASSERT_TRUE(std::holds_alternative<Welcome>(received->message));
  EXPECT_EQ(std::get<Welcome>(received->message).pool_bytes, 1234U);
  ASSERT_EQ(received->descriptors.size(), 1U);
  EXPECT_NE(::fcntl(received->descriptors[0].get(), F_GETFD) & FD_CLOEXEC, 0);
  char text[6] = {};
  EXPECT_EQ(::pread(received->descriptors[0].get(), text, 5, 0), 5);
  EXPECT_STREQ(text, "hello");
}

TEST(Socket, KeepsMessagesApart) {
  const auto [left, right] = socket_pair();
  ASSERT_TRUE(send(left.get(), End{7}).ok());
  ASSERT_TRUE(send(left.get(), Query{8}).ok());
  EXPECT_EQ(std::get<End>(receive(right.get())->message).version, 7U);
  EXPECT_EQ(std::get<Query>(receive(right.get())->message).version, 8U);
}

TEST(Socket, SaysThatThePeerHasGone) {
  auto [left, right] = socket_pair();
  right.reset();
  EXPECT_EQ(receive(left.get()).error().code(), Code::agent_lost);
  // SIGPIPE has its default action here: the test would die of it.
  EXPECT_EQ(send(left.get(), Goodbye{}).error().code(), Code::agent_lost);
}

TEST(Socket, SaysAgainOnANonBlockingSocket) {
  const auto [left, right] = socket_pair();
  ASSERT_EQ(::fcntl(left.get(), F_SETFL, O_NONBLOCK), 0);
  EXPECT_EQ(receive(left.get()).error().code(), Code::again);
  while (true) {
    const auto sent = send(left.get(), Goodbye{});
    if (sent.ok()) continue;
    EXPECT_EQ(sent.error().code(), Code::again);
    break;
  }
}

TEST(Socket, RefusesGarbageWithoutLeakingDescriptors) {
  const auto [left, right] = socket_pair();
  const int before = open_descriptors();
  const Fd memory(::memfd_create("test", MFD_CLOEXEC));
  // Raw bytes that are no message, with a descriptor attached.
  std::array<char, 3> junk = {1, 2, 3};
  iovec part{junk.data(), junk.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  cmsghdr* rights = CMSG_FIRSTHDR(&header);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(int));
  const int fd = memory.get();
  std::memcpy(CMSG_DATA(rights), &fd, sizeof fd);
  ASSERT_EQ(::sendmsg(left.get(), &header, 0), 3);
  EXPECT_EQ(receive(right.get()).error().code(), Code::invalid);
  EXPECT_EQ(open_descriptors(), before + 1);  // only `memory` itself
}

TEST(Socket, RefusesAPacketOfMoreThan64KiB) {
  const auto [left, right] = socket_pair();
  const std::vector<char> big(message_bytes_max + 1, 'x');
  ASSERT_EQ(::send(left.get(), big.data(), big.size(), 0), static_cast<ssize_t>(big.size()));
  EXPECT_EQ(receive(right.get()).error().code(), Code::invalid);
}

TEST(Listen, MakesFolderAndSocketForTheUserAlone) {
  const Folder folder;
  const std::string path = folder.at("a/b/agent.sock");
  const auto listener = listen_at(path);
  ASSERT_TRUE(listener.ok()) << listener.error().to_string();
  EXPECT_EQ(mode_of(path), 0600U);
  EXPECT_EQ(mode_of(folder.at("a/b")), 0700U);
  EXPECT_EQ(mode_of(folder.at("a")), 0700U);
}

TEST(Listen, ConnectsBothEnds) {
  const Folder folder;
  const std::string path = folder.at("agent.sock");
  const auto listener = listen_at(path);
  ASSERT_TRUE(listener.ok());
  const auto client = connect_to(path);
  ASSERT_TRUE(client.ok()) << client.error().to_string();
  const auto server = accept_from(listener->get());
  ASSERT_TRUE(server.ok()) << server.error().to_string();
  ASSERT_TRUE(send(client->get(), End{3}).ok());
  EXPECT_EQ(std::get<End>(receive(server->get())->message).version, 3U);
}

TEST(Listen, RefusesASecondListener) {
  const Folder folder;
  const std::string path = folder.at("agent.sock");
  const auto first = listen_at(path);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(listen_at(path).error().code(), Code::busy);
  EXPECT_TRUE(connect_to(path).ok()) << "the first one must still be reachable";
}

TEST(Listen, ReplacesAStaleSocket) {
  const Folder folder;
  const std::string path = folder.at("agent.sock");
  { ASSERT_TRUE(listen_at(path).ok()); }
  ASSERT_TRUE(std::filesystem::exists(path));
  EXPECT_EQ(connect_to(path).error().code(), Code::agent_lost);
  const auto again = listen_at(path);
  ASSERT_TRUE(again.ok()) << again.error().to_string();
  EXPECT_TRUE(connect_to(path).ok());
}

TEST(Listen, OnlyOneOfManyReplacesAStaleSocket) {
  const Folder folder;
  const std::string path = folder.at("agent.sock");
  { ASSERT_TRUE(listen_at(path).ok()); }
  std::vector<Result<Fd>> results;
  for (int i = 0; i < 8; ++i) results.emplace_back(Error(Code::internal, "not run"));
  std::vector<std::thread> threads;
  for (auto& result : results) threads.emplace_back([&] { result = listen_at(path); });
  for (auto& thread : threads) thread.join();
  int winners = 0;
  for (const auto& result : results) {
    if (result.ok()) {
      ++winners;
    } else {
      EXPECT_EQ(result.error().code(), Code::busy) << result.error().to_string();
    }
  }
  EXPECT_EQ(winners, 1);
  EXPECT_TRUE(connect_to(path).ok());
}

TEST(Listen, NeverRemovesAFileThatIsNoSocket) {
  const Folder folder;
  const std::string path = folder.at("precious");
  { const Fd file(::open(path.c_str(), O_CREAT | O_WRONLY, 0600)); }
  EXPECT_EQ(listen_at(path).error().code(), Code::invalid);
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST(Listen, RefusesAFolderThatOthersMayWrite) {
  const Folder folder;
  ASSERT_EQ(::mkdir(folder.at("open").c_str(), 0700), 0);
  ASSERT_EQ(::chmod(folder.at("open").c_str(), 0777), 0);
  const auto refused = listen_at(folder.at("open/agent.sock"));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::permission);
  EXPECT_NE(refused.error().message().find("open"), std::string::npos);
}

TEST(Listen, RefusesALongPathAndNamesTheSetting) {
  const Folder folder;
  const std::string path = folder.at(std::string(100, 'x'));
  for (const auto& refused : {listen_at(path).error(), connect_to(path).error()}) {
    EXPECT_EQ(refused.code(), Code::long_path);
    EXPECT_NE(refused.message().find("agent.socket"), std::string::npos) << refused.message();
  }
}

TEST(Listen, AcceptsTheLongestPathThatTheSystemAllows) {
  const Folder folder;
  const std::string base = folder.at("");
  const std::string longest = base + std::string(107 - base.size(), 'x');
  EXPECT_TRUE(listen_at(longest).ok());
  EXPECT_EQ(listen_at(longest + "y").error().code(), Code::long_path);
}

TEST(Connect, SaysThatNobodyIsThere) {
  const Folder folder;
  EXPECT_EQ(connect_to(folder.at("nothing.sock")).error().code(), Code::not_found);
}

TEST(DefaultPath, FallsBackWhereTheRuntimeFolderIsMissing) {
  const Folder folder;
  ::setenv("XDG_RUNTIME_DIR", folder.at("").c_str(), 1);
  EXPECT_EQ(default_socket_path(), folder.at("") + "/backstay/agent.sock");
  ::setenv("XDG_RUNTIME_DIR", folder.at("missing").c_str(), 1);
  const std::string fallback = "/tmp/backstay-" + std::to_string(::geteuid()) + "/agent.sock";
  EXPECT_EQ(default_socket_path(), fallback);
  ::unsetenv("XDG_RUNTIME_DIR");
  EXPECT_EQ(default_socket_path(), fallback);
}

TEST(DefaultPath, IsThatOfTheSlurmJobWhereItHasAgentsOfItsOwn) {
  ::unsetenv("SLURM_JOB_ID");
  const std::string ours = default_socket_path();
  EXPECT_EQ(slurm_socket_path(), "");
  ::setenv("SLURM_JOB_ID", "../../somewhere", 1);
  EXPECT_EQ(slurm_socket_path(), "");
  ::setenv("SLURM_JOB_ID", ("99" + std::to_string(::getpid())).c_str(), 1);
  const std::string jobs = slurm_socket_path();
  EXPECT_EQ(jobs, "/tmp/backstay-" + std::to_string(::geteuid()) + "-99" +
                      std::to_string(::getpid()) + "/agent.sock");
  EXPECT_EQ(default_socket_path(), ours);
  const std::string folder = jobs.substr(0, jobs.rfind('/'));
  EXPECT_EQ(::mkdir(folder.c_str(), 0700), 0);
  EXPECT_TRUE(listen_at(jobs).ok());
  EXPECT_EQ(default_socket_path(), jobs);
  std::filesystem::remove_all(folder);
  ::unsetenv("SLURM_JOB_ID");
  EXPECT_EQ(default_socket_path(), ours);
}

}  // namespace
}  // namespace backstay::wire
