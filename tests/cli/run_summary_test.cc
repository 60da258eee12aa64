#include "bin/run/run_summary.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace backstay::bin {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// A log as the agent writes it; times in seconds.
class Log {
 public:
  Log& begin(const char* run, int at) { return add("run_begin", run, at, ""); }
  Log& ended(const char* run, int at) { return add("attempt_ended", run, at, ""); }
  Log& captured(const char* run, int at, int version, int waited_s) {
    return add(
        "captured", run, at,
        fmt::format(R"(,"version":{},"ranks":[{{"rank":0,"begin_ns":{},"end_ns":{}}},)"
                    R"({{"rank":1,"begin_ns":{},"end_ns":{}}}])",
                    version, ns(at - waited_s), ns(at), ns(at - waited_s), ns(at - waited_s)));
  }
  Log& cut(const char* run, int from, int to, bool saved) {
    add("cut_begin", run, from, R"(,"cut":9)");
    return add("cut_end", run, to,
               fmt::format(R"(,"cut":9,"saved":{},"seconds":{}.0)", saved, to - from));
  }
  Log& level(const char* name, const char* run, int at, int version) {
    return add(name, run, at, fmt::format(R"(,"version":{})", version));
  }
  Log& died(const char* run, int at) {
    add("rank_left", run, at, R"(,"rank":1,"lost":true)");
    add("rank_left", run, at, R"(,"rank":0,"lost":true)");
    return add("run_end", run, at, R"(,"how":"failed")");
  }
  Log& restored(const char* run, int at, int version) {
    return add("restored", run, at, fmt::format(R"(,"version":{},"seconds":2.0)", version));
  }
  Log& finished(const char* run, int at) { return add("run_end", run, at, R"(,"how":"finished")"); }
  Log& add(const char* event, const char* run, int at, const std::string& more) {
    return raw(fmt::format(R"({{"event":"{}","t_ns":{},"job":"heat","run":"{:08x}{}","node":0{}}})",
                           event, ns(at), launch_, run, more));
  }
  Log& raw(const std::string& line) {
    lines_.push_back(line);
    return *this;
  }
  // What follows is of another `backstay run`.
  Log& launch(Launch launch) {
    launch_ = launch;
    return *this;
  }
  RunSummary read() const { return summary_of(lines_, "heat", launch_); }

 private:
  static std::uint64_t ns(int s) { return std::uint64_t(s) * 1'000'000'000; }
  std::vector<std::string> lines_;
  Launch launch_ = 7;
};

const FirstDue daly{"daly", 131, 86400};

TEST(RunSummary, AWaitForACutBeginsWithIt) {
  const auto summary = Log()
                           .begin("a", 100)
                           .cut("a", 150, 170, true)
                           .captured("a", 171, 1, 2)
                           .cut("a", 200, 210, false)
                           .captured("a", 220, 2, 1)
                           .finished("a", 300)
                           .read();
  EXPECT_EQ(summary.waited_s, 21 + 10 + 1);
  EXPECT_THAT(sentences(summary, daly, {}),
              Contains("the program waited 16 % of its time for them, 21 s at most (for 1)"));
  const auto forked =
      Log()
          .begin("a", 100)
          .cut("a", 150, 190, true)
          .add("captured", "a", 190,
               R"(,"version":1,"ranks":[{"rank":0,"begin_ns":152000000000,"end_ns":190000000000,)"
               R"("stopped_ns":1000000000,"by":"fork"}])")
          .finished("a", 300)
          .read();
  EXPECT_EQ(forked.waited_s, 3);
}

TEST(RunSummary, OfARunWithoutTrouble) {
  const auto summary = Log()
                           .begin("a", 100)
                           .captured("a", 150, 1, 1)
                           .level("local", "a", 152, 1)
                           .captured("a", 200, 2, 3)
                           .level("local", "a", 202, 2)
                           .level("protected", "a", 203, 1)
                           .finished("a", 300)
                           .level("durable", "a", 400, 2)
                           .read();
  EXPECT_TRUE(summary.ended);
  EXPECT_FALSE(Log().begin("a", 1).finished("a", 2).begin("b", 3).read().ended);
  EXPECT_EQ(summary.versions, 2u);
  EXPECT_EQ(summary.running_s, 200);
  EXPECT_EQ(summary.waited_s, 4);
  EXPECT_THAT(
      sentences(summary, daly, {}),
      ElementsAre(
          "2 versions in 3 min 20 s, 2 local, 1 protected, 1 durable; the newest, 2, is durable",
          "the program waited 2 % of its time for them, 3.0 s at most"));
  EXPECT_EQ(why_no_version(summary, daly), "");
  EXPECT_EQ(as_json(summary)["newest_level"], "durable");
}

TEST(RunSummary, AVersionThatANewerOneReplacedIsNoLoss) {
  const auto summary = Log()
                           .begin("a", 100)
                           .captured("a", 150, 1, 1)
                           .captured("a", 160, 2, 1)
                           .level("local", "a", 165, 2)
                           .level("protected", "a", 166, 2)
                           .finished("a", 170)
                           .read();
  EXPECT_EQ(sentences(summary, daly, {}).front(),
            "2 versions in 1 min 10 s, 1 local (a newer one replaced the other before it was "
            "written; nothing is lost by that), 1 protected; the newest, 2, is protected");
}

TEST(RunSummary, AVersionOnItsWayToTheDiskIsNoLoss) {
  const auto summary = Log()
                           .begin("a", 100)
                           .captured("a", 150, 1, 1)
                           .level("local", "a", 152, 1)
                           .captured("a", 160, 2, 1)
                           .captured("a", 165, 3, 1)
                           .finished("a", 170)
                           .read();
  EXPECT_EQ(sentences(summary, daly, {}).front(),
            "3 versions in 1 min 10 s, 1 local so far; the newest, 3, is captured");
}

// One that keeps chunks of an older version is captured once it is on the disk.
TEST(RunSummary, AVersionThatIsLocalBeforeItIsCapturedIsLocal) {
  const auto summary = Log()
                           .begin("a", 100)
                           .captured("a", 150, 1, 1)
                           .level("local", "a", 152, 1)
                           .level("local", "a", 160, 2)
                           .captured("a", 160, 2, 1)
                           .finished("a", 170)
                           .read();
  EXPECT_EQ(sentences(summary, daly, {}).front(),
            "2 versions in 1 min 10 s, 2 local; the newest, 2, is local");
}

TEST(RunSummary, SeveralVersionsThatNewerOnesReplacedAreNoLoss) {
  const auto summary = Log()
                           .begin("a", 100)
                           .captured("a", 150, 1, 1)
                           .captured("a", 160, 2, 1)
                           .captured("a", 165, 3, 1)
                           .level("local", "a", 166, 3)
                           .finished("a", 170)
                           .read();
  EXPECT_THAT(sentences(summary, daly, {}).front(),
              HasSubstr("1 local (newer ones replaced the other 2 before they were written; "
                        "nothing is lost by that)"));
}

TEST(RunSummary, LargeSharesAndShortWaitsAreWrittenOut) {
  RunSummary summary = Log().begin("a", 0).captured("a", 100, 1, 100).finished("a", 100).read();
  EXPECT_THAT(sentences(summary, daly, {}), Contains(HasSubstr("waited 100 % of its time")));
  summary.longest_wait_s = 0.0997;
  EXPECT_THAT(sentences(summary, daly, {}), Contains(HasSubstr("for them, 100 ms at most")));
}

TEST(RunSummary, WorkLostIsWhatNoVersionHadThatCameBack) {
  const auto summary = Log()
                           .begin("a", 100)
                           .captured("a", 150, 1, 0)
                           .died("a", 170)  // 20 s lost
                           .begin("b", 180)
                           .restored("b", 182, 1)
                           .died("b", 190)  // 10 s more: all that it did
                           .begin("c", 200)
                           .restored("c", 202, 1)
                           .finished("c", 300)
                           .read();
  EXPECT_EQ(summary.failures, 2u);
  EXPECT_EQ(summary.lost_s, 30);
  EXPECT_EQ(summary.restarting_s(), 24) << "from the failures to the next computing";
  EXPECT_THAT(sentences(summary, daly, {.restarts = 2}).back(),
              AllOf(HasSubstr("2 restarts, which took 24 s ("), HasSubstr("; 30 s of work lost")));
}

TEST(RunSummary, ARestartIsSplitIntoWhatTookTheTime) {
  const auto summary = Log()
                           .begin("a", 100)
                           .captured("a", 150, 1, 0)
                           .died("a", 170)
                           .ended("a", 172)
                           .begin("b", 176)
                           .add("restart_begin", "b", 179, R"(,"version":1)")
                           .restored("b", 184, 1)
                           .finished("b", 300)
                           .read();
  EXPECT_EQ(sentences(summary, daly, {.restarts = 1}).back(),
            "1 restart, which took 14 s (noticing 2.0 s, starting 4.0 s, init 3.0 s, reading "
            "5.0 s); 20 s of work lost");
  EXPECT_EQ(as_json(summary)["restarting_s"], 14);
  EXPECT_EQ(as_json(summary)["launching_s"], 4);
}

TEST(RunSummary, ARestartThatFailsItselfCountsFromTheFirstFailure) {
  const auto summary = Log()
                           .begin("a", 100)
                           .captured("a", 150, 1, 0)
                           .died("a", 170)
                           .ended("a", 172)
                           .begin("b", 176)
                           .add("restart_begin", "b", 177, R"(,"version":1)")
                           .died("b", 178)
                           .ended("b", 180)
                           .begin("c", 181)
                           .add("restart_begin", "c", 182, R"(,"version":1)")
                           .restored("c", 183, 1)
                           .finished("c", 300)
                           .read();
  EXPECT_EQ(summary.restarting_s(), 13);
  EXPECT_EQ(summary.restarting[0], 2);
  EXPECT_EQ(summary.restarting[1], 9);
}

TEST(RunSummary, ARestartFromTheBeginningComputesAtOnce) {
  const auto summary = Log()
                           .begin("a", 100)
                           .died("a", 110)
                           .ended("a", 111)
                           .begin("b", 115)
                           .captured("b", 150, 1, 0)
                           .read();
  EXPECT_EQ(summary.restarting_s(), 5);
  EXPECT_EQ(summary.restarting[0], 1);
}

TEST(RunSummary, AProgramThatHadNothingLeftToComputeIsNotAskedWhetherItCalls) {
  const auto summary = Log().begin("a", 100).restored("a", 101, 9).finished("a", 400).read();
  EXPECT_THAT(why_no_version(summary, daly),
              AllOf(HasSubstr("went on from version 9"), Not(HasSubstr("does the program call"))));
}

TEST(RunSummary, AProgramThatIsSavedAndEndedAtWishLosesNoWork) {
  const auto summary = Log().begin("a", 100).captured("a", 150, 1, 0).died("a", 151).read();
  EXPECT_THAT(sentences(summary, daly, {.exit_code = 143}), Each(Not(HasSubstr("of work lost"))));
  EXPECT_THAT(sentences(summary, daly, {.exit_code = 139}), Contains(HasSubstr("of work lost")));
}

TEST(RunSummary, ARestartThatBringsNothingBackHasLostTheWholeRun) {
  EXPECT_EQ(Log().begin("a", 100).died("a", 150).begin("b", 160).finished("b", 170).read().lost_s,
            50);
}

TEST(RunSummary, AFailureWithoutARestartHasLostWhatCameAfterTheNewestVersion) {
  EXPECT_NEAR(Log().begin("a", 100).captured("a", 120, 1, 0).died("a", 150).read().lost_s, 30,
              1e-6);
}

TEST(RunSummary, ARefusedRestartIsNoFailure) {
  const auto summary =
      Log().begin("a", 100).add("refused", "a", 101, R"(,"why":"3 ranks")").died("a", 102).read();
  EXPECT_EQ(summary.failures, 0u);
  EXPECT_EQ(summary.lost_s, 0);
  EXPECT_EQ(why_no_version(summary, daly),
            "no version was taken: what was saved before was refused");
}

TEST(RunSummary, RunsOfOthersAndOtherLinesDoNotCount) {
  const auto summary =
      Log()
          .begin("a", 100)
          .captured("a", 150, 1, 0)
          .launch(8)
          .begin("b", 200)
          .launch(7)
          .level("local", "a", 201, 1)
          .begin("c", 202)
          .captured("c", 203, 9, 0)
          .launch(8)
          .captured("b", 250, 2, 0)
          .raw("no JSON")
          .raw("[]")
          .raw(R"({"event":7,"t_ns":"x","job":"heat"})")
          .raw(R"({"event":"captured","t_ns":260000000000,"job":"other","run":"00000008b"})")
          .raw(R"({"event":"captured","t_ns":260000000000,"job":"heat","run":"00000008b"})")
          .finished("b", 300)
          .read();
  EXPECT_EQ(summary.runs, 1u);
  EXPECT_EQ(summary.versions, 1u);
  EXPECT_EQ(summary.newest, 2u);
  EXPECT_EQ(summary.reached.at("local"), 0u);
}

TEST(RunSummary, SaysWhyThereIsNoVersion) {
  const auto ran = Log().begin("a", 100).finished("a", 112).read();
  EXPECT_THAT(
      why_no_version(ran, daly),
      HasSubstr("no version was taken in 12 s: the first would have been due after 2 min 11 s "
                "(checkpoint.policy daly, mtti_s 1 d 0 h)"));
  EXPECT_THAT(why_no_version(ran, {"interval", 60, 0}),
              HasSubstr("due after 1 min 0 s (checkpoint.policy interval)"));
  EXPECT_THAT(why_no_version(ran, {"interval", 5, 0}),
              HasSubstr("does the program call backstay_due()"));
  EXPECT_THAT(why_no_version(ran, {.policy = "interval", .after_s = 5, .transparent = true}),
              HasSubstr("ended while it was to be saved"));
  EXPECT_THAT(why_no_version(ran, {"interval", 60, 0}), HasSubstr("--interval with fewer"));
  EXPECT_THAT(why_no_version(ran, {"request", -1, 0}), HasSubstr("none was requested"));
  EXPECT_THAT(why_no_version(ran, {"calls", -1, 0}), HasSubstr("not called that often"));
  EXPECT_THAT(why_no_version(Log().read(), daly), HasSubstr("no rank called Backstay"));
  RunSummary unwritten = Log().read();
  unwritten.unwritten = true;
  EXPECT_THAT(why_no_version(unwritten, daly), HasSubstr("`backstay ls` shows the versions"));
  EXPECT_EQ(sentences(unwritten, daly, {}).size(), 1u) << "it may have called Backstay";
  const auto failed = Log()
                          .begin("a", 100)
                          .add("capture_failed", "a", 105, R"(,"why":"the disk is full")")
                          .finished("a", 112)
                          .read();
  EXPECT_THAT(why_no_version(failed, daly), HasSubstr("in 12 s: the disk is full"));
  EXPECT_EQ(sentences(ran, daly, {}).size(), 1u);
}

TEST(RunSummary, ShowsAProgramThatNeverCallsBackstayHowToInItsLanguage) {
  const RunSummary never;
  EXPECT_THAT(sentences(never, daly, {}),
              AllOf(Contains(HasSubstr("backstay_init_mpi(")),
                    Contains(HasSubstr("backstay run --transparent --")),
                    Contains(HasSubstr("--capture-files"))));
  EXPECT_THAT(sentences(never, daly, {.restarts = 2, .language = Language::python}),
              AllOf(Contains(HasSubstr("with backstay.init(comm):")), Each(Not(HasSubstr(";  "))),
                    Each(Not(HasSubstr("of work lost")))));
}

TEST(RunSummary, AProgramThatFailedBeforeItsFirstCallIsToldSo) {
  const RunSummary never;
  const auto lines = sentences(never, daly, {.exit_code = 7});
  EXPECT_THAT(lines, Contains(HasSubstr("failed (exit code 7) before it called Backstay")));
  EXPECT_THAT(lines, Each(Not(HasSubstr("backstay_init_mpi("))));
  EXPECT_EQ(lines.size(), 2u);
  EXPECT_THAT(sentences(never, {.policy = "daly", .transparent = true}, {.exit_code = 7}),
              ElementsAre(HasSubstr("was refused, or was not saved")));
  EXPECT_TRUE(sentences(never, daly, {.captures = true}).empty()) << "files need no call";
}

}  // namespace
}  // namespace backstay::bin
