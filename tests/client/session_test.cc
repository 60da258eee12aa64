// A session against an agent that is strict and misbehaves on demand: bytes in, the same bytes out.
#include "client/session.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>
#include <iterator>
#include <mutex>

#include "session_fixture.h"
#include "thread_group.h"

namespace backstay::client::test {
namespace {

using testing::HasSubstr;

// --- bytes ---------------------------------------------------------------------------------------

struct Shape {
  std::vector<std::size_t> sizes;
  bool never_hold;
  std::uint32_t buffers;
};

class RoundTrip : public testing::TestWithParam<Shape> {};

TEST_P(RoundTrip, BringsEveryByteBack) {
  const Shape& shape = GetParam();
  const World world;
  FakeAgent::Options options;
  options.buffer_bytes = buffer_bytes;
  options.buffers = shape.buffers;
  options.never_hold = shape.never_hold;
  FakeAgent agent(world.socket(), options);

  std::vector<Data> data;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < shape.sizes.size(); ++i) {
    // Bytes around the data must survive a restart.
    data.push_back(pattern(shape.sizes[i] + 16, static_cast<unsigned>(i)));
    names.push_back("region " + std::to_string(i));
  }
  const std::vector<Data> saved = data;
  const auto protect_all = [&](Session& session) {
    for (std::size_t i = 0; i < data.size(); ++i) {
      backstay_array array{};
      array.dims = 1;
      array.shape[0] = shape.sizes[i];
      ASSERT_TRUE(
          session.protect(names[i].c_str(), data[i].data() + 8, &array, BACKSTAY_BYTE).ok());
    }
  };
  {
    auto session = session_in(world);
    protect_all(*session);
    const Status taken = session->checkpoint();
    ASSERT_TRUE(taken.ok()) << taken.error().to_string();
    EXPECT_EQ(session->version(), 1U);
    EXPECT_EQ(data, saved) << "a checkpoint must not change the data";
    ASSERT_TRUE(session->finish().ok());
  }
  for (std::size_t i = 0; i < data.size(); ++i) {
    std::fill(data[i].begin() + 8, data[i].end() - 8, 0xAA);
  }
  auto session = session_in(world);
  protect_all(*session);
  const auto restarted = session->restart();
  ASSERT_TRUE(restarted.ok()) << restarted.error().to_string();
  EXPECT_EQ(*restarted, 1U);
  EXPECT_EQ(data, saved);
  session.reset();
  agent.stop();
  EXPECT_EQ(agent.problem(), "");
}

std::vector<Shape> shapes() {
  std::vector<Shape> all;
  for (const bool never_hold : {false, true}) {
    for (const std::uint32_t buffers : {1U, 3U, 64U}) {
      const std::vector<std::vector<std::size_t>> sizes = {
          {},
          {0},
          {1},
          {63},
          {64},
          {65},
          {buffer_bytes - 1},
          {buffer_bytes},
          {buffer_bytes + 1},
          {2 * buffer_bytes},
          {10 * buffer_bytes + 17},
          {1, 1, 1, 1, 1, 1, 1},
          {0, 5, 0, 300, 0},
          {buffer_bytes - 64, 64, buffer_bytes, 1, 3 * buffer_bytes + 1, 0, 7}};
      for (const auto& one : sizes) all.push_back({one, never_hold, buffers});
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Sizes, RoundTrip, testing::ValuesIn(shapes()));

// The table of very many regions is larger than any tail that could be kept at a guess.
TEST(Restart, BringsBackMoreRegionsThanAFixedTailHolds) {
  const World world;
  FakeAgent::Options options;
  options.buffer_bytes = 1 << 20;
  options.never_hold = true;
  FakeAgent agent(world.socket(), options);
  std::vector<unsigned char> data = pattern(20'000, 1);
  const auto session_of_many = [&](std::size_t regions) {
    auto session = session_in(world);
    backstay_array array{};
    array.dims = 1;
    array.shape[0] = 1;
    for (std::size_t i = 0; i < regions; ++i) {
      const std::string name = std::string(190, 'r') + std::to_string(i);
      EXPECT_TRUE(session->protect(name.c_str(), &data[i], &array, BACKSTAY_BYTE).ok());
    }
    return session;
  };
  {
    auto session = session_of_many(data.size());
    ASSERT_TRUE(session->checkpoint().ok());
    refill(data, 2);
    const auto version = session->restart();
    ASSERT_TRUE(version.ok()) << version.error().to_string();
    EXPECT_EQ(data, pattern(data.size(), 1));
  }
  ASSERT_GT(agent.objects[1][0].size() - 64 * data.size(), std::size_t{4} << 20);
  const auto refused = session_of_many(1)->restart();
  ASSERT_EQ(code_of(refused), Code::mismatch);
  EXPECT_EQ(agent.problem(), "");
}

TEST(Session, SavesAnObjectThatTheFormatReads) {
  const World world;
  FakeAgent agent(world.socket(), {});
  auto session = session_in(world);
  std::vector<double> u(100, 1.5);
  backstay_array array{};
  array.dims = 2;
  array.shape[0] = 10;
  array.shape[1] = 10;
  array.global_shape[0] = 40;
  array.global_shape[1] = 10;
  array.global_offset[0] = 20;
  ASSERT_TRUE(session->protect("u", u.data(), &array, BACKSTAY_DOUBLE).ok());
  ASSERT_TRUE(session->checkpoint().ok());
  agent.stop();
  const Buffer& object = agent.objects.at(1).at(0);
  const auto footer =
      format::decode_footer(Bytes(object).last(format::object_footer_bytes), object.size());
  ASSERT_TRUE(footer.ok()) << footer.error().to_string();
  const auto table = format::decode_table(
      Bytes(object).subspan(footer->table_offset, footer->table_bytes), *footer);
  ASSERT_TRUE(table.ok()) << table.error().to_string();
  ASSERT_EQ(table->regions.size(), 1U);
  const format::Region& region = table->regions.front();
  EXPECT_EQ(region.name, "u");
  EXPECT_EQ(region.type, format::ElementType::f64);
  EXPECT_EQ(region.shape, (std::vector<std::uint64_t>{10, 10}));
  EXPECT_EQ(region.global_shape, (std::vector<std::uint64_t>{40, 10}));
  EXPECT_EQ(region.global_offset, (std::vector<std::uint64_t>{20, 0}));
  EXPECT_EQ(std::memcmp(object.data() + region.offset, u.data(), 800), 0);
}

TEST(Session, ManyRanksShareAPoolThatIsMuchTooSmall) {
  const World world;
  FakeAgent::Options options;
  options.buffers = 4;
  FakeAgent agent(world.socket(), options);
  ThreadGroup job(4);
  job.run([&](const Group& group) {
    auto session = session_in(world, group);
    const auto seed = static_cast<unsigned>(group.rank());
    Data data = pattern(5000 + 100 * seed, seed);
    const Data first = data;
    ASSERT_TRUE(protect(*session, "u", data).ok());
    ASSERT_TRUE(session->checkpoint().ok());
    refill(data, seed + 100);
    const Data second = data;
    ASSERT_TRUE(session->checkpoint().ok());
    EXPECT_EQ(session->version(), 2U);
    std::fill(data.begin(), data.end(), 0);
    const auto restarted = session->restart();
    ASSERT_TRUE(restarted.ok()) << restarted.error().to_string();
    EXPECT_EQ(*restarted, 2U);
    EXPECT_EQ(data, second);
    ASSERT_TRUE(session->finish().ok());
  });
  agent.stop();
  EXPECT_EQ(agent.problem(), "");
}

// --- restart -------------------------------------------------------------------------------------

TEST(Restart, SaysNoneWhereNothingWasSaved) {
  const World world;
  FakeAgent agent(world.socket(), {});
  auto session = session_in(world);
  Data data = pattern(100, 1);
  const Data before = data;
  ASSERT_TRUE(protect(*session, "u", data).ok());
  EXPECT_EQ(code_of(session->restart()), Code::none);
  EXPECT_EQ(data, before);
}

class Damage : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Held, Damage, testing::Bool());

TEST_P(Damage, TakesTheNextOlderVersionOnAllRanks) {
  const World world;
  FakeAgent::Options options;
  options.damage = {2};
  options.never_hold = GetParam();
  FakeAgent agent(world.socket(), options);
  ThreadGroup job(3);
  job.run([&](const Group& group) {
    const auto seed = static_cast<unsigned>(group.rank());
    auto session = session_in(world, group);
    Data data = pattern(1000, seed);
    const Data first = data;
    ASSERT_TRUE(protect(*session, "u", data).ok());
    ASSERT_TRUE(session->checkpoint().ok());
    refill(data, seed + 50);
    ASSERT_TRUE(session->checkpoint().ok());
    const auto restarted = session->restart();
    ASSERT_TRUE(restarted.ok()) << restarted.error().to_string();
    EXPECT_EQ(*restarted, 1U);
    EXPECT_EQ(data, first);
    // The number of the damaged version is not used again.
    ASSERT_TRUE(session->checkpoint().ok());
    EXPECT_EQ(session->version(), 3U);
  });
  agent.stop();
  EXPECT_EQ(agent.problem(), "");
}

TEST_P(Damage, LeavesTheRegionsAloneWhereNoVersionIsGood) {
  const World world;
  FakeAgent::Options options;
  options.damage = {1, 2};
  options.never_hold = GetParam();
  FakeAgent agent(world.socket(), options);
  auto session = session_in(world);
  Data data = pattern(1000, 1);
  ASSERT_TRUE(protect(*session, "u", data).ok());
  ASSERT_TRUE(session->checkpoint().ok());
  ASSERT_TRUE(session->checkpoint().ok());
  refill(data, 2);
  const Data now = data;
  EXPECT_EQ(code_of(session->restart()), Code::corrupt);
  EXPECT_EQ(data, now);
}

TEST(Restart, NeverReturnsBytesThatWentBadBetweenVerifyingAndDelivering) {
  const World world;
  FakeAgent::Options options;
  options.damage_late = {1};
  options.never_hold = true;
  FakeAgent agent(world.socket(), options);
  ThreadGroup job(2);
  job.run([&](const Group& group) {
    auto session = session_in(world, group);
    Data data = pattern(1000, 1);
    ASSERT_TRUE(protect(*session, "u", data).ok());
    ASSERT_TRUE(session->checkpoint().ok());
    const auto restarted = session->restart();
    ASSERT_FALSE(restarted.ok());
    EXPECT_EQ(restarted.error().code(), Code::io);
    EXPECT_THAT(restarted.error().message(), HasSubstr("must not go on"));
  });
}

// Another rank may have its buffers by then: nothing is exchanged back, and the program gets an
// error.
TEST(Restart, SaysSoWhereARankIsCutOffWithExchangedBytes) {
  const World world;
  FakeAgent::Options options;
  FakeAgent* fake = nullptr;
  std::size_t verified = 0;
  options.hook = [&](const wire::Message& message) {
    if (!std::holds_alternative<wire::Verified>(message)) return FakeAgent::Action::go_on;
    const std::size_t bytes = fake->objects.at(1).at(0).size();
    const bool all = ++verified * FakeAgent::Options().buffer_bytes >= bytes;
    return all ? FakeAgent::Action::cut_off : FakeAgent::Action::go_on;
  };
  FakeAgent agent(world.socket(), options);
  fake = &agent;
  auto session = session_in(world);
  Data data = pattern(1000, 1);
  ASSERT_TRUE(protect(*session, "u", data).ok());
  ASSERT_TRUE(session->checkpoint().ok());
  refill(data, 2);
  const auto restarted = session->restart();
  EXPECT_EQ(code_of(restarted), Code::io);
  EXPECT_THAT(restarted.error().message(), HasSubstr("must not go on"));
}

struct Mismatch {
  const char* what;
  std::function<void(Session&, Data&)> protect_now;
  std::vector<std::string> words;
};

TEST(Restart, RefusesRegionsThatAreNotWhatWasSaved) {
  const auto protect_as = [](Session& session, Data& data, const char* name, int dims,
                             std::uint64_t first, std::uint64_t second, backstay_type type) {
    backstay_array array{};
    array.dims = dims;
    array.shape[0] = first;
    array.shape[1] = second;
    ASSERT_TRUE(session.protect(name, data.data(), &array, type).ok());
  };
  const std::vector<Mismatch> cases = {
      {"another size",
       [&](Session& s, Data& d) { protect_as(s, d, "u", 1, 99, 0, BACKSTAY_DOUBLE); },
       {"'u'", "float64[100]", "float64[99]"}},
      {"another type",
       [&](Session& s, Data& d) { protect_as(s, d, "u", 1, 100, 0, BACKSTAY_INT64); },
       {"'u'", "float64[100]", "int64[100]"}},
      {"another shape",
       [&](Session& s, Data& d) { protect_as(s, d, "u", 2, 10, 10, BACKSTAY_DOUBLE); },
       {"'u'", "float64[100]", "float64[10, 10]"}},
      {"another name",
       [&](Session& s, Data& d) { protect_as(s, d, "v", 1, 100, 0, BACKSTAY_DOUBLE); },
       {"'u'", "not protected now"}},
      {"one more",
       [&](Session& s, Data& d) {
         protect_as(s, d, "u", 1, 100, 0, BACKSTAY_DOUBLE);
         protect_as(s, d, "w", 1, 1, 0, BACKSTAY_BYTE);
       },
       {"'w'", "was not saved"}},
      {"nothing", [](Session&, Data&) {}, {"'u'", "not protected now"}},
  };
  for (const Mismatch& one : cases) {
    SCOPED_TRACE(one.what);
    const World world;
    FakeAgent agent(world.socket(), {});
    ThreadGroup job(2);
    job.run([&](const Group& group) {
      auto session = session_in(world, group);
      Data data = pattern(800, 1);
      protect_as(*session, data, "u", 1, 100, 0, BACKSTAY_DOUBLE);
      ASSERT_TRUE(session->checkpoint().ok());
      refill(data, 2);
      const Data before = data;
      if (group.rank() == 0) {  // one rank that differs is enough for all
        ASSERT_TRUE(session->unprotect("u").ok());
        one.protect_now(*session, data);
      }
      const auto restarted = session->restart();
      ASSERT_FALSE(restarted.ok());
      EXPECT_EQ(restarted.error().code(), Code::mismatch);
      for (const std::string& word : one.words) {
        EXPECT_THAT(restarted.error().message(), HasSubstr(word));
      }
      EXPECT_EQ(data, before);
      // Nothing was set aside: with the right regions the version is still there.
      if (group.rank() == 0) {
        for (const char* name : {"u", "v", "w"}) (void)session->unprotect(name);
        protect_as(*session, data, "u", 1, 100, 0, BACKSTAY_DOUBLE);
      }
      EXPECT_TRUE(session->restart().ok());
      EXPECT_EQ(data, pattern(800, 1));
    });
  }
}

TEST(ReadRegion, ReadsAnOldVersionAndLeavesTheRestAlone) {
  const World world;
  FakeAgent agent(world.socket(), {});
  auto session = session_in(world);
  Data u = pattern(900, 1);
  Data v = pattern(300, 2);
  const Data old = u;
  ASSERT_TRUE(protect(*session, "u", u).ok());
  ASSERT_TRUE(protect(*session, "v", v).ok());
  ASSERT_TRUE(session->checkpoint().ok());
  refill(u, 3);
  const Data now = u;
  ASSERT_TRUE(session->checkpoint().ok());
  Data read(900);
  ASSERT_TRUE(session->read_region(1, "u", read.data(), 900).ok());
  EXPECT_EQ(read, old);
  ASSERT_TRUE(session->read_region(2, "u", read.data(), 900).ok());
  EXPECT_EQ(read, now);
  EXPECT_EQ(u, now);
  const Data before = read;
  EXPECT_EQ(code_of(session->read_region(1, "x", read.data(), 900)), Code::not_found);
  EXPECT_EQ(code_of(session->read_region(1, "u", read.data(), 899)), Code::mismatch);
  EXPECT_EQ(code_of(session->read_region(7, "u", read.data(), 900)), Code::not_found);
  EXPECT_EQ(read, before);
}

TEST(ReadRegion, FetchesOnlyWhatHoldsItAndTheTable) {
  for (const bool never_hold : {false, true}) {
    const World world;
    FakeAgent::Options options;
    options.buffers = 64;
    options.never_hold = never_hold;
    FakeAgent agent(world.socket(), options);
    auto session = session_in(world);
    Data large = pattern(1000 * buffer_bytes, 1);
    Data small = pattern(700, 2);
    ASSERT_TRUE(protect(*session, "small", small).ok());
    ASSERT_TRUE(protect(*session, "large", large).ok());
    ASSERT_TRUE(session->checkpoint().ok());
    Data read(700);
    ASSERT_TRUE(session->read_region(1, "small", read.data(), 700).ok());
    EXPECT_EQ(read, small);
    Level level{};
    ASSERT_TRUE(session->test(1, level).ok());  // the agent has done with it
    const std::size_t tail = 64 * 1024 / buffer_bytes + 1;
    EXPECT_LE(agent.chunks_sent, 2 * (tail + 4)) << "a second time where they are not held";
  }
}

TEST(ReadRegion, TakesATableOfAnyLength) {
  const World world;
  FakeAgent agent(world.socket(), {});
  auto session = session_in(world);
  std::vector<Data> all;
  for (unsigned at = 0; at < 600; ++at) all.push_back(pattern(4, at));
  for (unsigned at = 0; at < 600; ++at) {
    const std::string name = std::string(190, 'n') + std::to_string(at);
    ASSERT_TRUE(protect(*session, name.c_str(), all[at]).ok());
  }
  ASSERT_TRUE(session->checkpoint().ok());
  Data read(4);
  const std::string name = std::string(190, 'n') + "599";
  ASSERT_TRUE(session->read_region(1, name, read.data(), 4).ok());
  EXPECT_EQ(read, all[599]);
}

TEST(ReadRegion, LeavesTheCallersMemoryAloneWhereTheVersionIsDamaged) {
  const World world;
  FakeAgent::Options options;
  options.damage = {1};
  FakeAgent agent(world.socket(), options);
  auto session = session_in(world);
  Data u = pattern(900, 1);
  ASSERT_TRUE(protect(*session, "u", u).ok());
  ASSERT_TRUE(session->checkpoint().ok());
  Data read = pattern(900, 9);
  const Data before = read;
  EXPECT_EQ(code_of(session->read_region(1, "u", read.data(), 900)), Code::corrupt);
  EXPECT_EQ(read, before);
}

// --- levels --------------------------------------------------------------------------------------

TEST(Levels, AreWhatTheAgentSays) {
  const World world;
  FakeAgent agent(world.socket(), {});
  agent.levels[1] = Level::captured;
  auto session = session_in(world);
  ASSERT_TRUE(session->checkpoint().ok());
  ASSERT_TRUE(session->checkpoint().ok());
  Level level{};
  const auto level_of = [&](VersionNumber version) {
    EXPECT_TRUE(session->test(version, level).ok());
    return level;
  };
  EXPECT_EQ(level_of(1), Level::captured);
  EXPECT_EQ(level_of(2), Level::local);
  EXPECT_TRUE(session->wait(2, Level::local, 1).ok());
  EXPECT_EQ(code_of(session->wait(1, Level::local, 0.02)), Code::timeout);
  EXPECT_EQ(level_of(1), Level::captured) << "after a wait that was given up";
  EXPECT_EQ(code_of(session->test(9, level)), Code::not_found);
  EXPECT_EQ(level, Level::none);
  agent.failed[1] = Code::no_space;
  EXPECT_EQ(code_of(session->test(1, level)), Code::no_space);
  EXPECT_EQ(level, Level::captured) << "it still is in the pool";
  EXPECT_EQ(code_of(session->wait(1, Level::durable, 1)), Code::unsupported);
}

TEST(Levels, AWaitThatEndsByItsLimitSaysWhatIsLacking) {
  const World world;
  FakeAgent agent(world.socket(), {});
  agent.levels[1] = Level::captured;
  auto session = session_in(world);
  ASSERT_TRUE(session->checkpoint().ok());
  const std::string before = "version 1 has not reached level local within 0.02 s; it still may";
  Status late = session->wait(1, Level::local, 0.02);
  ASSERT_EQ(code_of(late), Code::timeout);
  EXPECT_EQ(late.error().message(), before + ", it is captured");
  agent.failed[1] = Code::agent_lost;
  late = session->wait(1, Level::local, 0.02);
  ASSERT_EQ(code_of(late), Code::timeout);
  EXPECT_EQ(late.error().message(), before + ", it is captured: failed for a test");
}

// --- routed files --------------------------------------------------------------------------------

TEST(Files, ComeBackWithContentAndMode) {
  const World world;
  FakeAgent agent(world.socket(), {});
  const std::string content(1000, 'x');
  std::string path;
  {
    auto session = session_in(world);
    path = *session->route_file("dump.0", 4096);
    EXPECT_EQ(path, world.files() + "/dump.0");
    EXPECT_EQ(*session->route_file("dump.0", 4096), path);
    std::ofstream(path) << content;
    ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
    ASSERT_TRUE(session->checkpoint().ok());
    std::ofstream(path) << "overwritten later";
    ASSERT_TRUE(session->finish().ok());
  }
  std::filesystem::remove_all(world.files());
  auto session = session_in(world);
  ASSERT_TRUE(session->restart().ok());  // before it is routed again
  EXPECT_EQ(text_of(path), content);
  struct stat info {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0640U);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(world.files()), {}), 1)
      << "no temporary file is left";
}

TEST(Files, ThatAreMissingFailTheCheckpointOnAllRanksAndNothingElse) {
  const World world;
  FakeAgent agent(world.socket(), {});
  ThreadGroup job(2);
  job.run([&](const Group& group) {
    auto session = session_in(world, group);
    std::string path;
    if (group.rank() == 1) path = *session->route_file("missing", 4096);
    const Status failed = session->checkpoint();
    ASSERT_EQ(code_of(failed), Code::invalid);
    if (group.rank() == 1) {
      EXPECT_THAT(failed.error().message(), HasSubstr(path));
      std::ofstream(path) << "here it is";
    } else {
      EXPECT_THAT(failed.error().message(), HasSubstr("rank 1: the routed file"));
    }
    EXPECT_TRUE(session->checkpoint().ok());
    EXPECT_EQ(session->version(), 1U);
  });
  agent.stop();
  EXPECT_EQ(agent.problem(), "");
}

TEST(Files, AFolderInTheirPlaceIsSeenBeforeAnythingIsTouched) {
  const World world;
  FakeAgent agent(world.socket(), {});
  ThreadGroup job(2);
  job.run([&](const Group& group) {
    auto session = session_in(world, group);
    auto data = pattern(1000, 1);
    ASSERT_TRUE(protect(*session, "u", data).ok());
    const std::string path =
        group.rank() == 1 ? *session->route_file("dump", 4096) : world.files() + "/dump";
    if (group.rank() == 1) std::ofstream(path) << "as it was";
    ASSERT_TRUE(session->checkpoint().ok());
    if (group.rank() == 1) {
      std::filesystem::remove(path);
      std::filesystem::create_directory(path);
    }
    refill(data, 2);
    const auto back = session->restart();
    ASSERT_EQ(code_of(back), Code::invalid);
    EXPECT_THAT(back.error().message(),
                HasSubstr("a folder is in the place of the routed file " + path));
    EXPECT_EQ(data, pattern(1000, 2));
    if (group.rank() == 1) std::filesystem::remove(path);
    ASSERT_TRUE(session->restart().ok());
    EXPECT_EQ(data, pattern(1000, 1));
  });
  EXPECT_EQ(text_of(world.files() + "/dump"), "as it was");
  agent.stop();
  EXPECT_EQ(agent.problem(), "");
}

TEST(Files, NamesNeverLeaveTheFolder) {
  const World world;
  FakeAgent agent(world.socket(), {});
  auto session = session_in(world);
  for (const char* name : {"", ".", "..", "a/b", "../x", "/etc/passwd", "a b", "a#b", "ä"}) {
    EXPECT_EQ(code_of(session->route_file(name, 4096)), Code::invalid) << name;
  }
  EXPECT_EQ(code_of(session->route_file(std::string(201, 'x'), 4096)), Code::too_large);
  EXPECT_TRUE(session->route_file("A-z_0.9%+", 4096).ok());
}

}  // namespace
}  // namespace backstay::client::test
