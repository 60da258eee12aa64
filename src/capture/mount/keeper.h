// The life of a captured file's bytes in the mount (docs/protocol/mount.md): begun in memory,
// handed to the job's collector when the file is closed, served from memory until it is at home.
//
// Functions return error numbers of errno, 0 for success, and block: on memory, on the collector,
// or until a file is at its place. Any thread, none with a node's lock held.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

#include "capture/collector/link.h"
#include "capture/mount/nodes.h"

namespace backstay::mount {

struct KeeperSettings {
  std::string collector;  // its socket; "": each file is brought to its place when closed
  std::string collector_program;
  std::uint64_t pool_bytes_min = 256 << 10;  // smaller files go to their places directly
  files::Until until = files::Until::captured;
  bool sync_local = true;  // else fsync brings a file to its place
  std::uint64_t memory_bytes_max = 0;
};

class Keeper {
 public:
  // `stale`: the kernel has bytes of this file which are lost; called by a thread of the keeper.
  Keeper(Nodes& nodes, KeeperSettings settings, std::function<void(const std::string&)> stale);
  ~Keeper();
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  // From now on the bytes of the file are in memory, and there are none. `target`: the file at its
  // place, open for writing, without having been truncated; `flags`: of open. False: this file
  // must not be captured.
  bool begin(const std::shared_ptr<Node>& node, Fd target, int flags, bool fresh);
  // It was closed: captured, or at its place. The error is what close returns.
  int hand_in(const std::shared_ptr<Node>& node);
  // Its bytes are at its place, and synced there if asked. Nothing to do where they are there.
  int make_real(const std::shared_ptr<Node>& node, bool sync);
  // What was written so far survives a power cut: it is local, or at its place.
  int sync(const std::shared_ptr<Node>& node);
  // The program was killed while it wrote: the file at its place stays as it was, or as it was
  // synced.
  void drop(const std::shared_ptr<Node>& node);
  // No descriptor and no name leads to it any more.
  void drop_unnamed(const std::shared_ptr<Node>& node);

  // A call that gives names to files or takes them. Files must be at their places before: those of
  // `affected`, which is asked again when none can be captured meanwhile. Then calls `act`, while
  // no file is handed in.
  using Affected = std::function<std::vector<std::shared_ptr<Node>>()>;
  int with_names(const Affected& affected, const std::function<int()>& act);
  std::vector<std::shared_ptr<Node>> not_at_place() { return nodes_.pinned(); }

  // Whether `bytes` more still fit into memory.
  bool has_room(std::uint64_t bytes) const;
  // The memory file reaches up to `end`.
  void count(Node& node, std::uint64_t end);

  // At the end of the mount: hands in what was closed, drops the rest, and waits until all is at
  // home, or cannot be brought there.
  void finish();

 private:
  using Lock = std::unique_lock<std::mutex>;

  bool start_moving(const std::shared_ptr<Node>& node, State from);
  void stop_moving(const std::shared_ptr<Node>& node, State state);
  bool may_begin(const std::shared_ptr<Node>& node, int target, int flags, bool fresh);
  bool set_out(const std::shared_ptr<Node>& node);
  void arrive(const std::shared_ptr<Node>& node, Fd placed);
  bool may_give(const Node& node) const;
  files::Link link() const;
  bool give_to_collector(Node& node) const;
  bool make_local(Node& node) const;
  void let_go(Node& node) const;
  int place(const std::shared_ptr<Node>& node, bool sync);
  int make_real_from_memory(const std::shared_ptr<Node>& node, bool sync);
  static Fd open_home(const Node& node);
  int come_home(const std::shared_ptr<Node>& node);
  void forget_memory(Node& node);
  void lose_view(const std::shared_ptr<Node>& node);
  void bring(const std::shared_ptr<Node>& node);
  void run();
  void end();

  Nodes& nodes_;
  const KeeperSettings settings_;
  const std::function<void(const std::string&)> stale_;
  std::atomic<std::uint64_t> held_ = 0;
  std::shared_mutex names_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Node>> waiting_;  // to be brought home
  std::deque<std::string> stale_paths_;
  bool busy_ = false;
  std::uint64_t failures_ = 0;
  bool ends_ = false;
  std::thread home_;
};

}  // namespace backstay::mount
