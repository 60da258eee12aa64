// Settings that do not fit, and ranks that write together when one of them fails.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "io/faulty.h"
#include "io/ring.h"
#include "job.h"
#include "tier/dir.h"

namespace backstay::strategy::test {
namespace {

using testing::HasSubstr;

struct Refusal {
  const char* settings;
  Code code;
  const char* says;
};
const Refusal refusals[] = {
    {"name = \"collective\"\nfiles = 5\n", Code::config, "strategy.files is 5, and 4 ranks have 4"},
    {"name = \"writers\"\nranks_per_writer = 2\nfiles = 3\n", Code::config,
     "strategy.files is 3, and 4 ranks have 2 writers"},
    {"name = \"collective\"\nhints = \"cb_nodes\"\n", Code::config, "\"cb_nodes\" is no key=value"},
    {"name = \"collective\"\nhints = \"a=1;=2\"\n", Code::config, "\"=2\" is no key=value"},
    {"name = \"collective\"\nhints = \"a_key_that_no_mpi_takes_as_it_is_so_long=2\"\n",
     Code::config, "is too long for MPI"},
};

TEST(Strategies, SettingsThatDoNotFit) {
  for (const Refusal& refusal : refusals) {
    Job job(refusal.settings);
    const Status status = job.save(4, 1);
    ASSERT_FALSE(status.ok()) << refusal.settings;
    EXPECT_EQ(status.error().code(), refusal.code) << refusal.settings;
    EXPECT_THAT(status.error().message(), HasSubstr(refusal.says));
    EXPECT_FALSE(std::filesystem::exists(job.version(1)));
  }
}

TEST(Strategies, ThoseThatNeedMpiSayWhatElseThereIs) {
  for (const char* name : {"collective", "writers"}) {
    Job job("name = \"" + std::string(name) + "\"\n");
    job.has_transport = false;
    const Status status = job.save(2, 1);
    EXPECT_EQ(status.error().code(), Code::unsupported);
    EXPECT_THAT(status.error().message(), HasSubstr("file_per_process"));
  }
}

TEST(Strategies, ADirectoryThatOneHostDoesNotSee) {
  for (const bool exists : {false, true}) {
    for (const bool has_an_old_lock : {false, true}) {
      Job job("name = \"file_per_process\"\n");
      ASSERT_TRUE(job.save(2, 1).ok());
      job.sees_another = 1;
      const std::filesystem::path other = job.shared() + "/../other";
      if (exists) std::filesystem::create_directories(other / "job");
      if (exists && has_an_old_lock) std::ofstream(other / "job/live") << "17 another-host\n";
      const Status status = job.save(2, 2);
      EXPECT_EQ(status.error().code(), Code::config) << exists;
      EXPECT_THAT(status.error().message(),
                  HasSubstr(exists ? "another directory on" : "no directory on"));
      EXPECT_FALSE(std::filesystem::exists(job.version(2)));
    }
  }
}

// --- a call of MPI that fails --------------------------------------------------------------------

constexpr const char* together[] = {"name = \"collective\"\n", "name = \"collective\"\nfiles = 2\n",
                                    "name = \"writers\"\nranks_per_writer = 2\nfiles = 1\n"};

TEST(RanksThatWriteTogether, FailAlikeWhereOneCallFails) {
  for (const char* settings : together) {
    for (const std::string failing : {"open", "reserve", "write", "close"}) {
      Job job(settings);
      ASSERT_TRUE(job.save(4, 1).ok());
      job.prepare = [failing](ThreadTransport& transport) {
        // MPI opens a file on all ranks or on none; only its first writer reserves.
        const int only = failing == "open" || failing == "reserve" ? -1 : 2;
        transport.fails = [=](int rank, const std::string& call) -> const char* {
          return call == failing && (only < 0 || rank == only) ? "no room" : nullptr;
        };
      };
      const Status status = job.save(4, 2);
      ASSERT_FALSE(status.ok()) << settings << failing;
      EXPECT_THAT(status.error().message(),
                  HasSubstr(failing == "reserve" ? "No space" : "no room"));
      EXPECT_EQ(status.error().code(), failing == "reserve" ? Code::no_space : Code::io);
      job.prepare = [](ThreadTransport&) {};
      EXPECT_EQ(*job.restart(4), 1U) << settings << failing;
      EXPECT_FALSE(std::filesystem::exists(job.version(2))) << settings << failing;
    }
  }
}

// --- writers that write on -----------------------------------------------------------------------

constexpr const char* writers = "name = \"writers\"\nranks_per_writer = 2\n";

// The second writer cannot make its segment.
void fail_second_writer(Job& job) {
  job.open_tier = [](const Config& config, const std::string& dir,
                     const std::string& writer) -> Result<std::unique_ptr<tier::Tier>> {
    if (dir != config.durable.dir || !writer.ends_with("-2"))
      return open_files(config, dir, writer);
    static std::vector<std::unique_ptr<io::FileSystem>> kept;
    kept.push_back(io::make_faulty_filesystem(
        io::posix_filesystem(), std::make_shared<io::Faults>(io::FaultPlan{io::Fault::io, 3})));
    return tier::open_dir_tier(*kept.back(), [] { return io::make_ring({}, nullptr); },
                               {.root = dir, .writer = writer});
  };
}

TEST(WritersThatWriteOn, TellAFailureToAllWhoWait) {
  Job job(writers);
  ASSERT_TRUE(job.save(4, 1).ok());
  fail_second_writer(job);
  const Status status = job.run(4, [&](Member& member) -> Status {
    member.fill(2);
    EXPECT_TRUE(member.session().checkpoint().ok()) << "it was handed over";
    const Status waited = member.session().wait(2, Level::durable, 60);
    EXPECT_EQ(waited.ok() ? Code::ok : waited.error().code(), Code::io);
    member.fill(3);
    return member.session().checkpoint();  // the disk has room again
  });
  EXPECT_TRUE(status.ok()) << status.error().to_string();
  EXPECT_EQ(*job.restart(4), 3U);
  EXPECT_FALSE(std::filesystem::exists(job.version(2)));
}

TEST(WritersThatWriteOn, TellAFailureAtTheEnd) {
  Job job(writers);
  ASSERT_TRUE(job.save(4, 1).ok());
  fail_second_writer(job);
  const Status status = job.save(4, 2);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message(), HasSubstr("version 2 does not exist"));
  EXPECT_EQ(*job.restart(4), 1U);
}

TEST(WritersThatWriteOn, HaveNoLevelBeforeTheRecord) {
  Job job(writers);
  const Status status = job.run(4, [](Member& member) -> Status {
    member.fill(1);
    BACKSTAY_TRY(member.session().checkpoint());
    Level level = Level::captured;
    EXPECT_TRUE(member.session().test(1, level).ok());
    EXPECT_TRUE(level == Level::none || level == Level::durable);
    BACKSTAY_TRY(member.session().wait(1, Level::captured, 60));
    EXPECT_TRUE(member.session().test(1, level).ok());
    EXPECT_EQ(level, Level::durable) << "no level lies before it";
    return {};
  });
  EXPECT_TRUE(status.ok()) << status.error().to_string();
}

}  // namespace
}  // namespace backstay::strategy::test
