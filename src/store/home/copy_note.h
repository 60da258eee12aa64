// The note beside a copy of another host's captured files (docs/format/home.md). The text is bytes
// to structs and back; reading and writing block on the tier.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/ids.h"
#include "store/home/shared_folder.h"
#include "tier/tier.h"

namespace backstay::store {

struct CopyNote {
  std::string host;                            // as `backstay run` reaches it
  std::map<std::string, FolderFacts> folders;  // of the files, as that host has seen them
};

// Errors: format.
Result<CopyNote> decode_note(Bytes bytes);
Buffer encode(const CopyNote& note);

// None: the version is no copy. Errors: of the tier; format.
Result<std::optional<CopyNote>> read_note(tier::Tier& tier, const std::string& job,
                                          VersionNumber version);
// Safe on return.
Status write_note(tier::Tier& tier, const std::string& job, VersionNumber version,
                  const CopyNote& note);

}  // namespace backstay::store
