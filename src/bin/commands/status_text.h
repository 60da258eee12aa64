// The agent's status document (docs/protocol/agent.md) as lines for a person. No I/O: tested alone.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

namespace backstay::bin {

// What changed between two status documents.
struct Rates {
  double write_per_s = 0;
  double read_per_s = 0;
  double disk_write_limit_per_s = 0;  // from `backstay probe`; 0: not measured
};

// "writing 1.20 GB/s, 75 % of the 1.60 GB/s that this disk can"
std::string speed_text(const Rates& rates);
// How full the pool is, then its buffers; the speed of the disk. Lines of at most 80 columns.
std::vector<std::string> pool_lines(const nlohmann::ordered_json& status);
std::vector<std::string> disk_lines(const Rates& rates);
// One line a version, newest first, at most `versions_max` a job, and below it why it failed; then
// one line a node where there are several. A job that has finished is one line. A note stands once,
// and not if it is in `said`, to which it is added.
std::vector<std::string> job_lines(const nlohmann::ordered_json& status, std::size_t versions_max,
                                   std::set<std::string>* said = nullptr);
// Lines of at most `columns`, as far as words allow, each after `indent` blanks.
std::vector<std::string> wrapped(const std::string& text, std::size_t indent, std::size_t columns);
// "[=====     ]"
std::string bar(double part, std::size_t cells);

// The level of a version as a person reads it: "local", "captured, writing 40 %", "failed".
std::string level_text(const nlohmann::ordered_json& version);

}  // namespace backstay::bin
