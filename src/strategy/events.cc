#include "strategy/events.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace backstay::strategy {

void Events::append(const char* event, const Fields& fields) const {
  if (!writes_) return;
  Fields line{{"event", event},
              {"t_ns", system_clock().wall_ns()},
              {"job", job_},
              {"run", fmt::format("{:016x}", run_)},
              {"node", 0}};
  line.update(fields);
  log_.append(line.dump(-1, ' ', false, Fields::error_handler_t::replace));
}

void Events::append(const char* event, Fields fields, const Error& why) const {
  fields["code"] = std::string(code_name(why.code()));
  fields["why"] = why.message();
  append(event, fields);
}

void Events::captured(VersionNumber version, const std::vector<RankReport>& ranks) const {
  if (!writes_) return;
  const auto seconds = [](std::uint64_t ns) { return static_cast<double>(ns) * 1e-9; };
  std::uint64_t bytes = 0;
  std::uint64_t begin_ns = UINT64_MAX;
  std::uint64_t end_ns = 0;
  Fields listed = Fields::array();
  for (const RankReport& rank : ranks) {
    bytes += rank.bytes;
    begin_ns = std::min(begin_ns, rank.begin_ns);
    end_ns = std::max({end_ns, rank.end_ns, begin_ns});
    listed.push_back({{"rank", listed.size()},
                      {"bytes", rank.bytes},
                      {"begin_ns", rank.begin_ns},
                      {"end_ns", rank.end_ns},
                      {"settle_s", seconds(rank.settle_ns)},
                      {"open_s", seconds(rank.open_ns)},
                      {"write_s", seconds(rank.write_ns)},
                      {"close_s", seconds(rank.close_ns)},
                      {"hand_over_s", seconds(rank.hand_over_ns)},
                      {"wait_s", seconds(rank.wait_ns)},
                      {"writes", rank.writes}});
  }
  append("captured", {{"version", version},
                      {"bytes", bytes},
                      {"seconds", seconds(end_ns - begin_ns)},
                      {"ranks", listed}});
}

}  // namespace backstay::strategy
