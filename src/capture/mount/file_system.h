// The file system of a mount: libfuse's calls, each in the file of its kind. What each does:
// docs/protocol/mount.md.
//
// An answer to the kernel is the last thing that a call does with a handle or a listing, and no
// lock of theirs is held then: the program goes on and closes it, and another thread deletes it.
#pragma once

#include <fuse_lowlevel.h>

#include <memory>
#include <string>
#include <vector>

#include "capture/mount/keeper.h"
#include "capture/mount/nodes.h"

namespace backstay::mount {

struct FileSystem {
  Nodes& nodes;
  Keeper& keeper;
  const std::string target;    // the folder's path
  const std::string patterns;  // relative to it, one a line; "": all files are captured
  const bool write_back;       // the kernel keeps what is written and hands it over in large pieces

  // What has an inode number `ino` of libfuse.
  std::shared_ptr<Node> node(fuse_ino_t ino) const;
  bool captures(Node& node) const;
};

inline FileSystem& file_system(fuse_req_t request) {
  return *static_cast<FileSystem*>(fuse_req_userdata(request));
}
inline Handle& handle_of(const fuse_file_info& info) { return *reinterpret_cast<Handle*>(info.fh); }

// Temporary files of Backstay, beside files that come to their places.
bool is_hidden(const char* name);

// What programs see of a node: of its memory what it has there, of its place the rest. Returns an
// error number.
int look(Node& node, struct stat& found);
// Fills in what the kernel wants to know of a name, and counts a lookup. Returns an error number.
int enter(FileSystem& fs, fuse_ino_t folder, const char* name, fuse_entry_param& entry);
// The same for a file that is open as `found` (O_PATH).
int enter_found(FileSystem& fs, Fd found, fuse_entry_param& entry);
constexpr double kernel_keeps_s = 1.0;

// A file at its place, as a handle with these flags has it open. Null: errno says why.
SharedFd open_real(const FileSystem& fs, const SharedFd& place, int flags);
SharedFd real_of(const FileSystem& fs, Handle& handle);

// Blocks until the bytes of the node may be changed by who holds `lock` (shared): nothing moves it,
// and if it was pending it is at home. Returns an error number, and then `lock` is not held.
int lock_for_change(FileSystem& fs, const std::shared_ptr<Node>& node,
                    std::shared_lock<std::shared_mutex>& lock);
// This node alone, where it is pending; it may be null. For Keeper::with_names.
std::vector<std::shared_ptr<Node>> if_pending(const std::shared_ptr<Node>& node);
// Whether the user may do this (R_OK, W_OK) to the file; else errno says why not. The node's lock
// is held.
bool is_allowed(const Node& node, int mask);

// Each puts its calls into the table.
void add_name_calls(fuse_lowlevel_ops& calls);
void add_attribute_calls(fuse_lowlevel_ops& calls);
void add_open_calls(fuse_lowlevel_ops& calls);
void add_file_calls(fuse_lowlevel_ops& calls);
void add_folder_calls(fuse_lowlevel_ops& calls);

}  // namespace backstay::mount
