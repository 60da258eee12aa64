// A file, folder or link of the target, as the kernel knows it through the mount.
//
//     at_place ──opened and emptied, or created──> in_memory ──closed──> pending ──at home──>
//     at_place
//                                                      └── made real, or too small: at_place
//
// While `moving` is set one thread takes the node from one state to another, with the lock
// released: its bytes do not change meanwhile, and those in memory can be read.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <utility>

#include "base/fd.h"

namespace backstay::mount {

using Key = std::pair<std::uint64_t, std::uint64_t>;  // device, inode
using SharedFd = std::shared_ptr<const Fd>;

enum class State { at_place, in_memory, pending };

struct Handle;

struct Node {
  // The inode number that programs see: that of the first inode, which `anchor` keeps from being
  // given to another file. A file that is brought home gets another inode in the target.
  std::uint64_t number = 0;
  SharedFd anchor;

  // --- of the table (nodes.h), under its lock
  Key key;
  std::uint64_t lookups = 0;  // that the kernel has not forgotten
  unsigned pins = 0;

  // --- under `lock`: shared to read and write bytes, alone to change what is below
  std::shared_mutex lock;
  std::condition_variable_any changed;  // state, or moving
  State state = State::at_place;
  bool moving = false;
  SharedFd place;  // O_PATH
  std::list<Handle*> handles;
  SharedFd at() {
    const std::shared_lock shared(lock);
    return place;
  }
  bool is(State asked) {
    const std::shared_lock shared(lock);
    return state == asked;
  }

  // --- not at_place: the bytes, and the placeholder, open for writing
  Fd memory;
  Fd target;
  std::uint64_t synced = 0;  // the version of its last fsync (docs/protocol/collector.md); 0: none
  Fd hold;                   // of that version
  struct stat opened = {};   // of the placeholder, when the file was opened
  bool closed_by_one = false;              // a program has closed it well while another had it open
  std::atomic<std::uint64_t> counted = 0;  // bytes of memory that the keeper has counted

  // It has one name, at which another inode will stand, or does so already.
  std::atomic<bool> on_its_way = false;

  // --- pending
  std::string path;  // in the target
  Key placeholder;
};

// One open of a file.
struct Handle {
  Handle(std::shared_ptr<Node> of, int open_flags, pid_t by)
      : node(std::move(of)), flags(open_flags), opener(by) {}

  const std::shared_ptr<Node> node;
  const int flags;
  const pid_t opener;
  std::atomic<bool> closing = false;  // no descriptor leads here any more, as far as we can see

  bool writes() const { return (flags & O_ACCMODE) != O_RDONLY; }

  std::mutex mutex;
  SharedFd real;  // of the file at its place; null: not open
};

}  // namespace backstay::mount
