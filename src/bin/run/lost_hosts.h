// Captured files of hosts that are lost: `backstay run` brings them home out of the durable
// directory before it starts a program (docs/protocol/home.md#files-of-a-lost-host).
#pragma once

#include <optional>
#include <string>

#include "base/config.h"
#include "bin/run/run_hosts.h"

namespace backstay::bin {

// One job of captured files.
struct FilesOfHost {
  std::string job;
  std::string host;                        // as the job's name has it
  std::optional<std::string> in_use = {};  // as the launcher names it; none: not of this run
  bool here = false;                       // this host
};

// The files are those of `host`, as a launcher or this machine itself names it.
bool is_of_host(const FilesOfHost& one, const std::string& job, const std::string& host);

// A host of this run brings home by itself what is on its disk, and what is not there any more was
// at home. Only where its disk has nothing at all of the job, the disk was lost.
bool has_lost_its_disk(const Config& config, const FilesOfHost& one, const RunHosts* hosts);

// Says what it brought and what it left. No error keeps the program from its start. `hosts`: null
// if the program runs on this host alone. Blocks on the durable directory, on the file systems of
// the files, and on the answers of the run's hosts.
void bring_files_of_lost_hosts(const Config& config, const std::string& job, const RunHosts* hosts,
                               const Say& say);

}  // namespace backstay::bin
