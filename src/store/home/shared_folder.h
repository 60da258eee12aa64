// Whether two hosts see the same folder under one name. Blocks on the file system.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace backstay::store {

struct FolderFacts {
  std::uint64_t inode = 0;
  std::uint64_t born_ns = 0;  // 0: the file system does not tell
  bool network = false;       // its file system is one that hosts share
};

// Errors: not_found, permission, io.
Result<FolderFacts> look_at_folder(const std::string& path);

// `here` and what another host has seen, whose word about its file system does not count.
bool same_folder(const FolderFacts& here, const FolderFacts& there);

// The path is on a file system that hosts share (docs/protocol/home.md has the list).
Result<bool> is_on_network(const std::string& path);

}  // namespace backstay::store
