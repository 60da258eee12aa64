// The captured files of a job over all its versions, and which of them are not at their own paths
// yet (docs/protocol/home.md).
#pragma once

#include <string>

#include "base/result.h"
#include "bin/parts/stored.h"

namespace backstay::bin {

// Of the job, and of the jobs of its captured files on each host (`JOB.files.HOST`). Prints them;
// returns the exit code. Errors: not_found (no such job), io.
Result<int> list_files(Stored& stored, const std::string& job, bool json);

}  // namespace backstay::bin
