// A pending file becomes a version of the writers' job.
#pragma once

#include <functional>

#include "base/ids.h"
#include "base/result.h"
#include "capture/collector/pending_file.h"
#include "client/writer.h"

namespace backstay::files {

// Copies the bytes into the pool, hole by hole, and ends the version: when this returns it is
// captured. `begun`: called with its number once the agent knows it; an error gives it up. `go_on`:
// asked now and then; false: the version is given up (code again). Errors: those of the writer.
Result<VersionNumber> hand_in(client::Writer& writer, const PendingFile& file,
                              const std::function<Status(VersionNumber)>& begun,
                              const std::function<bool()>& go_on);

}  // namespace backstay::files
