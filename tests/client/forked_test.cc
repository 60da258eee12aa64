// The C interface in children that a program forks: the session and its signals stay the parent's.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "backstay/backstay.h"
#include "fake_agent.h"
#include "world.h"

namespace backstay::client::test {
namespace {

std::string why_not() { return backstay_error_message(); }

class Forked : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(backstay_init(world_.config().c_str()), BACKSTAY_OK); }
  void TearDown() override {
    EXPECT_EQ(backstay_finalize(), BACKSTAY_OK) << why_not();
    agent_.stop();
    EXPECT_EQ(agent_.problem(), "");
  }
  World world_;
  FakeAgent agent_{world_.socket(), {}};
};

std::set<std::string> sockets() {
  std::set<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const auto target = std::filesystem::read_symlink(entry.path(), gone).string();
    if (target.starts_with("socket:")) found.insert(target);
  }
  return found;
}

// Exit status of a child that returns from `body`; -signal where one ended it.
int child_status(const std::vector<FakeAgent*>& agents, const std::function<int()>& body) {
  const pid_t child = fork_beside(agents);
  if (child == 0) ::_exit(body());
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

TEST_F(Forked, AChildIsRefusedAndHoldsNoConnection) {
  const auto mine = sockets();
  const auto body = [&]() -> int {
    if (sockets().size() + 1 != mine.size()) return 1;
    if (backstay_unprotect("u") != BACKSTAY_ESTATE) return 2;
    if (why_not().find("another job.name") == std::string::npos) return 3;
    if (backstay_due() != 0 || backstay_finalize() != BACKSTAY_ESTATE) return 4;
    return 0;
  };
  EXPECT_EQ(child_status({&agent_}, body), 0);
  EXPECT_EQ(backstay_checkpoint(), BACKSTAY_OK) << why_not();
}

TEST_F(Forked, AChildMayStartASessionOfItsOwn) {
  const World other;
  FakeAgent agent(other.socket(), {});
  const auto body = [&]() -> int {
    if (backstay_init(other.config().c_str()) != BACKSTAY_OK) return 1;
    if (backstay_checkpoint() != BACKSTAY_OK) return 2;
    return backstay_finalize() == BACKSTAY_OK ? 0 : 3;
  };
  EXPECT_EQ(child_status({&agent_, &agent}, body), 0);
  EXPECT_EQ(backstay_checkpoint(), BACKSTAY_OK) << why_not();
}

// --- signals -------------------------------------------------------------------------------------

constexpr int signals_of_ours[] = {SIGTERM, SIGUSR1};

// A child that is sent `number`; it ends with 0 where it lives on.
int status_after(
    int number, const std::vector<FakeAgent*>& agents,
    const std::function<void()>& before = [] {}) {
  return child_status(agents, [&]() -> int {
    before();
    return ::raise(number);
  });
}

TEST_F(Forked, ASignalEndsAChildAsItDidBeforeInit) {
  for (const int number : signals_of_ours) EXPECT_EQ(status_after(number, {&agent_}), -number);
}

TEST_F(Forked, AHandlerThatTheProgramSetBehindInitStaysInAChild) {
  for (const int number : signals_of_ours) {
    struct sigaction ours {};
    struct sigaction users {};
    users.sa_handler = [](int) { ::_exit(42); };
    ASSERT_EQ(::sigaction(number, &users, &ours), 0);
    EXPECT_EQ(status_after(number, {&agent_}), 42);
    // As a library does that puts back what it found.
    const auto put_back = [&] { ::sigaction(number, &ours, nullptr); };
    EXPECT_EQ(status_after(number, {&agent_}, put_back), -number);
    ASSERT_EQ(::sigaction(number, &ours, nullptr), 0);
  }
}

TEST_F(Forked, ASessionOfTheChildTakesSignals) {
  const World other;
  FakeAgent agent(other.socket(), {});
  struct sigaction ours {};
  ASSERT_EQ(::sigaction(SIGTERM, nullptr, &ours), 0);
  const auto body = [&]() -> int {
    ::sigaction(SIGTERM, &ours, nullptr);
    if (backstay_init(other.config().c_str()) != BACKSTAY_OK) return 1;
    if (::raise(SIGTERM) != 0 || ::raise(SIGUSR1) != 0) return 2;
    if (backstay_finalize() != BACKSTAY_OK) return 3;
    return ::raise(SIGTERM);
  };
  EXPECT_EQ(child_status({&agent_, &agent}, body), -SIGTERM);
}

TEST(ForkedSignals, AHandlerFromBeforeInitIsTheChildsAgain) {
  struct sigaction users {};
  users.sa_handler = [](int) { ::_exit(42); };
  users.sa_flags = SA_NODEFER;
  for (const int number : signals_of_ours) {
    const World world;
    FakeAgent agent(world.socket(), {});
    struct sigaction before {};
    ASSERT_EQ(::sigaction(number, &users, &before), 0);
    ASSERT_EQ(backstay_init(world.config().c_str()), BACKSTAY_OK);
    const auto body = [&]() -> int {
      struct sigaction now {};
      if (::sigaction(number, nullptr, &now) != 0 || now.sa_handler != users.sa_handler) return 1;
      if ((now.sa_flags & (SA_NODEFER | SA_SIGINFO)) != SA_NODEFER) return 2;
      return ::raise(number);
    };
    EXPECT_EQ(child_status({&agent}, body), 42);
    EXPECT_EQ(backstay_finalize(), BACKSTAY_OK);
    ASSERT_EQ(::sigaction(number, &before, nullptr), 0);
  }
}

}  // namespace
}  // namespace backstay::client::test
