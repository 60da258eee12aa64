// The result of `backstay probe` on this machine, kept for later commands.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"

namespace backstay::bin {

// $XDG_CACHE_HOME/backstay/probe.json, else ~/.cache/backstay/probe.json.
std::string probe_path();
// Before a long measurement: makes the folder. Errors: permission, io (say what to set).
Status prepare_probe();

// Errors: not_found (never measured), format.
Result<nlohmann::ordered_json> read_probe();

// Replaces the file as a whole.
Status write_probe(const nlohmann::ordered_json& document);

// Bytes a second that the disk under `dir` took, 0 if that was not measured.
double probed_disk_write(const std::string& dir);

}  // namespace backstay::bin
