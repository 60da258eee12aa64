// `backstay config --write`: a commented file to begin with, for this machine.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/config.h"
#include "base/result.h"
#include "bin/commands/checks.h"

namespace backstay::bin {

// What doctor and probe found, in the words of the file's comments.
struct MachineFacts {
  std::vector<Finding> findings;
  // Key of the configuration -> why its value fits here.
  std::vector<std::pair<std::string, std::string>> reasons;
};

// The settings of `config` that this machine asks to change are changed: writer.direct and
// writer.io_uring where the file system or the kernel has none. Takes milliseconds; the result of
// an earlier `backstay probe` is used where there is one.
MachineFacts look_at_machine(Config& config);

// The whole file: each key with its meaning. A key that has its default is a comment, so that a
// later release may choose better.
std::string first_config(const Config& config, const MachineFacts& facts);

// Errors: invalid (the file is there), permission, no_space, io; then no file is left.
Status write_new_file(const std::string& path, const std::string& text);

}  // namespace backstay::bin
