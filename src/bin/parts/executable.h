// What the kernel and the dynamic loader make of a program's file: why it cannot be executed, and
// why a library cannot be loaded into it (LD_PRELOAD). Blocks on the file system; any thread.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace backstay::bin {

// The file that execvp() would execute for `name`. Errors: not_found, permission (it is there, and
// is no program that we may execute).
Result<std::string> resolve_program(const std::string& name);

// Why execve() of `path` has failed with `sys_errno`, in words for a person.
std::string why_not_executed(const std::string& path, int sys_errno);

// Looks at the program that `words` start (the first one is its file, as resolve_program() has it),
// at the interpreters behind "#!", and at the program behind env, nice and the like.
// Errors: permission (the loader would load no library into one of them, or an interpreter is
// missing; names it, says why and what works in place of that).
Status check_takes_library(const std::vector<std::string>& words);

}  // namespace backstay::bin
