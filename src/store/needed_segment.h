// A segment that chunks of a newer version lie in, opened and held against what it should be
// (docs/format/manifest.md, "Chunks in older versions"). Blocks on the tier.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "store/file_of.h"
#include "tier/tier.h"

namespace backstay::store {

// Its header, read and held against what it should be. Errors: corrupt (says what is wrong), io.
Status check_header(tier::Reader& reader, const std::string& job, const FileOf& segment);

// Errors: corrupt, which names its version, also where it is missing; io.
Result<std::unique_ptr<tier::Reader>> open_needed(tier::Tier& tier, const std::string& job,
                                                  const FileOf& segment);

}  // namespace backstay::store
