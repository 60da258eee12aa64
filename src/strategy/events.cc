#include "strategy/events.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/machine.h"

namespace backstay::strategy {

namespace {

using Json = nlohmann::ordered_json;

double seconds(std::uint64_t from_ns, std::uint64_t to_ns) {
  return to_ns > from_ns ? static_cast<double>(to_ns - from_ns) * 1e-9 : 0;
}

Json listed(const std::vector<RankReport>& ranks) {
  Json all = Json::array();
  for (const RankReport& rank : ranks) {
    all.push_back({{"rank", all.size()},
                   {"bytes", rank.bytes},
                   {"begin_ns", rank.begin_ns},
                   {"end_ns", rank.end_ns},
                   {"open_s", seconds(0, rank.open_ns)},
                   {"write_s", seconds(0, rank.write_ns)},
                   {"close_s", seconds(0, rank.close_ns)},
                   {"hand_over_s", seconds(0, rank.hand_over_ns)},
                   {"wait_s", seconds(0, rank.wait_ns)},
                   {"writes", rank.writes}});
  }
  return all;
}

}  // namespace

// Each field: a name and a value.
template <typename... Fields>
void Events::append(const char* event, Fields&&... fields) const {
  if (!writes_) return;
  Json line{{"event", event},
            {"t_ns", system_clock().wall_ns()},
            {"job", job_},
            {"run", fmt::format("{:016x}", run_)},
            {"node", 0}};
  ((line[fields.first] = fields.second), ...);
  log_.append(line.dump(-1, ' ', false, Json::error_handler_t::replace));
}

void Events::run_begins(int ranks, VersionNumber newest) const {
  append("run_begin", std::pair("ranks", ranks), std::pair("nodes", 1),
         std::pair("host", host_name()), std::pair("newest", newest),
         std::pair("release", BACKSTAY_VERSION));
}

void Events::run_ends(bool stopped) const {
  append("run_end", std::pair("how", stopped ? "stopped" : "finished"));
}

void Events::capture_begins(VersionNumber version) const {
  append("capture_begin", std::pair("version", version));
}

// With the times of all ranks: no level lies before durable.
void Events::captured(VersionNumber version, const std::vector<RankReport>& ranks) const {
  if (!writes_) return;
  std::uint64_t bytes = 0;
  std::uint64_t begin_ns = UINT64_MAX;
  std::uint64_t end_ns = 0;
  for (const RankReport& rank : ranks) {
    bytes += rank.bytes;
    begin_ns = std::min(begin_ns, rank.begin_ns);
    end_ns = std::max(end_ns, rank.end_ns);
  }
  append("captured", std::pair("version", version), std::pair("bytes", bytes),
         std::pair("seconds", seconds(begin_ns, end_ns)), std::pair("ranks", listed(ranks)));
}

void Events::durable(VersionNumber version) const {
  append("durable", std::pair("version", version));
}

void Events::capture_failed(VersionNumber version, const Error& why) const {
  append("capture_failed", std::pair("version", version),
         std::pair("code", std::string(code_name(why.code()))), std::pair("why", why.message()));
}

void Events::restart_begins() const { append("restart_begin", std::pair("from", "durable")); }

void Events::restored(VersionNumber version) const {
  append("restored", std::pair("version", version), std::pair("from", "durable"));
}

void Events::restart_failed(const Error& why, bool refused) const {
  append(refused ? "refused" : "restart_failed",
         std::pair("code", std::string(code_name(why.code()))), std::pair("why", why.message()));
}

}  // namespace backstay::strategy
