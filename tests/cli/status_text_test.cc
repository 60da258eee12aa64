#include "bin/commands/status_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace backstay::bin {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Json version(int number, const char* level, int bytes, int written, const char* error = "") {
  return {{"version", number},        {"level", level},   {"bytes", bytes},
          {"written_bytes", written}, {"captured_ns", 0}, {"error", error}};
}

TEST(StatusText, LevelOfAVersion) {
  EXPECT_EQ(level_text(version(1, "local", 100, 100)), "local");
  EXPECT_EQ(level_text(version(1, "captured", 200, 50)), "captured, writing 25 %");
  EXPECT_EQ(level_text(version(1, "none", 200, 300)), "being captured, writing 100 %");
  EXPECT_EQ(level_text(version(1, "none", 200, 50, "the disk is full")), "failed");
}

TEST(StatusText, TheReasonOfAFailureIsNotCutAt80Columns) {
  Json job{{"job", "lj"}, {"ranks", 1}, {"connected", 1}, {"dir", "/d"}};
  job["versions"] =
      Json::array({version(6, "captured", 9, 0,
                           "reserve 64536592 bytes for /scratch/me/lj/v6/node-0000000.segment: No "
                           "space left on device")});
  EXPECT_THAT(
      job_lines(Json{{"jobs", Json::array({job})}}, 2),
      ElementsAre(StartsWith("lj "), StartsWith("  version    6        9 B  failed"),
                  "    reserve 64536592 bytes for /scratch/me/lj/v6/node-0000000.segment: No space",
                  "    left on device"));
}

TEST(StatusText, JobsWithTheNewestVersionFirst) {
  Json job{{"job", "lj"}, {"ranks", 4}, {"connected", 3}, {"dir", "/d"}, {"stop_requested", true}};
  job["versions"] =
      Json::array({version(1, "local", 9, 9), version(3, "none", 9, 0), version(2, "local", 9, 9)});
  Json empty{{"job", "empty"}, {"ranks", 1}};
  const Json status{{"jobs", Json::array({job, empty})}};
  EXPECT_THAT(
      job_lines(status, 2),
      ElementsAre("lj  3 of 4 ranks connected  (asked to stop)  /d", StartsWith("  version    3"),
                  StartsWith("  version    2"), StartsWith("empty"), "  no version yet"));
}

TEST(StatusText, JobsThatRunComeFirst) {
  const Json ended{{"job", "a"}, {"ranks", 1}, {"connected", 0}};
  const Json runs{{"job", "b"}, {"ranks", 1}, {"connected", 1}};
  EXPECT_THAT(
      job_lines(Json{{"jobs", Json::array({ended, runs})}}, 2),
      ElementsAre(StartsWith("b "), "  no version yet", StartsWith("a "), "  no version yet"));
}

TEST(StatusText, AFinishedJobIsOneLine) {
  Json done{{"job", "lj"}, {"ranks", 4}, {"connected", 0}, {"nodes", 2}, {"dir", "/d"}};
  done["finished"] = true;
  done["members"] = Json::array({Json{{"node", 0}, {"state", "ok"}}});
  done["versions"] = Json::array({version(6, "local", 9, 9), version(7, "durable", 9, 9)});
  EXPECT_THAT(job_lines(Json{{"jobs", Json::array({done})}}, 2),
              ElementsAre("lj  finished; version 7 is durable  /d"));
  done["versions"] = Json::array();
  EXPECT_THAT(job_lines(Json{{"jobs", Json::array({done})}}, 2), ElementsAre("lj  finished  /d"));
  done["home"] = {{"waiting", 3}, {"waiting_bytes", 5}};  // not quite
  EXPECT_EQ(job_lines(Json{{"jobs", Json::array({done})}}, 2).size(), 2);
}

TEST(StatusText, ANoteStandsOnce) {
  Json job{{"job", "a"}, {"connected", 1}, {"notes", Json::array({"the disk is slow", "b", "b"})}};
  Json other = job;
  other["job"] = "c";
  EXPECT_THAT(job_lines(Json{{"jobs", Json::array({job, other})}}, 2),
              ElementsAre(StartsWith("a "), "  no version yet", "  note: the disk is slow",
                          "  note: b", StartsWith("c "), "  no version yet"));
}

TEST(StatusText, CapturedFilesThatAreNotAtHomeHaveALine) {
  Json job{{"job", "lj.files.n0"}, {"versions", Json::array({version(1, "local", 9, 9)})}};
  job["home"] = {{"waiting", 3},
                 {"waiting_bytes", 5 << 20},
                 {"failed", 1},
                 {"kept", 2},
                 {"on_its_way", "/w/out/" + std::string(80, 'x')}};
  const Json status{{"jobs", Json::array({job})}};
  EXPECT_THAT(job_lines(status, 2),
              ElementsAre(StartsWith("lj.files.n0"), StartsWith("  version    1"),
                          "  captured files: 3 waiting, 5.00 MiB; 1 of them failed; 2 kept",
                          StartsWith("    on its way: /w/out/xxx")));
  EXPECT_LE(job_lines(status, 2).back().size(), 82);  // two bytes more for the mark of the cut
  job["home"] = {{"waiting", 0}, {"failed", 0}, {"kept", 0}, {"on_its_way", ""}};
  EXPECT_EQ(job_lines(Json{{"jobs", Json::array({job})}}, 2).size(), 2);
}

TEST(StatusText, SeveralNodesHaveALineEach) {
  Json good{{"node", 0},      {"state", "ok"},        {"host", "n0"},  {"ranks", 2},
            {"connected", 2}, {"busy", 16},           {"buffers", 64}, {"written_bytes", 4096},
            {"newest", 3},    {"level", "protected"}, {"lacks", ""}};
  Json bad = good;
  bad["node"] = 1;
  bad["host"] = "a-host-with-a-very-long-name";
  bad["connected"] = 1;
  bad["level"] = "captured";
  bad["lacks"] =
      "version 3 not local: write segment /var/tmp/backstay-root/heat/v00000003/segment.1: No "
      "space left";
  good["domain"] = "s0";
  bad["domain"] = "";
  const Json gone{{"node", 2},
                  {"state", "no answer"},
                  {"why", "it has not answered in time"},
                  {"domain", "s0"}};
  Json job{{"job", "heat"}, {"nodes", 9}, {"ranks", 18}, {"connected", 2}, {"dir", "/d"}};
  job["members"] = Json::array({good, bad, gone, 5});
  job["members_left_out"] = 6;
  job["notes"] =
      Json::array({"copies of one node's data should lie in different failure domains, but domain "
                   "\"r\" has 9 nodes"});
  const auto lines = job_lines({{"jobs", Json::array({job})}}, 3);
  EXPECT_THAT(
      lines, ElementsAre(
                 "heat  3 of 18 ranks connected on 9 nodes  /d", "  no version yet",
                 "  node  host                  ranks    pool     written  newest version",
                 "     0  n0                   2 of 2    25 %    4.00 KiB  3 protected",
                 "     1  a-host-with-a-ve     1 of 2    25 %    4.00 KiB  3 captured",
                 "        version 3 not local: write seg...heat/v00000003/segment.1: No space left",
                 "     2  no answer: it has not answered in time", "        and 6 nodes more",
                 "  failure domains: s0 (0, 2)",
                 "  note: copies of one node's data should lie in different failure domains, but",
                 "  domain \"r\" has 9 nodes"));
  for (const std::string& line : lines) EXPECT_LE(line.size(), 80u) << line;
}

TEST(StatusText, AnswersOfAnotherReleaseDoNotBreakIt) {
  EXPECT_THAT(pool_lines(Json::object()),
              ElementsAre(HasSubstr(" 0 % of 0 B"), HasSubstr("0 free")));
  EXPECT_TRUE(job_lines(Json::object(), 3).empty());
  EXPECT_EQ(level_text(Json::object()), "");
}

TEST(StatusText, SpeedAgainstTheMeasuredLimit) {
  EXPECT_EQ(speed_text({1.2e9, 0, 1.6e9}),
            "writing 1.20 GB/s, 75 % of the 1.60 GB/s that this disk can");
  EXPECT_EQ(speed_text({0, 2e9, 0}), "writing 0 B/s; reading 2.00 GB/s");
}

TEST(StatusText, PoolAndBar) {
  const Json pool{{"buffers", 8}, {"buffer_bytes", 4 << 20},
                  {"filling", 1}, {"writing", 3},
                  {"cached", 2},  {"free", 2}};
  EXPECT_THAT(pool_lines(Json{{"pool", pool}}),
              ElementsAre("pool [==========          ] 50 % of 32.0 MiB busy",
                          "  8 buffers of 4.00 MiB: 1 filling, 3 writing, 2 cached, 2 free"));
  EXPECT_EQ(bar(2, 4), "[====]");
  EXPECT_EQ(bar(-1, 4), "[    ]");
}

// A large pool that is full, and a fast disk at its limit.
TEST(StatusText, PoolAndDiskFitATerminalOf80Columns) {
  const Json pool{{"buffers", 99999}, {"buffer_bytes", 4 << 20}, {"filling", 9999},
                  {"writing", 9999},  {"cached", 9999},          {"free", 9999}};
  auto lines = pool_lines(Json{{"pool", pool}});
  for (const Rates& rates : {Rates{9.99e9, 9.99e9, 9.99e9}, Rates{9.99e9, 9.99e9, 0}})
    for (const std::string& line : disk_lines(rates)) lines.push_back(line);
  EXPECT_EQ(lines.size(), 5u);
  for (const std::string& line : lines) EXPECT_LE(line.size(), 80u) << line;
}

TEST(StatusText, TheDiskBesideWhatItCan) {
  EXPECT_THAT(disk_lines({0.8e9, 0, 1.6e9}),
              ElementsAre("disk [==========          ] 50 % of the 1.60 GB/s that it can write",
                          "  writing 800 MB/s, reading 0 B/s"));
  EXPECT_THAT(disk_lines({0.8e9, 0, 0}), ElementsAre(HasSubstr("`backstay probe`")));
}

}  // namespace
}  // namespace backstay::bin
