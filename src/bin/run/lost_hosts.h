// Captured files of hosts that are lost: `backstay run` brings them home out of the durable
// directory before it starts a program (docs/protocol/home.md#files-of-a-lost-host).
#pragma once

#include <string>

#include "base/config.h"
#include "bin/run/run_hosts.h"

namespace backstay::bin {

// Says what it brought and what it left. No error keeps the program from its start. `hosts`: null
// if the program runs on this host alone. Blocks on the durable directory, on the file systems of
// the files, and on the answers of the run's hosts.
void bring_files_of_lost_hosts(const Config& config, const std::string& job, const RunHosts* hosts,
                               const Say& say);

}  // namespace backstay::bin
