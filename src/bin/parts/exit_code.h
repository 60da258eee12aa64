// Exit codes are part of the interface (docs/guide/cli.md): append only.
#pragma once

#include "base/result.h"

namespace backstay::bin {

inline constexpr int exit_ok = 0;
inline constexpr int exit_failed = 1;
inline constexpr int exit_usage = 2;    // command line or configuration
inline constexpr int exit_nothing = 3;  // no such job, version or region
inline constexpr int exit_damaged = 4;
inline constexpr int exit_agent = 5;    // no agent answers
inline constexpr int exit_timeout = 6;  // the awaited level was not reached in time
// kept: the newest complete version, or one being written; or the job is busy.
inline constexpr int exit_refused = 7;
inline constexpr int exit_unreachable = 8;  // a host cannot be reached; `run` has started nothing
inline constexpr int exit_cannot_execute = 126;  // `run`, as a shell
inline constexpr int exit_no_program = 127;

int exit_code_of(Code code);

}  // namespace backstay::bin
