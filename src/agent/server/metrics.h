// What the agent measures, as text for Prometheus (docs/guide/metrics.md lists it).
#pragma once

#include <string>

#include "agent/server/status.h"

namespace backstay::agent {

std::string to_metrics(const StatusInput& input);

}  // namespace backstay::agent
