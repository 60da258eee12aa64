// Starting the daemon of a mount (docs/protocol/mount.md), for `backstay mount`.
#pragma once

#include <string>

#include "base/config.h"
#include "base/result.h"
#include "capture/mount/record.h"

namespace backstay::bin {

struct MountPlan {
  std::string folder;  // both absolute, and checked
  std::string target;
  std::string job;
  std::string patterns;  // relative to the folder, one a line; "": all files
};

// The daemon's program. Errors: unsupported (this build has none: says what to install).
Result<std::string> find_mount_program();

// Where the daemon notes that it lives.
std::string mount_record(const Config& config, const std::string& folder);

// Starts the daemon as the agent is started, and blocks until the mount answers. The variables of
// named_job.h are set. Errors: agent_lost (it has ended; its words), timeout.
Status start_mount(const Config& config, const std::string& file, const MountPlan& plan);

// It is unmounted: blocks until its daemon has ended; false: it still lives after `timeout_s`.
bool end_mount_daemon(const Config& config, const std::string& folder, double timeout_s);
// What the daemon has noted. Errors: not_found, format.
Result<mount::Record> record_of_mount(const Config& config, const std::string& folder);
// Sets the variables by which a collector of the mount's job can be started: where its daemon was
// killed, the collector may have ended too. `file` as find_config() has it.
void set_collector_variables(const Config& config, const std::string& file,
                             const mount::Record& record);
// What a daemon that was killed has left.
void remove_mount_record(const Config& config, const std::string& folder);

}  // namespace backstay::bin
