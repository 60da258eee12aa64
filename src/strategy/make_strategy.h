// The strategies by name: rows of a table.
#pragma once

#include <memory>

#include "strategy/strategy.h"

namespace backstay::strategy {

// The one that strategy.name asks for. Errors, the same on all ranks: config
// (files or groups that do not fit the ranks), unsupported (it needs the launcher's MPI).
Result<std::unique_ptr<Strategy>> make_strategy(const Ranks& ranks);

}  // namespace backstay::strategy
