// The words of src/store that every room of the agent uses.
#pragma once

#include "store/file_of.h"
#include "store/held_file.h"
#include "store/stored_version.h"

namespace backstay::agent {

using store::FileOf;
using store::HeldFile;
using store::StoredVersion;
using store::VersionInfo;
using store::VersionOfRun;

}  // namespace backstay::agent
