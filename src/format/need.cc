#include "format/need.h"

#include <algorithm>

namespace backstay::format {

std::string_view wrong_with_needs(std::span<const Need> needs, VersionNumber of) {
  if (needs.size() > needs_max) return "number of needed versions";
  VersionNumber before = 0;
  for (const Need& need : needs) {
    if (need.version <= before) return "needed versions are not sorted, or one is there twice";
    if (need.version >= of) return "needs a version that is not older";
    before = need.version;
  }
  return {};
}

std::vector<Need> both_needs(std::span<const Need> a, std::span<const Need> b) {
  std::vector<Need> both(a.begin(), a.end());
  both.insert(both.end(), b.begin(), b.end());
  std::ranges::sort(both, {}, &Need::version);
  const auto same = [](const Need& x, const Need& y) { return x.version == y.version; };
  both.erase(std::unique(both.begin(), both.end(), same), both.end());
  return both;
}

}  // namespace backstay::format
