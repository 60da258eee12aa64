// Captured files of hosts that are lost: `backstay run` has them brought home out of their copies
// on other hosts before it starts a program (docs/protocol/home.md#after-the-loss).
#pragma once

#include <string>

#include "base/config.h"
#include "bin/run/run_hosts.h"

namespace backstay::bin {

// Says what was brought and what was left. No error keeps the program from its start. `hosts`: null
// if the program runs on this host alone; this asks no host then. Blocks on the answers of the
// hosts, of which each may bring many files.
void bring_kept_files(const Config& config, const std::string& job, const RunHosts* hosts,
                      const Say& say);

}  // namespace backstay::bin
