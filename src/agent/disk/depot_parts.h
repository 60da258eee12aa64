// What a job has for other agents, whatever the run: the thread for their disk work, and memory.
#pragma once

#include "agent/disk/depot.h"
#include "agent/memory/depot_buffers.h"

namespace backstay::agent {

struct DepotParts {
  DepotLink& depot;
  DepotBuffers& serving;  // what others read from us
  DepotBuffers& keeping;  // what we read from others, to keep it
};

}  // namespace backstay::agent
