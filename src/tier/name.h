// The rules for names in a tier.
#pragma once

#include <string_view>

#include "base/result.h"

namespace backstay::tier {

// At most 1024 characters; parts of 1 to 200 characters out of A-Z a-z 0-9 . _ - separated by "/".
// A part does not begin with "." and does not end in ".tmp": such names are the tier's own.
// Errors: invalid, naming what is wrong.
Status check_name(std::string_view name);

// The same, but "" is allowed and means everything.
Status check_prefix(std::string_view prefix);

// True for names that list() does not show.
bool is_own_name(std::string_view part);

}  // namespace backstay::tier
