// Calls that find names, give them and take them away.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>

#include "capture/mount/file_system.h"

namespace backstay::mount {

namespace {

using Affected = std::vector<std::shared_ptr<Node>>;

int errno_of(int result) { return result == 0 ? 0 : errno; }

void reply_entry(fuse_req_t request, fuse_ino_t folder, const char* name) {
  fuse_entry_param entry{};
  const int error = enter(file_system(request), folder, name, entry);
  error == 0 ? (void)fuse_reply_entry(request, &entry) : (void)fuse_reply_err(request, error);
}

void lookup(fuse_req_t request, fuse_ino_t folder, const char* name) {
  reply_entry(request, folder, name);
}

void forget(fuse_req_t request, fuse_ino_t ino, std::uint64_t lookups) {
  file_system(request).nodes.forget(reinterpret_cast<Node*>(ino), lookups);
  fuse_reply_none(request);
}

void forget_multi(fuse_req_t request, std::size_t count, fuse_forget_data* forgets) {
  for (std::size_t at = 0; at < count; ++at)
    file_system(request).nodes.forget(reinterpret_cast<Node*>(forgets[at].ino),
                                      forgets[at].nlookup);
  fuse_reply_none(request);
}

// A name as the folder's calls take it.
struct Name {
  FileSystem& fs;
  std::shared_ptr<Node> folder;
  const char* text;

  Name(FileSystem& of, fuse_ino_t in, const char* name) : fs(of), folder(of.node(in)), text(name) {}
  int at() const { return folder->place->get(); }

  // The node that has the name, where we know one; null: none, or no file that we have had.
  std::shared_ptr<Node> node() const {
    const Fd found(::openat(at(), text, O_PATH | O_NOFOLLOW | O_CLOEXEC));
    return found.valid() ? fs.nodes.find(found.get()) : nullptr;
  }
  bool is_folder() const {
    struct stat found = {};
    return ::fstatat(at(), text, &found, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(found.st_mode);
  }
};

// Below a folder any of the files that are on their way may lie.
void add_pending(FileSystem& fs, Affected& to) {
  for (const auto& node : fs.keeper.not_at_place())
    if (node->is(State::pending)) to.push_back(node);
}

// Its bytes have to be under the new name, whole, when it replaces a file there.
void add_moved(const Name& name, Affected& to) {
  if (name.is_folder()) return add_pending(name.fs, to);
  if (const auto node = name.node()) to.push_back(node);
}

void make_node(fuse_req_t request, fuse_ino_t folder, const char* name, mode_t mode, dev_t device) {
  if (is_hidden(name)) return (void)fuse_reply_err(request, EPERM);
  const int at = file_system(request).node(folder)->place->get();
  const int made =
      S_ISDIR(mode) ? ::mkdirat(at, name, mode & 07777) : ::mknodat(at, name, mode, device);
  if (made != 0) return (void)fuse_reply_err(request, errno);
  reply_entry(request, folder, name);
}

void mknod(fuse_req_t request, fuse_ino_t folder, const char* name, mode_t mode, dev_t device) {
  make_node(request, folder, name, mode, device);
}

void mkdir(fuse_req_t request, fuse_ino_t folder, const char* name, mode_t mode) {
  make_node(request, folder, name, S_IFDIR | mode, 0);
}

void symlink(fuse_req_t request, const char* text, fuse_ino_t folder, const char* name) {
  if (is_hidden(name)) return (void)fuse_reply_err(request, EPERM);
  if (::symlinkat(text, file_system(request).node(folder)->place->get(), name) != 0)
    return (void)fuse_reply_err(request, errno);
  reply_entry(request, folder, name);
}

void readlink(fuse_req_t request, fuse_ino_t ino) {
  std::array<char, PATH_MAX + 1> text{};
  const ssize_t bytes =
      ::readlinkat(file_system(request).node(ino)->place->get(), "", text.data(), text.size() - 1);
  if (bytes < 0) return (void)fuse_reply_err(request, errno);
  text[static_cast<std::size_t>(bytes)] = '\0';
  fuse_reply_readlink(request, text.data());
}

void unlink(fuse_req_t request, fuse_ino_t folder, const char* name) {
  FileSystem& fs = file_system(request);
  const Name taken(fs, folder, name);
  const int error = fs.keeper.with_names([&] { return if_pending(taken.node()); },
                                         [&] { return errno_of(::unlinkat(taken.at(), name, 0)); });
  fuse_reply_err(request, error);
}

void rmdir(fuse_req_t request, fuse_ino_t folder, const char* name) {
  const int at = file_system(request).node(folder)->place->get();
  fuse_reply_err(request, errno_of(::unlinkat(at, name, AT_REMOVEDIR)));
}

void rename(fuse_req_t request, fuse_ino_t from_folder, const char* from, fuse_ino_t to_folder,
            const char* to, unsigned flags) {
  if (is_hidden(to)) return (void)fuse_reply_err(request, EPERM);
  FileSystem& fs = file_system(request);
  const Name old_name(fs, from_folder, from);
  const Name new_name(fs, to_folder, to);
  const int error = fs.keeper.with_names(
      [&] {
        const bool exchanges = (flags & RENAME_EXCHANGE) != 0;
        Affected affected = exchanges ? Affected() : if_pending(new_name.node());
        add_moved(old_name, affected);
        if (exchanges) add_moved(new_name, affected);
        return affected;
      },
      [&] { return errno_of(::renameat2(old_name.at(), from, new_name.at(), to, flags)); });
  fuse_reply_err(request, error);
}

void link(fuse_req_t request, fuse_ino_t ino, fuse_ino_t folder, const char* name) {
  if (is_hidden(name)) return (void)fuse_reply_err(request, EPERM);
  FileSystem& fs = file_system(request);
  const auto node = fs.node(ino);
  const Name made(fs, folder, name);
  const int error =
      fs.keeper.with_names([&] { return if_pending(node); },
                           [&] {
                             return errno_of(::linkat(AT_FDCWD, link_to(node->at()).c_str(),
                                                      made.at(), name, AT_SYMLINK_FOLLOW));
                           });
  if (error != 0) return (void)fuse_reply_err(request, error);
  reply_entry(request, folder, name);
}

}  // namespace

void add_name_calls(fuse_lowlevel_ops& calls) {
  calls.lookup = lookup;
  calls.forget = forget;
  calls.forget_multi = forget_multi;
  calls.mknod = mknod;
  calls.mkdir = mkdir;
  calls.symlink = symlink;
  calls.readlink = readlink;
  calls.unlink = unlink;
  calls.rmdir = rmdir;
  calls.rename = rename;
  calls.link = link;
}

}  // namespace backstay::mount
