// The identities that cross every interface, and what makes a job name acceptable.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace backstay {

using VersionNumber = std::uint64_t;  // a checkpoint's number in its job; 0 means "none"
using Rank = std::uint32_t;           // position in the job, 0 .. ranks-1
using NodeId = std::uint32_t;         // position of the node in the run, 0 .. nodes-1
using RunId = std::uint64_t;          // one start of a job; the same on all its ranks

// How safe a version is (docs/glossary.md). Ordered: a higher level includes the lower ones.
enum class Level : std::uint8_t { none = 0, captured = 1, local = 2, protected_ = 3, durable = 4 };
std::string_view level_name(Level level);

// All runs that one `backstay run` starts, the first one and its restarts, share the upper half of
// their ids. Runs that were started without it have an upper half of their own.
using Launch = std::uint32_t;
constexpr Launch launch_of(RunId run) { return static_cast<Launch>(run >> 32); }

// A job name becomes a directory name: 1 to 100 characters out of A-Z a-z 0-9 . _ - and it does
// not begin with a dot or a dash, nor end in ".tmp", as unfinished files do.
Status check_job_name(std::string_view name);

}  // namespace backstay
