// A started agent inherits nothing: the program under test is this test itself, which writes down
// what it finds.
#include "client/launch.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "world.h"

namespace backstay::client::test {
namespace {

using testing::HasSubstr;
using testing::Not;

// What the daemon looks like from inside.
void describe(std::ostream& out) {
  out << "parent=" << ::getppid() << "\ngroup=" << ::getpgid(0) << "\npid=" << ::getpid()
      << "\nsession=" << ::getsid(0) << "\ncwd=" << std::filesystem::current_path().string()
      << "\n";
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const auto target = std::filesystem::read_symlink(entry.path(), gone);
    out << "fd " << entry.path().filename().string() << " " << target.string() << "\n";
  }
  sigset_t blocked;
  ::sigprocmask(SIG_BLOCK, nullptr, &blocked);
  for (int number = 1; number < 32; ++number) {
    struct sigaction action {};
    if (::sigismember(&blocked, number) == 1) out << "blocked " << number << "\n";
    if (::sigaction(number, nullptr, &action) == 0 && action.sa_handler != SIG_DFL) {
      out << "handled " << number << "\n";
    }
  }
  cpu_set_t cpus;
  ::sched_getaffinity(0, sizeof cpus, &cpus);
  out << "cpus=" << CPU_COUNT(&cpus) << "\n";
  for (char** variable = environ; *variable != nullptr; ++variable) out << *variable << "\n";
}

// All that it says on its stderr: until it has ended.
std::string words_of(const LaunchedAgent& agent) {
  std::string words;
  for (;;) {
    pollfd said{agent.said.get(), POLLIN, 0};
    std::array<char, 256> text{};
    const bool ready = ::poll(&said, 1, 20'000) == 1;
    EXPECT_TRUE(ready) << "the started program has not ended";
    const ssize_t got = ready ? ::read(agent.said.get(), text.data(), text.size()) : 0;
    if (got <= 0) return words;
    words.append(text.data(), static_cast<std::size_t>(got));
  }
}

std::string text_of_file(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Launch, LeavesNothingOfTheProgramInTheAgent) {
  const World world;
  const std::string report = world.folder() + "/report";
  const int secret = ::open("/dev/zero", O_RDONLY);  // without CLOEXEC, as libraries do
  ASSERT_GE(secret, 0);
  sigset_t block;
  ::sigemptyset(&block);
  ::sigaddset(&block, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &block, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  ::setenv("OMPI_COMM_WORLD_RANK", "3", 1);
  ::setenv("PMI_RANK", "3", 1);
  ::setenv("BACKSTAY_TEST_STAYS", "1", 1);
  cpu_set_t all;
  cpu_set_t one;
  ::sched_getaffinity(0, sizeof all, &all);
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &one);
  }
  ::sched_setaffinity(0, sizeof one, &one);

  const auto agent = launch_agent("/proc/self/exe", {"--describe", report});
  ::sched_setaffinity(0, sizeof all, &all);
  ASSERT_TRUE(agent.ok()) << agent.error().to_string();
  const std::string words = words_of(*agent);
  const std::string text = text_of_file(report);
  ::close(secret);
  ::sigprocmask(SIG_UNBLOCK, &block, nullptr);
  ::signal(SIGPIPE, SIG_DFL);

  EXPECT_THAT(text, HasSubstr("pid=" + std::to_string(agent->pid) + "\n"));
  EXPECT_THAT(text, Not(HasSubstr("parent=" + std::to_string(::getpid()) + "\n")));
  EXPECT_THAT(text, Not(HasSubstr("group=" + std::to_string(::getpgid(0)) + "\n")));
  EXPECT_THAT(text, HasSubstr("session=" + std::to_string(::getsid(0)) + "\ncwd=/\n"));
  EXPECT_THAT(words, HasSubstr("a word on stderr"));
  for (const char* fd : {"fd 0 /dev/null\n", "fd 1 /dev/null\n", "fd 2 pipe:"}) {
    EXPECT_THAT(text, HasSubstr(fd));
  }
  EXPECT_THAT(text, Not(HasSubstr("/dev/zero")));
  EXPECT_THAT(text, Not(HasSubstr("blocked ")));
  EXPECT_THAT(text, Not(HasSubstr("handled " + std::to_string(SIGPIPE) + "\n")));
  EXPECT_THAT(text, HasSubstr("cpus=" + std::to_string(CPU_COUNT(&all)) + "\n"));
  EXPECT_THAT(text, Not(HasSubstr("OMPI_COMM_WORLD_RANK")));
  EXPECT_THAT(text, Not(HasSubstr("PMI_RANK")));
  EXPECT_THAT(text, HasSubstr("BACKSTAY_TEST_STAYS=1"));
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "the program has no child";
  EXPECT_EQ(errno, ECHILD);
}

TEST(Launch, SaysWhyAProgramCannotBeExecuted) {
  const World world;
  const std::string path = world.folder() + "/not-a-program";
  std::ofstream(path) << "neither binary nor script";
  ASSERT_EQ(::chmod(path.c_str(), 0700), 0);
  const auto agent = launch_agent(path, {});
  ASSERT_FALSE(agent.ok());
  EXPECT_EQ(agent.error().code(), Code::agent_lost);
  EXPECT_EQ(agent.error().sys_errno(), ENOEXEC);
  EXPECT_THAT(agent.error().message(), HasSubstr(path));
}

TEST(Launch, FindsTheConfiguredProgramOrSaysThatItIsNone) {
  const World world;
  EXPECT_EQ(*find_agent_program("/bin/sh"), "/bin/sh");
  EXPECT_THAT(find_agent_program(world.folder()).error().message(), HasSubstr(world.folder()));
  EXPECT_THAT(find_agent_program("/none").error().message(), HasSubstr("agent.program"));
}

TEST(Launch, FindsTheProgramInThePath) {
  const World world;
  const std::string path = world.folder() + "/backstayd";
  std::ofstream(path) << "#!/bin/sh\n";
  ASSERT_EQ(::chmod(path.c_str(), 0700), 0);
  const std::string before = std::getenv("PATH");
  ::setenv("PATH", ("/nonexistent::" + world.folder() + ":" + before).c_str(), 1);
  EXPECT_EQ(*find_agent_program(""), path);
  ::setenv("PATH", "/nonexistent", 1);
  EXPECT_EQ(find_agent_program("").error().code(), Code::agent_lost);
  ::setenv("PATH", before.c_str(), 1);
}

TEST(Launch, KnowsTheVariablesOfLaunchers) {
  for (const char* name : {"OMPI_MCA_x=1", "PMIX_RANK=0", "PMI_FD=7", "MPI_LOCALRANKID=0",
                           "I_MPI_x=1", "HYDI_CONTROL_FD=5", "LD_PRELOAD=x.so"}) {
    EXPECT_TRUE(is_launcher_variable(name)) << name;
  }
  for (const char* name : {"PATH=/bin", "BACKSTAY_JOB=x", "HOME=/", "SLURM_JOB_ID=1", "MPI=1"}) {
    EXPECT_FALSE(is_launcher_variable(name)) << name;
  }
}

}  // namespace
}  // namespace backstay::client::test

int main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == "--describe") {
    std::ofstream out(std::string(argv[2]) + ".part");
    backstay::client::test::describe(out);
    out.close();
    std::cerr << "a word on stderr\n";
    return std::rename((std::string(argv[2]) + ".part").c_str(), argv[2]);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
