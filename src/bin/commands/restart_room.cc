#include "bin/commands/restart_room.h"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "bin/parts/print.h"

namespace backstay::bin {

std::optional<RestartRoom> restart_room(const std::string& dir, std::uint64_t needed_bytes) {
  struct statvfs disk {};
  if (::statvfs(dir.c_str(), &disk) != 0) return std::nullopt;
  return RestartRoom{needed_bytes, std::uint64_t{disk.f_bavail} * disk.f_frsize};
}

std::optional<RestartRoom> restart_room_now(const std::string& dir, const std::string& job) {
  namespace fs = std::filesystem;
  std::uint64_t bytes = 0;
  std::error_code failure;
  fs::directory_iterator files(dir + "/" + job + "/files", failure);
  for (; !failure && files != fs::directory_iterator(); files.increment(failure)) {
    std::error_code gone;
    if (!files->is_regular_file(gone)) continue;
    const std::uintmax_t size = files->file_size(gone);
    if (!gone) bytes += size;
  }
  return restart_room(dir, bytes);
}

std::string warning(const std::optional<RestartRoom>& room, const std::string& dir) {
  if (!room || room->enough()) return "";
  return fmt::format(
      "a restart on this node would fail: its routed files need {} beside those that are there, "
      "and the disk of {} has {} free; make room",
      bytes_text(room->needed_bytes), dir, bytes_text(room->free_bytes));
}

nlohmann::ordered_json room_json(const std::optional<RestartRoom>& room) {
  if (!room) return nullptr;
  return {{"needed_bytes", room->needed_bytes}, {"free_bytes", room->free_bytes}};
}

}  // namespace backstay::bin
