// Whether a node's disk has room for a restart: routed files come back beside those that are there.
// Blocks on the disk. Any thread.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace backstay::bin {

struct RestartRoom {
  std::uint64_t needed_bytes = 0;
  std::uint64_t free_bytes = 0;
  bool enough() const { return needed_bytes <= free_bytes; }
};

// For files of `needed_bytes` below `dir`. nullopt if the disk does not say what is free.
std::optional<RestartRoom> restart_room(const std::string& dir, std::uint64_t needed_bytes);

// For the files that the job has there now: the next version saves them.
std::optional<RestartRoom> restart_room_now(const std::string& dir, const std::string& job);

// Empty if there is enough.
std::string warning(const std::optional<RestartRoom>& room, const std::string& dir);

// null if it is not known.
nlohmann::ordered_json room_json(const std::optional<RestartRoom>& room);

}  // namespace backstay::bin
