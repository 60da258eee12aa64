#include "capture/mount/file_system.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "capture/files/pattern.h"

namespace backstay::mount {

std::shared_ptr<Node> FileSystem::node(fuse_ino_t ino) const {
  if (ino == FUSE_ROOT_ID) return nodes.root();
  return nodes.of(reinterpret_cast<const Node*>(ino));
}

bool FileSystem::captures(Node& node) const {
  if (patterns.empty()) return true;
  const std::string path = path_of(node.at()->get());
  if (!path.starts_with(target + "/")) return false;
  return files::matches_any(patterns, std::string_view(path).substr(target.size() + 1));
}

bool is_hidden(const char* name) {
  constexpr const char* begin = ".backstay-";
  return std::strncmp(name, begin, std::strlen(begin)) == 0;
}

int look(Node& node, struct stat& found) {
  const std::shared_lock shared(node.lock);
  if (::fstat(node.place->get(), &found) != 0) return errno;
  found.st_ino = node.number;
  if (found.st_nlink == 0 && node.on_its_way) found.st_nlink = 1;
  struct stat memory = {};
  if (!node.memory.valid()) return 0;
  if (::fstat(node.memory.get(), &memory) != 0) return errno;
  found.st_size = memory.st_size;
  found.st_blocks = memory.st_blocks;
  found.st_atim = memory.st_atim;
  found.st_mtim = memory.st_mtim;
  const auto later = [](const timespec& a, const timespec& b) {
    return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
  };
  if (later(memory.st_ctim, found.st_ctim)) found.st_ctim = memory.st_ctim;
  return 0;
}

int enter_found(FileSystem& fs, Fd found, fuse_entry_param& entry) {
  const auto node = fs.nodes.look_up(std::move(found));
  if (!node.ok()) return node.error().sys_errno();
  entry = {};
  entry.ino = reinterpret_cast<fuse_ino_t>(node->get());
  entry.attr_timeout = kernel_keeps_s;
  entry.entry_timeout = kernel_keeps_s;
  const int error = look(**node, entry.attr);
  if (error != 0) fs.nodes.forget(node->get(), 1);
  return error;
}

int enter(FileSystem& fs, fuse_ino_t folder, const char* name, fuse_entry_param& entry) {
  if (is_hidden(name)) return ENOENT;
  Fd found(::openat(fs.node(folder)->place->get(), name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!found.valid()) return errno;
  return enter_found(fs, std::move(found), entry);
}

// The kernel gathers what is written in pages, and may have to read the rest of a page; where the
// append goes it knows itself.
SharedFd open_real(const FileSystem& fs, const SharedFd& place, int flags) {
  constexpr int dropped = O_CREAT | O_EXCL | O_NOFOLLOW | O_APPEND | O_DIRECT | O_NONBLOCK;
  int wanted = (flags & ~dropped) | O_CLOEXEC;
  const std::string link = link_to(place);
  if (fs.write_back && (flags & O_ACCMODE) == O_WRONLY) {
    const int both = ::open(link.c_str(), (wanted & ~O_ACCMODE) | O_RDWR);
    if (both >= 0) return std::make_shared<const Fd>(both);
  }
  const int one = ::open(link.c_str(), wanted);
  return one < 0 ? nullptr : std::make_shared<const Fd>(one);
}

// Precondition: the node's lock is held, and it is at its place.
SharedFd real_of(const FileSystem& fs, Handle& handle) {
  const std::lock_guard guard(handle.mutex);
  if (handle.real == nullptr)
    handle.real = open_real(fs, handle.node->place, handle.flags & ~O_TRUNC);
  return handle.real;
}

int lock_for_change(FileSystem& fs, const std::shared_ptr<Node>& node,
                    std::shared_lock<std::shared_mutex>& lock) {
  lock = std::shared_lock(node->lock);
  for (;;) {
    node->changed.wait(lock, [&] { return !node->moving; });
    if (node->state != State::pending) return 0;
    lock.unlock();
    if (const int error = fs.keeper.make_real(node, false)) return error;
    lock.lock();
  }
}

std::vector<std::shared_ptr<Node>> if_pending(const std::shared_ptr<Node>& node) {
  if (node == nullptr || !node->is(State::pending)) return {};
  return {node};
}

bool is_allowed(const Node& node, int mask) {
  return ::faccessat(AT_FDCWD, link_to(node.place).c_str(), mask, AT_EACCESS) == 0;
}

}  // namespace backstay::mount
