// The summary of `backstay run` at its end: versions, levels, time waited, work lost; and why there
// is no version. Made from the lines of the job's event log (docs/format/events.md) on this node.
// No I/O except reading the log: tested alone.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "base/ids.h"

namespace backstay::bin {

// When the first version would have been due by time alone.
struct FirstDue {
  std::string policy;        // checkpoint.policy
  double after_s = -1;       // of a run; below 0: time never asks
  double mtti_s = 0;         // of policy daly
  bool transparent = false;  // the program does not call: its companion looks whether one is due
};

struct RunSummary {
  unsigned runs = 0;  // in which ranks connected on this node
  bool ended = true;  // the log has the end of the last one: until then lines may be on their way
  bool refused = false;  // the last one: its ranks could not use what was saved
  // The agent knows a run, and its log has none yet, as its disk is busy: versions may be there.
  bool unwritten = false;
  unsigned failures = 0;
  std::uint64_t failed_ns = 0;  // when the last of them began, by the wall's clock
  std::uint64_t versions = 0;   // captured
  VersionNumber newest = 0;
  VersionNumber from = 0;                        // that the last run went on from
  std::map<std::string, std::uint64_t> reached;  // level -> how many of them
  std::string newest_level;
  double running_s = 0;      // from the first rank that connected to the last that left
  double longest_run_s = 0;  // of one run
  double waited_s = 0;       // the longest wait of a rank, for each version; of MPI programs that
                             // are not modified: each cut, from its begin on
  double longest_wait_s = 0;
  // Seconds that the program stood still for restarts, from the loss of a rank on: until `backstay
  // run` saw the launcher's end, a rank connected, the ranks asked for their data, and had it.
  std::array<double, 4> restarting{};
  double restarting_s() const { return std::accumulate(restarting.begin(), restarting.end(), 0.0); }
  std::uint64_t cuts = 0;
  VersionNumber longest_wait = 0;  // which version that was; 0: a cut that was given up
  double lost_s = 0;    // of work that restarts did not bring back, or that is in no version
  std::string why_not;  // of the newest version that could not be captured
};

// Sums up the runs of one `backstay run`. `lines` in the order of the log; unreadable ones do not
// count.
RunSummary summary_of(const std::vector<std::string>& lines, const std::string& job, Launch launch);

// The language of the example that shows how to call Backstay.
enum class Language { c, python };

// What `backstay run` knows of its program by itself.
struct ProgramEnd {
  unsigned restarts = 0;
  int exit_code = 0;
  Language language = Language::c;
  bool captures = false;  // its files are captured
};

// Sentences, one a line. Of a program that never called Backstay: what to add to it, or, where it
// failed before it could call, that it did.
std::vector<std::string> sentences(const RunSummary& summary, const FirstDue& due,
                                   const ProgramEnd& end);
// Why there is no version and what to do; "" if there is one.
std::string why_no_version(const RunSummary& summary, const FirstDue& due);

nlohmann::ordered_json as_json(const RunSummary& summary);

// The log's lines, oldest first. Blocks; unreadable lines are left out.
std::vector<std::string> read_job_log(const std::string& job_folder);

}  // namespace backstay::bin
