// What a job has for other agents, whatever the run: the thread for their disk work, and memory.
#pragma once

#include "agent/disk/peer_files.h"
#include "agent/memory/staging_buffers.h"

namespace backstay::agent {

struct PeerFileParts {
  PeerFileLink& peer_files;
  StagingBuffers& serving;  // what others read from us
  StagingBuffers& keeping;  // what we read from others, to keep it
};

}  // namespace backstay::agent
