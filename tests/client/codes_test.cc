// Every code that a comment of backstay.h lists for a function is provoked here, and no function
// may return another one. The lists are read from the header: one that is listed and not provoked
// fails, and one that is provoked and not listed.
#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>

#include "backstay/backstay.h"
#include "client/listed_codes.h"
#include "fake_agent.h"
#include "listed_in_header.h"
#include "world.h"

namespace {
int mkdir_fails_with = 0;
int fallocate_fails_with = 0;
}  // namespace

// Ours come before those of the C library.
extern "C" int mkdir(const char* path, mode_t mode) noexcept {
  if (mkdir_fails_with == 0) return ::mkdirat(AT_FDCWD, path, mode);
  errno = mkdir_fails_with;
  return -1;
}
extern "C" int posix_fallocate(int fd, off_t, off_t bytes) {
  return fallocate_fails_with != 0 ? fallocate_fails_with : ::ftruncate(fd, bytes);
}

namespace backstay::client::test {
namespace {

// --- a program and its agent ---------------------------------------------------------------------

// A session with one region and version 1, and an agent that does as it is asked.
class Program {
 public:
  explicit Program(const std::string& more = "") : world_(more), agent_(world_.socket(), {}) {
    EXPECT_EQ(backstay_init(world_.config().c_str()), BACKSTAY_OK) << backstay_error_message();
    EXPECT_EQ(backstay_protect("u", u_, 8, BACKSTAY_DOUBLE), BACKSTAY_OK);
    EXPECT_EQ(backstay_route_file("f", path_, sizeof path_), BACKSTAY_OK);
    std::ofstream(path_) << "a routed file";
    EXPECT_EQ(backstay_checkpoint(), BACKSTAY_OK) << backstay_error_message();
  }
  ~Program() {
    (void)backstay_finalize();
    agent_.stop();
  }
  World world_;
  FakeAgent agent_;
  double u_[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  char path_[4096] = "";
};

const char* const durable =
    "[durable]\ndir = \"/nonexistent/durable\"\n[checkpoint]\nwait_at_end = true\n";

using Init = std::function<int(const std::string& config)>;

int init_alone(const std::string& config) { return backstay_init(config.c_str()); }
backstay_group group_of_one() { return {nullptr, 0, 1, 0, 1, 0, 1, nullptr, nullptr, nullptr}; }
int init_group(const std::string& config) {
  const backstay_group group = group_of_one();
  return backstay_init_group(&group, config.c_str());
}

int refused_by_the_agent(const Init& init, int code) {
  World world;
  FakeAgent::Options options;
  options.refuse_hello = static_cast<Code>(code);
  FakeAgent agent(world.socket(), options);
  const int got = init(world.config());
  agent.stop();
  return got;
}

int without_agent(const Init& init) { return init(World().config()); }

int with_a_long_socket(const Init& init) {
  World world;
  std::ofstream(world.config()) << "[agent]\nsocket = \"/" << std::string(200, 's') << "\"\n";
  return init(world.config());
}

int twice(const Init& init) {
  Program running;
  return init(running.world_.config());
}

// --- the rows ------------------------------------------------------------------------------------

struct Row {
  std::string function;
  int code;
  std::function<int()> provoke;
};
using Rows = std::vector<Row>;

template <typename Call>
std::function<int()> in_a_program(Call call, const std::string& more = "") {
  return [=] {
    Program program(more);
    return call(program);
  };
}

// The agent answers `call` with each of the codes: what it meets on its disk, or on other nodes.
template <typename Call>
void add_answers(Rows& rows, const std::string& function, const std::vector<int>& codes,
                 Call call) {
  for (const int code : codes) {
    rows.push_back({function, code, in_a_program([=](Program& program) {
                      program.agent_.end_with = static_cast<Code>(code);
                      return call(program);
                    })});
  }
}

template <typename Call>
void add_reasons(Rows& rows, const std::string& function, const std::vector<int>& codes,
                 Call call) {
  for (const int code : codes) {
    rows.push_back({function, code,
                    in_a_program(
                        [=](Program& program) {
                          program.agent_.failed[1] = static_cast<Code>(code);
                          program.agent_.levels[1] = Level::captured;
                          program.agent_.fail_waits = true;
                          return call(program);
                        },
                        durable)});
  }
}

template <typename Call>
void add_without_agent(Rows& rows, const std::string& function, Call call) {
  rows.push_back({function, BACKSTAY_EAGENT,
                  in_a_program(
                      [=](Program& program) {
                        program.agent_.stop();
                        return call(program);
                      },
                      durable)});
}

// The ranks write by themselves, and have no MPI.
class WithoutAgent {
 public:
  explicit WithoutAgent(const std::string& strategy) {
    std::ofstream(world_.config(), std::ios::app)
        << "[durable]\ndir = \"" << shared_.folder() << "\"\n[strategy]\nname = \"" << strategy
        << "\"\n";
  }
  std::string config() const { return world_.config(); }

 private:
  World world_;
  World shared_;
};

void add_init(Rows& rows, const std::string& function, const Init& init) {
  rows.push_back({function, BACKSTAY_EUNSUPPORTED,
                  [=] { return init(WithoutAgent("writers").config().c_str()); }});
  rows.push_back({function, BACKSTAY_ESTATE, [=] { return twice(init); }});
  rows.push_back({function, BACKSTAY_ECONFIG, [=] { return init("/nonexistent/backstay.toml"); }});
  rows.push_back({function, BACKSTAY_EAGENT, [=] { return without_agent(init); }});
  rows.push_back({function, BACKSTAY_ELONGPATH, [=] { return with_a_long_socket(init); }});
  for (const int code : {BACKSTAY_EPROTOCOL, BACKSTAY_EBUSY, BACKSTAY_EPERMISSION,
                         BACKSTAY_ENOSPACE, BACKSTAY_EINVALID, BACKSTAY_ETOOLARGE}) {
    rows.push_back({function, code, [=] { return refused_by_the_agent(init, code); }});
  }
}

void add_init_group(Rows& rows) {
  const std::string name = "backstay_init_group";
  add_init(rows, name, init_group);
  rows.push_back({name, BACKSTAY_ENULL, [] { return backstay_init_group(nullptr, nullptr); }});
  rows.push_back({name, BACKSTAY_EINVALID, [] {
                    backstay_group group = group_of_one();
                    group.rank = -1;
                    return backstay_init_group(&group, nullptr);
                  }});
  for (const int code : {BACKSTAY_EPORT, BACKSTAY_EUNREACHABLE, BACKSTAY_EFEWNODES})
    rows.push_back({name, code, [=] { return refused_by_the_agent(init_group, code); }});
}

int protect(const char* name, void* data, std::uint64_t count) {
  return backstay_protect(name, data, count, BACKSTAY_DOUBLE);
}
int protect_array(const char* name, void* data, std::uint64_t count) {
  backstay_array array{};
  array.dims = 1;
  array.shape[0] = count;
  return backstay_protect_array(name, data, &array, BACKSTAY_DOUBLE);
}

void add_regions(Rows& rows) {
  using Protect = int (*)(const char*, void*, std::uint64_t);
  const std::map<std::string, Protect> both{{"backstay_protect", protect},
                                            {"backstay_protect_array", protect_array}};
  for (const auto& [name, call] : both) {
    const Protect add = call;
    rows.push_back({name, BACKSTAY_ESTATE, [=] { return add("a", nullptr, 0); }});
    rows.push_back(
        {name, BACKSTAY_ENULL, in_a_program([=](Program&) { return add("a", nullptr, 8); })});
    rows.push_back(
        {name, BACKSTAY_EINVALID, in_a_program([=](Program& p) { return add("", p.u_, 8); })});
    rows.push_back(
        {name, BACKSTAY_EDUPLICATE, in_a_program([=](Program& p) { return add("u", p.u_, 8); })});
    rows.push_back({name, BACKSTAY_ETOOLARGE,
                    in_a_program([=](Program& p) { return add("a", p.u_, UINT64_MAX); })});
  }
  const std::string name = "backstay_unprotect";
  rows.push_back({name, BACKSTAY_ESTATE, [] { return backstay_unprotect("u"); }});
  rows.push_back(
      {name, BACKSTAY_ENULL, in_a_program([](Program&) { return backstay_unprotect(nullptr); })});
  rows.push_back(
      {name, BACKSTAY_ENOTFOUND, in_a_program([](Program&) { return backstay_unprotect("v"); })});
}

void add_checkpoint(Rows& rows) {
  const std::string name = "backstay_checkpoint";
  const auto call = [](Program&) { return backstay_checkpoint(); };
  rows.push_back({name, BACKSTAY_ESTATE, [] { return backstay_checkpoint(); }});
  rows.push_back({name, BACKSTAY_EINVALID, in_a_program([](Program& program) {
                    std::filesystem::remove(program.path_);
                    return backstay_checkpoint();
                  })});
  add_without_agent(rows, name, call);
  add_answers(rows, name,
              {BACKSTAY_ERANKLOST, BACKSTAY_ENOSPACE, BACKSTAY_EIO, BACKSTAY_EPERMISSION,
               BACKSTAY_ETOOLARGE, BACKSTAY_EBUSY, BACKSTAY_EPROTOCOL, BACKSTAY_ECONFIG,
               BACKSTAY_EPORT, BACKSTAY_EUNREACHABLE, BACKSTAY_EUNSUPPORTED},
              call);
}

const std::vector<int> reasons_for_local{BACKSTAY_EPROTOCOL,   BACKSTAY_ENOSPACE, BACKSTAY_EIO,
                                         BACKSTAY_EPERMISSION, BACKSTAY_EBUSY,    BACKSTAY_ECORRUPT,
                                         BACKSTAY_EAGAIN};

int test(std::uint64_t version) {
  backstay_level level = BACKSTAY_LOCAL;
  return backstay_test(version, &level);
}

void add_levels(Rows& rows) {
  std::vector<int> reasons = reasons_for_local;  // and those of other nodes
  reasons.insert(reasons.end(), {BACKSTAY_ECONFIG, BACKSTAY_EFORMAT, BACKSTAY_EUNREACHABLE});
  std::string name = "backstay_test";
  rows.push_back({name, BACKSTAY_ESTATE, [] { return test(1); }});
  rows.push_back(
      {name, BACKSTAY_ENULL, in_a_program([](Program&) { return backstay_test(1, nullptr); })});
  rows.push_back({name, BACKSTAY_ENOTFOUND, in_a_program([](Program&) { return test(99); })});
  add_without_agent(rows, name, [](Program&) { return test(1); });
  add_reasons(rows, name, reasons, [](Program&) { return test(1); });

  name = "backstay_wait";
  const auto wait = [](std::uint64_t version, backstay_level level) {
    return backstay_wait(version, level, 0.01);
  };
  rows.push_back({name, BACKSTAY_ESTATE, [=] { return wait(1, BACKSTAY_LOCAL); }});
  rows.push_back({name, BACKSTAY_EINVALID,
                  in_a_program([=](Program&) { return wait(1, static_cast<backstay_level>(9)); })});
  rows.push_back({name, BACKSTAY_ENOTFOUND,
                  in_a_program([](Program&) { return backstay_wait(99, BACKSTAY_LOCAL, -1); })});
  rows.push_back({name, BACKSTAY_EUNSUPPORTED,
                  in_a_program([=](Program&) { return wait(1, BACKSTAY_PROTECTED); })});
  rows.push_back({name, BACKSTAY_ETIMEOUT, in_a_program([=](Program& program) {
                    program.agent_.levels[1] = Level::captured;
                    return wait(1, BACKSTAY_LOCAL);
                  })});
  const auto for_ever = [](Program&) { return backstay_wait(1, BACKSTAY_LOCAL, -1); };
  add_without_agent(rows, name, for_ever);
  add_reasons(rows, name, reasons, for_ever);

  name = "backstay_finalize";
  const auto end = [](Program&) { return backstay_finalize(); };
  rows.push_back({name, BACKSTAY_ESTATE, [] { return backstay_finalize(); }});
  rows.push_back({name, BACKSTAY_ENOTFOUND,
                  in_a_program(
                      [](Program& program) {
                        program.agent_.objects.erase(1);
                        return backstay_finalize();
                      },
                      durable)});
  add_without_agent(rows, name, end);
  add_reasons(rows, name, reasons_for_local, end);
  rows.push_back({"backstay_abandon", BACKSTAY_ESTATE, [] { return backstay_abandon(); }});
}

void add_restart(Rows& rows) {
  const std::string name = "backstay_restart";
  const auto call = [](Program&) { return backstay_restart(nullptr); };
  rows.push_back({name, BACKSTAY_ESTATE, [] { return backstay_restart(nullptr); }});
  rows.push_back({name, BACKSTAY_ENONE, in_a_program([](Program& program) {
                    program.agent_.objects.clear();
                    return backstay_restart(nullptr);
                  })});
  rows.push_back({name, BACKSTAY_EMISMATCH, in_a_program([](Program& program) {
                    EXPECT_EQ(protect("v", program.u_, 8), BACKSTAY_OK);
                    return backstay_restart(nullptr);
                  })});
  rows.push_back({name, BACKSTAY_EINVALID, in_a_program([](Program& program) {
                    std::filesystem::remove(program.path_);
                    std::filesystem::create_directory(program.path_);
                    return backstay_restart(nullptr);
                  })});
  rows.push_back({name, BACKSTAY_ENOSPACE, in_a_program([](Program&) {
                    fallocate_fails_with = ENOSPC;
                    const int code = backstay_restart(nullptr);
                    fallocate_fails_with = 0;
                    return code;
                  })});
  // What only lost nodes had: an agent calls it not found.
  rows.push_back({name, BACKSTAY_ELOST, in_a_program([](Program& program) {
                    program.agent_.end_with = Code::not_found;
                    return backstay_restart(nullptr);
                  })});
  add_without_agent(rows, name, call);
  add_answers(
      rows, name,
      {BACKSTAY_ERANKS, BACKSTAY_EPERMISSION, BACKSTAY_ECORRUPT, BACKSTAY_ELOST, BACKSTAY_ERANKLOST,
       BACKSTAY_EFORMAT, BACKSTAY_EUNSUPPORTED, BACKSTAY_EBUSY, BACKSTAY_EPROTOCOL,
       BACKSTAY_ECONFIG, BACKSTAY_ETOOLARGE, BACKSTAY_EPORT, BACKSTAY_EUNREACHABLE, BACKSTAY_EIO},
      call);
}

void add_read_region(Rows& rows) {
  const std::string name = "backstay_read_region";
  const auto read = [](std::uint64_t version, const char* region, std::size_t bytes) {
    double out[8];
    return backstay_read_region(version, region, out, bytes);
  };
  rows.push_back({name, BACKSTAY_ESTATE, [=] { return read(1, "u", 64); }});
  rows.push_back(
      {name, BACKSTAY_ENULL, in_a_program([=](Program&) { return read(1, nullptr, 64); })});
  rows.push_back(
      {name, BACKSTAY_ENOTFOUND, in_a_program([=](Program&) { return read(1, "v", 64); })});
  rows.push_back(
      {name, BACKSTAY_ENOTFOUND, in_a_program([=](Program&) { return read(99, "u", 64); })});
  rows.push_back(
      {name, BACKSTAY_EMISMATCH, in_a_program([=](Program&) { return read(1, "u", 63); })});
  const auto call = [=](Program&) { return read(1, "u", 64); };
  add_without_agent(rows, name, call);
  add_answers(rows, name,
              {BACKSTAY_ETOOLARGE, BACKSTAY_ECORRUPT, BACKSTAY_ELOST, BACKSTAY_EFORMAT,
               BACKSTAY_EIO, BACKSTAY_EPERMISSION, BACKSTAY_EUNSUPPORTED, BACKSTAY_EPROTOCOL},
              call);
}

void add_route_file(Rows& rows) {
  const std::string name = "backstay_route_file";
  const auto route = [](const char* file, std::size_t bytes) {
    char path[4096];
    return backstay_route_file(file, path, bytes);
  };
  rows.push_back({name, BACKSTAY_ESTATE, [=] { return route("a", 4096); }});
  rows.push_back(
      {name, BACKSTAY_EINVALID, in_a_program([=](Program&) { return route("..", 4096); })});
  rows.push_back(
      {name, BACKSTAY_ENULL, in_a_program([=](Program&) { return route(nullptr, 4096); })});
  rows.push_back({name, BACKSTAY_ETOOLARGE, in_a_program([=](Program&) { return route("a", 5); })});
  rows.push_back({name, BACKSTAY_EUNSUPPORTED, [=] {
                    const WithoutAgent job("file_per_process");
                    if (backstay_init(job.config().c_str()) != BACKSTAY_OK) return -1;
                    const int code = route("a", 4096);
                    (void)backstay_finalize();
                    return code;
                  }});
  const std::map<int, int> failures{{BACKSTAY_ECONFIG, ENOTDIR},
                                    {BACKSTAY_EPERMISSION, EACCES},
                                    {BACKSTAY_ENOSPACE, ENOSPC},
                                    {BACKSTAY_EIO, EIO}};
  for (const auto& [code, why] : failures) {
    const int sys_errno = why;
    rows.push_back({name, code, in_a_program([=](Program& program) {
                      std::filesystem::remove_all(program.world_.files());
                      mkdir_fails_with = sys_errno;
                      const int got = route("a", 4096);
                      mkdir_fails_with = 0;
                      return got;
                    })});
  }
}

Rows all_rows() {
  Rows rows;
  add_init(rows, "backstay_init", init_alone);
  add_init_group(rows);
  add_regions(rows);
  add_checkpoint(rows);
  add_levels(rows);
  add_restart(rows);
  add_read_region(rows);
  add_route_file(rows);
  return rows;
}

// --- the tests -----------------------------------------------------------------------------------

TEST(Codes, EachThatTheHeaderListsIsProvokedAndNoOtherIs) {
  Listed provoked;
  for (const Row& row : all_rows()) provoked[row.function].insert(row.code);
  EXPECT_EQ(provoked, listed_in_the_header());
}

TEST(Codes, ComeFromWhatProvokesThem) {
  for (const Row& row : all_rows()) {
    EXPECT_EQ(row.provoke(), row.code)
        << row.function << " should say: " << backstay_strerror(row.code)
        << "; it says: " << backstay_error_message();
  }
}

// Another code, from an agent of another release, is reported as a defect, with the agent's words.
TEST(Codes, ThatAreNotListedAreNotReturned) {
  const std::map<std::string, Call> calls{{"backstay_init", Call::init},
                                          {"backstay_init_group", Call::init_group},
                                          {"backstay_protect", Call::protect},
                                          {"backstay_protect_array", Call::protect_array},
                                          {"backstay_unprotect", Call::unprotect},
                                          {"backstay_checkpoint", Call::checkpoint},
                                          {"backstay_test", Call::test},
                                          {"backstay_wait", Call::wait},
                                          {"backstay_restart", Call::restart},
                                          {"backstay_read_region", Call::read_region},
                                          {"backstay_route_file", Call::route_file},
                                          {"backstay_finalize", Call::finalize},
                                          {"backstay_abandon", Call::abandon}};
  const Listed listed = listed_in_the_header();
  ASSERT_EQ(listed.size(), calls.size());
  for (const auto& [function, codes] : listed) {
    for (int code = 1; code < BACKSTAY_EINTERNAL; ++code) {
      EXPECT_EQ(may_return(calls.at(function), static_cast<Code>(code)), codes.count(code) != 0)
          << function << " and " << code;
    }
  }
  Program program;
  program.agent_.end_with = Code::few_nodes;
  EXPECT_EQ(backstay_checkpoint(), BACKSTAY_EINTERNAL);
  EXPECT_NE(std::string(backstay_error_message()).find("few_nodes"), std::string::npos);
}

}  // namespace
}  // namespace backstay::client::test
