// What `backstay doctor` looks at. Each check says what it found and, if that is not good, what to do.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/config.h"

namespace backstay::bin {

enum class Health { good, note, bad };        // note: works, but could be better
std::string_view health_name(Health health);  // "ok", "note", "fail"

struct Finding {
  std::string name;
  Health health = Health::good;
  std::string found;
  std::string advice;  // empty where nothing is to be done
};

// The checks that do not measure. Take milliseconds; leave nothing behind.
std::vector<Finding> check_machine(const Config& config);

// Writes and reads `mib` MiB in the storage folder.
Finding check_disk_speed(const Config& config, unsigned mib);

}  // namespace backstay::bin
