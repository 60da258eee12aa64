#include "agent/version/unprotected.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/log.h"

namespace backstay::agent {

bool is_overtaken(const JobState& state, VersionNumber version, Code code) {
  const bool gone = code == Code::not_found || code == Code::again || code == Code::busy;
  const auto& rows = state.versions.rows();
  return gone && std::any_of(rows.upper_bound(version), rows.end(),
                             [](const auto& entry) { return entry.second.disk.has_value(); });
}

void record_unprotected(const JobState& state, VersionNumber version, NodeId of, const Error& why,
                        bool overtaken) {
  nlohmann::json fields = {{"version", version}, {"of", of}, {"why", why.message()}};
  if (overtaken) {
    spdlog::info("version is overtaken before it was protected job={} version={} node={}: {}",
                 state.name, version, of, why.message());
    return state.record("overtaken", std::move(fields));
  }
  spdlog::error("version is not protected job={} version={} node={}: {}", state.name, version, of,
                why.message());
  fields["code"] = code_name(why.code());
  state.record("protect_failed", std::move(fields));
}

}  // namespace backstay::agent
