// The C interface: every function with bad input, out of order, and from two threads. Linked
// against libbackstay.so as a program is.
#include <gmock/gmock.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <functional>
#include <iterator>
#include <latch>
#include <thread>
#include <vector>

#include "backstay/backstay.h"
#include "fake_agent.h"
#include "world.h"

namespace backstay::client::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string message() { return backstay_error_message(); }

class Api : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(backstay_init(world_.config().c_str()), BACKSTAY_OK); }
  void TearDown() override {
    EXPECT_EQ(backstay_finalize(), BACKSTAY_OK) << message();
    agent_.stop();
    EXPECT_EQ(agent_.problem(), "");
  }
  World world_;
  FakeAgent agent_{world_.socket(), {}};
  double u_[8] = {1, 2, 3, 4, 5, 6, 7, 8};
};

struct Bad {
  const char* what;
  std::function<int()> call;
  int code;
  const char* word;  // of the message
};

void expect_refused(const std::vector<Bad>& table) {
  for (const Bad& bad : table) {
    EXPECT_EQ(bad.call(), bad.code) << bad.what << ": " << message();
    EXPECT_THAT(message(), HasSubstr(bad.word)) << bad.what;
  }
}

backstay_array array_of(int dims, uint64_t first = 2, uint64_t second = 2) {
  backstay_array array{};
  array.dims = dims;
  array.shape[0] = first;
  array.shape[1] = second;
  return array;
}

TEST_F(Api, ProtectRefusesWhatCannotBe) {
  const std::string longest(BACKSTAY_NAME_MAX, 'n');
  const std::string too_long(BACKSTAY_NAME_MAX + 1, 'n');
  const auto protect = [&](const char* name, void* data, uint64_t count, int type) {
    return [=] { return backstay_protect(name, data, count, static_cast<backstay_type>(type)); };
  };
  const auto protect_array = [&](const backstay_array& array, int type = BACKSTAY_DOUBLE) {
    return [=, this] {
      return backstay_protect_array("a", u_, &array, static_cast<backstay_type>(type));
    };
  };
  auto outside = array_of(1, 4);
  outside.global_shape[0] = 6;
  outside.global_offset[0] = 3;
  auto wraps = array_of(1, 4);
  wraps.global_shape[0] = 6;
  wraps.global_offset[0] = UINT64_MAX - 1;
  auto offset_alone = array_of(2);
  offset_alone.global_offset[1] = 2;
  auto half_global = array_of(2, 2, 2);
  half_global.global_shape[0] = 2;
  ASSERT_EQ(backstay_protect("taken", u_, 8, BACKSTAY_DOUBLE), BACKSTAY_OK);
  expect_refused({
      {"NULL name", protect(nullptr, u_, 8, BACKSTAY_DOUBLE), BACKSTAY_ENULL, "name is NULL"},
      {"empty name", protect("", u_, 8, BACKSTAY_DOUBLE), BACKSTAY_EINVALID, "empty"},
      {"long name", protect(too_long.c_str(), u_, 8, BACKSTAY_DOUBLE), BACKSTAY_ETOOLARGE, "200"},
      {"no UTF-8", protect("\xff\xfe", u_, 8, BACKSTAY_DOUBLE), BACKSTAY_EINVALID, "UTF-8"},
      {"NULL data", protect("a", nullptr, 8, BACKSTAY_DOUBLE), BACKSTAY_ENULL, "data is NULL"},
      {"type 0", protect("a", u_, 8, 0), BACKSTAY_EINVALID, "0 is no element type"},
      {"type 14", protect("a", u_, 8, 14), BACKSTAY_EINVALID, "14"},
      {"type -1", protect("a", u_, 8, -1), BACKSTAY_EINVALID, "-1"},
      {"huge", protect("a", u_, UINT64_MAX, BACKSTAY_DOUBLE), BACKSTAY_ETOOLARGE, "128 TiB"},
      {"product of 2^64", protect("a", u_, uint64_t{1} << 61, BACKSTAY_DOUBLE), BACKSTAY_ETOOLARGE,
       "128 TiB"},
      {"twice", protect("taken", u_, 8, BACKSTAY_DOUBLE), BACKSTAY_EDUPLICATE, "unprotect"},
      {"NULL array", [&] { return backstay_protect_array("a", u_, nullptr, BACKSTAY_DOUBLE); },
       BACKSTAY_ENULL, "array is NULL"},
      {"0 dims", protect_array(array_of(0)), BACKSTAY_EINVALID, "dims is 0"},
      {"9 dims", protect_array(array_of(9)), BACKSTAY_EINVALID, "dims is 9"},
      {"-1 dims", protect_array(array_of(-1)), BACKSTAY_EINVALID, "dims is -1"},
      {"overflow", protect_array(array_of(2, uint64_t{1} << 32, uint64_t{1} << 32)),
       BACKSTAY_ETOOLARGE, "128 TiB"},
      {"outside of the global array", protect_array(outside), BACKSTAY_EINVALID, "dimension 0"},
      {"offset that wraps around", protect_array(wraps), BACKSTAY_EINVALID, "outside"},
      {"offset without a shape", protect_array(offset_alone), BACKSTAY_EINVALID,
       "'a': it has a global_offset and no global_shape: give"},
      {"global shape of 0 in one dimension", protect_array(half_global), BACKSTAY_EINVALID,
       "dimension 1"},
      {"unprotect NULL", [] { return backstay_unprotect(nullptr); }, BACKSTAY_ENULL, "NULL"},
      {"unprotect unknown", [] { return backstay_unprotect("nobody"); }, BACKSTAY_ENOTFOUND,
       "nobody"},
  });
  // The limits themselves are fine, and nothing of the above was taken.
  EXPECT_EQ(backstay_protect(longest.c_str(), u_, 8, BACKSTAY_DOUBLE), BACKSTAY_OK);
  EXPECT_EQ(backstay_protect("nothing", nullptr, 0, BACKSTAY_DOUBLE), BACKSTAY_OK);
  EXPECT_EQ(backstay_unprotect("taken"), BACKSTAY_OK);
  EXPECT_EQ(backstay_unprotect("taken"), BACKSTAY_ENOTFOUND);
  EXPECT_EQ(backstay_checkpoint(), BACKSTAY_OK);
}

TEST_F(Api, TheOthersRefuseWhatCannotBe) {
  char path[4096];
  double out[8];
  backstay_level level = BACKSTAY_LOCAL;
  ASSERT_EQ(backstay_protect("u", u_, 8, BACKSTAY_DOUBLE), BACKSTAY_OK);
  ASSERT_EQ(backstay_checkpoint(), BACKSTAY_OK);
  const auto read = [&](uint64_t version, const char* name, void* data, size_t bytes) {
    return [=] { return backstay_read_region(version, name, data, bytes); };
  };
  const auto route = [&](const char* name, char* to, size_t bytes) {
    return [=] { return backstay_route_file(name, to, bytes); };
  };
  expect_refused({
      {"test NULL", [] { return backstay_test(1, nullptr); }, BACKSTAY_ENULL, "level is NULL"},
      {"test of no version", [&] { return backstay_test(0, &level); }, BACKSTAY_ENOTFOUND, ""},
      {"test of a future version", [&] { return backstay_test(UINT64_MAX, &level); },
       BACKSTAY_ENOTFOUND, ""},
      {"wait for level 0", [] { return backstay_wait(1, static_cast<backstay_level>(0), 0); },
       BACKSTAY_EINVALID, "level"},
      {"wait for level 5", [] { return backstay_wait(1, static_cast<backstay_level>(5), 0); },
       BACKSTAY_EINVALID, "level"},
      {"wait for protected", [] { return backstay_wait(1, BACKSTAY_PROTECTED, 0); },
       BACKSTAY_EUNSUPPORTED, "protected"},
      {"wait for a future version", [] { return backstay_wait(99, BACKSTAY_LOCAL, 1); },
       BACKSTAY_ENOTFOUND, ""},
      {"read version 0", read(0, "u", out, 64), BACKSTAY_ENOTFOUND, "counted from 1"},
      {"read NULL name", read(1, nullptr, out, 64), BACKSTAY_ENULL, "name"},
      {"read to NULL", read(1, "u", nullptr, 64), BACKSTAY_ENULL, "data"},
      {"read too little", read(1, "u", out, 63), BACKSTAY_EMISMATCH, "64 bytes"},
      {"read too much", read(1, "u", out, SIZE_MAX), BACKSTAY_EMISMATCH, "64 bytes"},
      {"read unknown", read(1, "v", out, 64), BACKSTAY_ENOTFOUND, "'v'"},
      {"route NULL", route(nullptr, path, sizeof path), BACKSTAY_ENULL, "name"},
      {"route to NULL", route("a", nullptr, sizeof path), BACKSTAY_ENULL, "path"},
      {"route with no room", route("a", path, 0), BACKSTAY_ETOOLARGE, "room for 0"},
      {"route with little room", route("a", path, 5), BACKSTAY_ETOOLARGE, "room for 5"},
      {"route upwards", route("..", path, sizeof path), BACKSTAY_EINVALID, ".."},
      {"init twice", [] { return backstay_init(nullptr); }, BACKSTAY_ESTATE, "finalize"},
      {"init with NULL group", [] { return backstay_init_group(nullptr, nullptr); }, BACKSTAY_ENULL,
       "group"},
  });
  EXPECT_EQ(backstay_wait(1, BACKSTAY_LOCAL, -1), BACKSTAY_OK);
  EXPECT_EQ(backstay_restart(nullptr), BACKSTAY_OK) << message();
}

TEST_F(Api, AFileThatDidNotFitIsNotPartOfACheckpoint) {
  char path[8];
  EXPECT_EQ(backstay_route_file("a", path, sizeof path), BACKSTAY_ETOOLARGE);
  EXPECT_EQ(backstay_checkpoint(), BACKSTAY_OK) << message();
}

TEST(ApiWithoutSession, EveryFunctionSaysSo) {
  double u = 0;
  char path[64];
  backstay_level level;
  const auto array = array_of(1, 1);
  const std::vector<std::function<int()>> calls = {
      [&] { return backstay_protect("u", &u, 1, BACKSTAY_DOUBLE); },
      [&] { return backstay_protect_array("u", &u, &array, BACKSTAY_DOUBLE); },
      [] { return backstay_unprotect("u"); },
      [] { return backstay_checkpoint(); },
      [&] { return backstay_test(1, &level); },
      [] { return backstay_wait(1, BACKSTAY_LOCAL, 0); },
      [] { return backstay_restart(nullptr); },
      [&] { return backstay_read_region(1, "u", &u, sizeof u); },
      [&] { return backstay_route_file("f", path, sizeof path); },
      [] { return backstay_finalize(); },
  };
  for (std::size_t i = 0; i < calls.size(); ++i) {
    EXPECT_EQ(calls[i](), BACKSTAY_ESTATE) << i;
    EXPECT_THAT(message(), HasSubstr("backstay_init")) << i;
  }
  EXPECT_EQ(backstay_due(), 0);
  EXPECT_EQ(backstay_stop_requested(), 0);
  EXPECT_EQ(backstay_version(), 0U);
}

TEST(ApiGroup, RefusesFieldsThatMakeNoSense) {
  backstay_group good{};
  good.ranks = good.local_ranks = good.nodes = 1;
  const auto with = [&](const std::function<void(backstay_group&)>& change) {
    return [=] {
      backstay_group group = good;
      change(group);
      return backstay_init_group(&group, nullptr);
    };
  };
  expect_refused({
      {"no ranks", with([](auto& g) { g.ranks = 0; }), BACKSTAY_EINVALID, "rank"},
      {"rank too large", with([](auto& g) { g.rank = 1; }), BACKSTAY_EINVALID, "rank"},
      {"negative rank", with([](auto& g) { g.rank = -1; }), BACKSTAY_EINVALID, "rank"},
      {"local rank", with([](auto& g) { g.local_rank = 1; }), BACKSTAY_EINVALID, "local_rank"},
      {"local ranks", with([](auto& g) { g.local_ranks = 2; }), BACKSTAY_EINVALID, "local_rank"},
      {"node", with([](auto& g) { g.node = 1; }), BACKSTAY_EINVALID, "node"},
      {"no functions", with([](auto& g) { g.ranks = g.local_ranks = 2; }), BACKSTAY_ENULL,
       "broadcast"},
      {"several nodes", with([](auto& g) { g.nodes = 2; }), BACKSTAY_EINVALID, "local_ranks"},
  });
}

TEST(ApiStart, SaysWhatIsWrongWithTheConfiguration) {
  const World world;
  const auto init_with = [&](const std::string& text) {
    std::ofstream(world.config()) << text;
    return backstay_init(world.config().c_str());
  };
  EXPECT_EQ(backstay_init("/nonexistent/backstay.toml"), BACKSTAY_ECONFIG);
  EXPECT_THAT(message(), HasSubstr("/nonexistent/backstay.toml"));
  EXPECT_EQ(init_with("[storage]\nkep = 3\n"), BACKSTAY_ECONFIG);
  EXPECT_THAT(message(), AllOf(HasSubstr("keep"), HasSubstr("2")));
  EXPECT_EQ(init_with("[job]\nname = \"a/b\"\n"), BACKSTAY_ECONFIG);
  EXPECT_THAT(message(), HasSubstr("a/b"));
  EXPECT_EQ(init_with("[agent]\nsocket = \"/tmp/" + std::string(120, 'x') + "/agent.sock\"\n"),
            BACKSTAY_ELONGPATH);
  EXPECT_THAT(message(), HasSubstr("agent.socket"));
}

TEST_F(Api, AllErrorsHaveASentence) {
  for (int code = -1; code <= 100; ++code) {
    const std::string text = backstay_strerror(code);
    EXPECT_FALSE(text.empty());
    EXPECT_THAT(text, Not(HasSubstr("EINVALID")));
  }
  EXPECT_STREQ(backstay_strerror(0), "success");
  EXPECT_STREQ(backstay_strerror(77), "not an error code of Backstay");
  EXPECT_STREQ(backstay_release(), BACKSTAY_VERSION);
}

TEST_F(Api, MessagesBelongToTheirThread) {
  EXPECT_EQ(backstay_unprotect("mine"), BACKSTAY_ENOTFOUND);
  std::thread([] {
    EXPECT_EQ(message(), "");
    EXPECT_EQ(backstay_unprotect("other"), BACKSTAY_ENOTFOUND);
    EXPECT_THAT(message(), HasSubstr("other"));
  }).join();
  EXPECT_THAT(message(), HasSubstr("mine"));
}

TEST(ApiThreads, ASecondCallAtTheSameTimeIsRefused) {
  const World world;
  std::latch inside(1);
  std::latch go_on(1);
  FakeAgent::Options options;
  options.hook = [&](const wire::Message& seen) {
    if (std::holds_alternative<wire::Begin>(seen)) {
      inside.count_down();
      go_on.wait();
    }
    return FakeAgent::Action::go_on;
  };
  FakeAgent agent(world.socket(), options);
  ASSERT_EQ(backstay_init(world.config().c_str()), BACKSTAY_OK);
  std::thread other([] { EXPECT_EQ(backstay_checkpoint(), BACKSTAY_OK); });
  inside.wait();
  EXPECT_EQ(backstay_unprotect("u"), BACKSTAY_ESTATE);
  EXPECT_THAT(message(), HasSubstr("another thread"));
  EXPECT_EQ(backstay_checkpoint(), BACKSTAY_ESTATE);
  go_on.count_down();
  other.join();
  EXPECT_EQ(backstay_unprotect("u"), BACKSTAY_ENOTFOUND);
  EXPECT_EQ(backstay_finalize(), BACKSTAY_OK);
}

// --- signals -------------------------------------------------------------------------------------

std::atomic<int> users_handler_called{0};

TEST(ApiSignals, CheckpointThenStopAndTheProgramsHandlersStay) {
  const World world("[checkpoint]\npolicy = \"request\"\n");
  FakeAgent agent(world.socket(), {});
  struct sigaction users {};
  users.sa_handler = [](int) { ++users_handler_called; };
  struct sigaction before {};
  ASSERT_EQ(::sigaction(SIGUSR1, &users, &before), 0);
  ASSERT_EQ(backstay_init(world.config().c_str()), BACKSTAY_OK);
  EXPECT_EQ(backstay_due(), 0);
  ASSERT_EQ(::raise(SIGUSR1), 0);
  EXPECT_EQ(users_handler_called, 1) << "chained";
  const auto calls_until_due = [] {
    for (int call = 1; call < 100'000'000; ++call) {
      if (backstay_due() == 1) return call;
    }
    return 0;
  };
  EXPECT_GT(calls_until_due(), 0);
  EXPECT_EQ(backstay_stop_requested(), 0);
  EXPECT_EQ(backstay_checkpoint(), BACKSTAY_OK);
  ASSERT_EQ(::raise(SIGTERM), 0) << "would end the test without the handler";
  EXPECT_GT(calls_until_due(), 0);
  EXPECT_EQ(backstay_stop_requested(), 1);
  EXPECT_EQ(backstay_finalize(), BACKSTAY_OK);
  struct sigaction now {};
  ASSERT_EQ(::sigaction(SIGUSR1, &before, &now), 0);
  EXPECT_EQ(now.sa_handler, users.sa_handler) << "the program's handler is back";
  ASSERT_EQ(::sigaction(SIGTERM, nullptr, &now), 0);
  EXPECT_EQ(now.sa_handler, SIG_DFL);
}

// A child that waits for an agent that never answers `what`, and gets `signals` SIGTERM.
int ended_while_waiting(const char* what, int signals, const std::function<int()>& call) {
  const World world;
  int ready[2];
  EXPECT_EQ(::pipe(ready), 0);
  FakeAgent::Options options;
  options.hook = [&, name = std::string(what)](const wire::Message& message) {
    if (name != name_of(message)) return FakeAgent::Action::go_on;
    EXPECT_EQ(::write(ready[1], "x", 1), 1);
    return FakeAgent::Action::ignore;
  };
  FakeAgent agent(world.socket(), options);
  double u[8] = {};
  const pid_t child = fork_beside({&agent});
  if (child == 0) {
    if (backstay_init(world.config().c_str()) != BACKSTAY_OK) ::_exit(1);
    if (backstay_protect("u", u, 8, BACKSTAY_DOUBLE) != BACKSTAY_OK) ::_exit(2);
    (void)call();
    ::_exit(3);
  }
  char byte = 0;
  EXPECT_EQ(::read(ready[0], &byte, 1), 1);
  int status = 0;
  for (int sent = 0; sent < signals; ++sent) {
    EXPECT_EQ(::waitpid(child, &status, WNOHANG), 0) << "ended by signal " << sent;
    EXPECT_EQ(::kill(child, SIGTERM), 0);
    // Taken, not merely pending: two that are pending at once are one.
    const auto pending = [&] {
      std::ifstream file("/proc/" + std::to_string(child) + "/status");
      const std::string text{std::istreambuf_iterator<char>(file), {}};
      return text.find("ShdPnd:\t0000000000000000") == std::string::npos && !text.empty();
    };
    while (pending()) ::sched_yield();
  }
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  ::close(ready[0]);
  ::close(ready[1]);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

TEST(ApiSignals, SigtermEndsACallThatWaitsForAnAgentThatHangs) {
  EXPECT_EQ(ended_while_waiting("restart", 1, [] { return backstay_restart(nullptr); }), SIGTERM);
  EXPECT_EQ(ended_while_waiting("begin", 2, [] { return backstay_checkpoint(); }), SIGTERM);
}

TEST(ApiSignals, AnIgnoredSignalStaysIgnored) {
  const World world;
  FakeAgent agent(world.socket(), {});
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  struct sigaction before {};
  ASSERT_EQ(::sigaction(SIGUSR1, &ignore, &before), 0);
  ASSERT_EQ(backstay_init(world.config().c_str()), BACKSTAY_OK);
  struct sigaction now {};
  ASSERT_EQ(::sigaction(SIGUSR1, nullptr, &now), 0);
  EXPECT_EQ(now.sa_handler, SIG_IGN);
  EXPECT_EQ(backstay_finalize(), BACKSTAY_OK);
  ASSERT_EQ(::sigaction(SIGUSR1, &before, nullptr), 0);
}

// --- strict --------------------------------------------------------------------------------------

TEST(ApiStrictDeathTest, AFailedCheckpointEndsTheProgramOnlyIfConfigured) {
  const World strict("[checkpoint]\nstrict = true\n");  // the process that ends leaves them to us
  const World lenient;
  const auto fail_a_checkpoint = [](const World& world) {
    FakeAgent agent(world.socket(), {});
    char path[4096];
    if (backstay_init(world.config().c_str()) != 0) std::exit(2);
    if (backstay_route_file("missing", path, sizeof path) != 0) std::exit(3);
    std::exit(backstay_checkpoint() == BACKSTAY_EINVALID ? 4 : 5);
  };
  EXPECT_EXIT(fail_a_checkpoint(strict), testing::KilledBySignal(SIGABRT),
              "backstay: .*missing.*an argument is wrong");
  EXPECT_EXIT(fail_a_checkpoint(lenient), testing::ExitedWithCode(4), "");
}

}  // namespace
}  // namespace backstay::client::test
