// A process's place in its job, by its launcher's variables (docs/protocol/meeting.md). No I/O.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace backstay::meet {

enum class Launcher { openmpi, mpich, slurm };

std::string_view launcher_name(Launcher launcher);  // "openmpi", "mpich", "slurm"
std::optional<Launcher> launcher_of(std::string_view name);

struct Place {
  std::uint32_t rank = 0;
  std::uint32_t ranks = 0;
};

// As getenv(): null for one that is not set.
using Variables = std::function<const char*(const char* name)>;

// Errors: invalid (a variable is missing or no number, or they do not fit; names them).
Result<Place> place_by(Launcher launcher, const Variables& variables);

}  // namespace backstay::meet
