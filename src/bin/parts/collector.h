// The collector of captured files (docs/protocol/collector.md), for commands that start programs.
#pragma once

#include <functional>
#include <string>

#include "base/config.h"
#include "base/result.h"
#include "capture/collector/link.h"

namespace backstay::bin {

// Makes sure that the job's collector listens, and sets the variables by which the library in the
// programs finds it and starts it again. Blocks until what a collector before it has left is at its
// place, and says so on stderr. This process becomes the first one of a tree, which waits at its
// end. Nothing to do where capture.close is "home". `file` as find_config() has it; the variables
// of named_job.h are set. Errors: not_found (the program is missing), agent_lost, timeout,
// long_path, permission: the library then brings files to their places by itself.
Status set_up_collector(const Config& config, const std::string& file, const std::string& job);

// Blocks until all captured files of the job on this node are at their places. `tell`: lines for
// people; `go_on`: asked each second, false ends the wait. Errors: io (some are not; each was
// told), again (the wait was ended), and those of starting a collector.
Status settle_captured_files(const Config& config, const std::string& job,
                             const std::function<void(const std::string&)>& tell,
                             const std::function<bool()>& go_on);

// Asks what became of files that fit the job's patterns on this node, since the last question. The
// answer is empty if no collector lives.
files::Fates take_fates(const Config& config, const std::string& job);

}  // namespace backstay::bin
