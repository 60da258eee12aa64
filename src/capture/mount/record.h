// What a mount's daemon notes about itself beside the agent's socket, for `backstay unmount` and
// `backstay doctor`: a file that the daemon holds locked while it lives.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace backstay::mount {

struct Record {
  int pid = 0;
  std::string job;
  std::string folder;  // where it is mounted
  std::string target;
  std::string store;  // the folder of the versions; "": not known
};

// `folder`: that of the agent's socket.
std::string record_path(const std::string& folder, const std::string& mounted_at);

// Writes it and locks it. The lock holds as long as the descriptor is open. Errors: busy (a daemon
// of this folder lives), io, permission.
Result<Fd> write_record(const std::string& path, const Record& record);
// Errors: not_found, format.
Result<Record> read_record(const std::string& path);
// Its folder is unmounted: tells the daemon so, and blocks until that has ended. The kernel tells
// it by itself only where no other mount namespace (a container that was started meanwhile) has the
// mount, too. False: it still lives after `timeout_s`. True where there is no record.
bool end_daemon(const std::string& path, double timeout_s);

}  // namespace backstay::mount
