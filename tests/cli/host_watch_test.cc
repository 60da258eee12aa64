// With shells of this machine in place of ssh.
#include "bin/run/host_watch.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <set>

namespace backstay::bin {
namespace {

constexpr const char* answers = "while read n; do echo backstay-host \"$0\" $n; done";

std::vector<std::string> shell(const std::string& host, const std::string& script = answers) {
  return {"sh", "-c", script, host};
}

std::set<std::string> names(const std::vector<HostWatch::Gone>& gone) {
  std::set<std::string> all;
  for (const auto& one : gone) all.insert(one.host);
  return all;
}

TEST(HostWatch, HostsThatAnswerAreThere) {
  HostWatch watch([](const auto& hosts) { return shell(hosts.front()); }, 5);
  watch.add({"a", "b"}, false, 5);
  watch.settle();
  EXPECT_TRUE(watch.news().empty());
  EXPECT_EQ(watch.processes().size(), 2u);
  watch.close(5);
  EXPECT_TRUE(watch.fds().empty());
}

TEST(HostWatch, OneThatFailsIsGoneWithItsLastWords) {
  HostWatch watch(
      [](const auto& hosts) {
        return hosts.front() == "a" ? shell("a") : shell("b", "echo no route to b >&2; exit 255");
      },
      5);
  watch.add({"a", "b"}, false, 5);
  watch.settle();
  const auto gone = watch.news();
  ASSERT_EQ(gone.size(), 1u);
  EXPECT_EQ(gone[0].host, "b");
  EXPECT_EQ(gone[0].why, "the connection ended: no route to b");
  EXPECT_TRUE(watch.news().empty());
}

TEST(HostWatch, SilenceIsGivenUp) {
  HostWatch watch([](const auto&) { return std::vector<std::string>{"sleep", "1000"}; }, 0.2);
  watch.add({"a"}, false, 0.2);
  watch.settle();
  EXPECT_EQ(watch.news().at(0).why.substr(0, 16), "no answer within");
}

TEST(HostWatch, ACommandThatDoesNotExist) {
  HostWatch watch([](const auto&) { return std::vector<std::string>{"/nowhere/ssh"}; }, 5);
  watch.add({"a"}, false, 5);
  watch.settle();
  EXPECT_NE(watch.news().at(0).why.find("/nowhere/ssh"), std::string::npos);
}

TEST(HostWatch, ABrokenLineToALivingHostIsMadeAgain) {
  int connections = 0;
  HostWatch watch(
      [&](const auto& hosts) {
        ++connections;
        return shell(hosts.front());
      },
      5);
  watch.add({"a"}, false, 5);
  watch.settle();
  ASSERT_EQ(::kill(watch.processes().at(0), SIGKILL), 0);
  for (int i = 0; connections < 2 && i < 100; ++i) {
    auto waiting = watch.fds();
    ::poll(waiting.data(), waiting.size(), 100);
    watch.step();
  }
  watch.settle();
  EXPECT_TRUE(watch.news().empty());
  EXPECT_EQ(connections, 2);
}

TEST(HostWatch, AStoppedLineIsSilentAndMadeAgain) {
  int connections = 0;
  HostWatch watch(
      [&](const auto& hosts) {
        ++connections;
        return shell(hosts.front());
      },
      0.3);
  watch.add({"a"}, false, 5);
  watch.settle();
  ASSERT_EQ(::kill(watch.processes().at(0), SIGSTOP), 0);
  watch.settle();
  EXPECT_TRUE(watch.news().empty());
  EXPECT_EQ(connections, 2);
}

TEST(HostWatch, OneLineForSeveralHosts) {
  int connections = 0;
  HostWatch watch(
      [&](const auto& hosts) {
        ++connections;
        if (hosts.size() == 1) return shell(hosts.front(), "exit 1");
        return shell("",
                     "while read n; do echo backstay-host a $n; [ $n -gt 1 ] || echo backstay-host "
                     "b $n; done");
      },
      0.3);
  watch.add({"a", "b"}, true, 5);
  watch.settle();
  EXPECT_TRUE(watch.news().empty());
  watch.settle();  // b is silent from now on
  EXPECT_EQ(names(watch.news()), std::set<std::string>{"b"});
  EXPECT_EQ(connections, 2);
}

TEST(HostWatch, ALineThatStaysBecauseOfALostHostIsNotWaitedFor) {
  HostWatch watch(
      [](const auto& hosts) {
        if (hosts.size() == 1) return shell(hosts.front(), "exit 1");
        return shell("",
                     "while read n; do echo backstay-host a $n; done; echo backstay-host a 0; exec "
                     "sleep 1000");
      },
      0.3);
  watch.add({"a", "b"}, true, 0.3);
  watch.settle();
  EXPECT_EQ(names(watch.news()), std::set<std::string>{"b"});
  watch.close(1000);
}

TEST(HostWatch, ManyHostsAreAskedAFewAtATime) {
  std::vector<std::string> hosts;
  for (int i = 0; i < 70; ++i) hosts.push_back("h" + std::to_string(i));
  HostWatch watch(
      [](const auto& some) {
        return shell(some.front(), some.front() == "h69" ? "exit 1" : answers);
      },
      20);
  watch.add(hosts, false, 20);
  EXPECT_LE(watch.processes().size(), 32u);
  watch.settle();
  EXPECT_EQ(names(watch.news()), std::set<std::string>{"h69"});
}

}  // namespace
}  // namespace backstay::bin
