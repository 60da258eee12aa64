// `backstay agent give-copies|keep-copies|copies|bring-copies`: what `backstay run` starts on the
// hosts of a job for copies of captured files (docs/protocol/home.md#copies-on-another-host).
#pragma once

#include <string>
#include <vector>

#include "base/config.h"
#include "base/result.h"

namespace backstay::bin {

// An exit code. The first two use standard input and output as the line, and block until it ends.
Result<int> give_copies(const Config& config, const std::string& job);
// `host`: the name by which `backstay run` reaches the one at the other end. Each round is
// told by a line of JSON on standard error, while there is room for it.
Result<int> keep_copies(const Config& config, const std::string& host);
// Prints the copies of other hosts' files here that have something to bring.
Result<int> list_copies(const Config& config, const std::string& job);
// Brings home the files of these jobs of captured files, and prints what came of each. `of`:
// JOB=VERSION; another host has brought what it has of the job up to that version, 0: none has.
Result<int> bring_copies(const Config& config, const std::string& job,
                         const std::vector<std::string>& of);

}  // namespace backstay::bin
