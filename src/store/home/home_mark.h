// The home mark of a version as it lies in a tier (docs/format/home.md). Blocks on the tier.
#pragma once

#include <optional>
#include <string>

#include "base/ids.h"
#include "base/result.h"
#include "format/commit.h"
#include "format/home_mark.h"
#include "tier/tier.h"

namespace backstay::store {

// None: no file was marked; or what lies there is damaged or of another version, and `why_not` (may
// be null) says so. Errors: of the tier.
Result<std::optional<format::HomeMark>> read_home_mark(tier::Tier& tier,
                                                       const format::CommitRecord& record,
                                                       NodeId node, std::string* why_not = nullptr);

// Safe on return. Errors: of the tier.
Status write_home_mark(tier::Tier& tier, const format::HomeMark& mark);

}  // namespace backstay::store
