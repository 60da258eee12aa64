// Opening, creating and closing files: where they come into memory, and where they leave it.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/log.h"
#include "capture/files/counts.h"
#include "capture/files/rules.h"
#include "capture/mount/file_system.h"
#include "capture/mount/holders.h"

namespace backstay::mount {

namespace {

int mask_of(int flags) {
  const int access = flags & O_ACCMODE;
  return (access != O_WRONLY ? R_OK : 0) | (access != O_RDONLY ? W_OK : 0);
}

// The kernel's own pages of the file stay good while it is changed through it alone.
void let_kernel_keep(fuse_file_info& info, Handle& handle) {
  const std::shared_lock shared(handle.node->lock);
  info.keep_cache = handle.node->state != State::at_place;
  // Pages of a file that may not be read cannot be filled.
  const std::lock_guard guard(handle.mutex);
  const bool blind = handle.real != nullptr && handle.writes() &&
                     (::fcntl(handle.real->get(), F_GETFL) & O_ACCMODE) == O_WRONLY;
  if (blind) info.direct_io = 1;
  if ((handle.flags & O_DIRECT) != 0) info.direct_io = 1;
}

void add(Node& node, Handle& handle) {
  const std::unique_lock alone(node.lock);
  node.handles.push_back(&handle);
}

bool is_open_otherwise(Node& node) {
  const std::shared_lock shared(node.lock);
  return std::ranges::any_of(
      node.handles, [](const Handle* handle) { return handle->writes() && !handle->closing; });
}

// An open ends; no program waits for it any more.
void remove(FileSystem& fs, Handle& handle) {
  const auto& node = handle.node;
  bool is_last = false;
  {
    const std::unique_lock alone(node->lock);
    node->handles.remove(&handle);
    is_last = node->handles.empty();
  }
  if (handle.writes() && node->is(State::in_memory) && !is_open_otherwise(*node)) {
    const int error = fs.keeper.hand_in(node);
    if (error != 0)
      spdlog::error("a file is lost file={} errno={}", path_of(node->at()->get()), error);
  }
  if (is_last) fs.keeper.drop_unnamed(node);
}

// The file is at its place, and open there as `real`: into memory with it, where that is allowed.
// False: it stays where it is.
bool try_capture(FileSystem& fs, Handle& handle, SharedFd& real, bool fresh) {
  const auto& node = handle.node;
  if (!handle.writes() || !files::flags_allow(handle.flags | O_CREAT) || !fs.captures(*node))
    return false;
  const files::CountedWait waits(files::Waited::open);
  Fd target(::fcntl(real->get(), F_DUPFD_CLOEXEC, 3));
  real.reset();
  if (!target.valid()) return false;
  return fs.keeper.begin(node, std::move(target), handle.flags, fresh);
}

// Joins the others that have the file in memory. Returns an error number, EAGAIN: it is there no
// more.
int join(Handle& handle) {
  Node& node = *handle.node;
  std::shared_lock shared(node.lock);
  const bool changes = handle.writes() || (handle.flags & O_TRUNC) != 0;
  node.changed.wait(shared, [&] { return !node.moving || !changes; });
  if (node.state == State::at_place || (node.state == State::pending && changes)) return EAGAIN;
  if (!is_allowed(node, mask_of(handle.flags))) return errno;
  if ((handle.flags & O_TRUNC) != 0 && ::ftruncate(node.memory.get(), 0) != 0) return errno;
  return 0;
}

// Opens natively, without truncating, and then either captures or truncates.
int open_at_place(FileSystem& fs, Handle& handle) {
  const int flags = handle.flags;
  const bool by_capture = handle.writes() && (flags & O_TRUNC) != 0;
  SharedFd real = open_real(fs, handle.node->at(), by_capture ? flags & ~O_TRUNC : flags);
  if (real == nullptr) return errno;
  if (try_capture(fs, handle, real, false)) return 0;
  if (real == nullptr) real = open_real(fs, handle.node->at(), flags & ~O_TRUNC);
  if (real == nullptr) return errno;
  if (by_capture && ::ftruncate(real->get(), 0) != 0) return errno;
  const std::lock_guard guard(handle.mutex);
  handle.real = std::move(real);
  return 0;
}

// O_SYNC, O_DIRECT: what is written has to be at its place when the call returns.
bool wants_place(int flags) { return (flags & (O_SYNC | O_DSYNC)) != 0; }

int open_somehow(FileSystem& fs, Handle& handle) {
  for (;;) {
    const auto& node = handle.node;
    const bool changes = handle.writes() || (handle.flags & O_TRUNC) != 0;
    bool settles = false;
    {
      std::shared_lock shared(node->lock);
      node->changed.wait(shared, [&] { return !node->moving || !changes; });
      if (node->state == State::at_place) {
        shared.unlock();
        return open_at_place(fs, handle);
      }
      settles = changes && (node->state == State::pending || wants_place(handle.flags));
    }
    int error = settles ? fs.keeper.make_real(node, false) : join(handle);
    if (settles && error == 0) continue;
    if (error != EAGAIN) return error;
  }
}

void open(fuse_req_t request, fuse_ino_t ino, fuse_file_info* info) {
  FileSystem& fs = file_system(request);
  auto handle = std::make_unique<Handle>(fs.node(ino), info->flags, fuse_req_ctx(request)->pid);
  Node& node = *handle->node;
  add(node, *handle);
  if (const int error = open_somehow(fs, *handle)) {
    remove(fs, *handle);
    return (void)fuse_reply_err(request, error);
  }
  let_kernel_keep(*info, *handle);
  info->fh = reinterpret_cast<std::uint64_t>(handle.get());
  // The program was interrupted: no release will come.
  if (fuse_reply_open(request, info) == -ENOENT) return remove(fs, *handle);
  (void)handle.release();
}

// The file was just made, and is open as `made`.
int begin_created(FileSystem& fs, Handle& handle, Fd made) {
  SharedFd real = std::make_shared<const Fd>(std::move(made));
  const SharedFd kept = real;
  if (try_capture(fs, handle, real, true)) return 0;
  const std::lock_guard guard(handle.mutex);
  handle.real = kept;
  return 0;
}

void reply_created(fuse_req_t request, std::unique_ptr<Handle> handle, fuse_entry_param& entry,
                   fuse_file_info& info) {
  FileSystem& fs = file_system(request);
  Node& node = *handle->node;
  let_kernel_keep(info, *handle);
  info.fh = reinterpret_cast<std::uint64_t>(handle.get());
  if (fuse_reply_create(request, &entry, &info) == -ENOENT) {
    remove(fs, *handle);
    fs.nodes.forget(&node, 1);
    return;
  }
  (void)handle.release();
}

void create(fuse_req_t request, fuse_ino_t folder, const char* name, mode_t mode,
            fuse_file_info* info) {
  FileSystem& fs = file_system(request);
  if (is_hidden(name)) return (void)fuse_reply_err(request, EPERM);
  const int at = fs.node(folder)->place->get();
  const int access = (info->flags & O_ACCMODE) == O_RDONLY ? O_RDONLY : O_RDWR;
  Fd made(::openat(at, name, access | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  const bool fresh = made.valid();
  if (!fresh && (errno != EEXIST || (info->flags & O_EXCL) != 0))
    return (void)fuse_reply_err(request, errno);
  fuse_entry_param entry{};
  if (const int error = enter(fs, folder, name, entry)) return (void)fuse_reply_err(request, error);
  const auto node = fs.node(entry.ino);
  auto handle = std::make_unique<Handle>(node, info->flags, fuse_req_ctx(request)->pid);
  add(*node, *handle);
  const int error = fresh ? begin_created(fs, *handle, std::move(made)) : open_somehow(fs, *handle);
  if (error != 0) {
    remove(fs, *handle);
    fs.nodes.forget(node.get(), 1);
    return (void)fuse_reply_err(request, error);
  }
  reply_created(request, std::move(handle), entry, *info);
}

// --- closing -------------------------------------------------------------------------------------

// Every descriptor of a file is closed by itself. Only /proc tells whether this was the last one.
bool is_held(const Handle& handle, pid_t closer) {
  return holds_for_writing(closer, handle.node->number) ||
         (handle.opener != closer && holds_for_writing(handle.opener, handle.node->number));
}

void flush(fuse_req_t request, fuse_ino_t ino, fuse_file_info* info) {
  FileSystem& fs = file_system(request);
  Handle& handle = handle_of(*info);
  const auto node = fs.node(ino);
  const pid_t closer = fuse_req_ctx(request)->pid;
  if (!handle.writes() || !node->is(State::in_memory) || is_held(handle, closer))
    return (void)fuse_reply_err(request, 0);
  handle.closing = true;
  const bool killed = dies_by_signal(closer);
  if (is_open_otherwise(*node)) {
    const std::unique_lock alone(node->lock);
    node->closed_by_one = node->closed_by_one || !killed;
    return (void)fuse_reply_err(request, 0);
  }
  if (killed && !node->closed_by_one) {
    fs.keeper.drop(node);
    return (void)fuse_reply_err(request, 0);
  }
  fuse_reply_err(request, fs.keeper.hand_in(node));
}

void release(fuse_req_t request, fuse_ino_t, fuse_file_info* info) {
  const std::unique_ptr<Handle> handle(&handle_of(*info));
  remove(file_system(request), *handle);
  fuse_reply_err(request, 0);
}

}  // namespace

void add_open_calls(fuse_lowlevel_ops& calls) {
  calls.open = open;
  calls.create = create;
  calls.flush = flush;
  calls.release = release;
}

}  // namespace backstay::mount
