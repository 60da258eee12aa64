#include "agent/server/socket_path_watch.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/folders.h"
#include "base/log.h"

namespace backstay::agent {

SocketPathWatch::SocketPathWatch(const std::string& path)
    : folder_(parent_of(path)), events_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
  renew();
}

void SocketPathWatch::renew() {
  constexpr std::uint32_t ways_to_go =
      IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
  if (events_.valid() && ::inotify_add_watch(events_.get(), folder_.c_str(), ways_to_go) >= 0) {
    return;
  }
  spdlog::warn("cannot watch {}: {}; if the socket is removed, nobody finds this agent", folder_,
               std::strerror(errno));
}

void SocketPathWatch::take_news() {
  alignas(inotify_event) std::array<char, 4096> news{};
  while (::read(events_.get(), news.data(), news.size()) > 0) {
  }
}

}  // namespace backstay::agent
