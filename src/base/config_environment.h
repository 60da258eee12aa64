// The environment's part of the configuration; unknown_variables() (config.h) is there too.
#pragma once

#include <string>
#include <string_view>

#include "base/config.h"
#include "base/result.h"

namespace backstay {

// "storage.dir": BACKSTAY_STORAGE_DIR.
std::string environment_name(std::string_view key);

// Puts the values of our variables into their slots. Errors: config (also: a variable that begins
// as ours do and is most likely one of ours, mistyped).
Status put_environment(Config& config);

}  // namespace backstay
