// The table of nodes: by inode of the target, and for files on their way, by path.
//
// The kernel names a node by its address. A node lives while the kernel has looked it up and not
// forgotten it, and while it is not at its place.
//
// Any thread.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "capture/mount/node.h"

namespace backstay::mount {

class Nodes {
 public:
  // `target`: an O_PATH descriptor of the folder.
  explicit Nodes(Fd target);

  const std::shared_ptr<Node>& root() const { return root_; }
  // The kernel has it from us, and has not forgotten it.
  std::shared_ptr<Node> of(const Node* address);

  // The node of the file that `found` (O_PATH) leads to, made if there is none. Counts a lookup by
  // the kernel. Error: errno's.
  Result<std::shared_ptr<Node>> look_up(Fd found);
  // The same, but null where there is none, and no lookup counts.
  std::shared_ptr<Node> find(int found);
  std::shared_ptr<Node> at(const Key& key);
  void forget(Node* node, std::uint64_t lookups);

  // Until release() the node stays, and a file that is new at `path` is this node's.
  void expect(const std::string& path, const std::shared_ptr<Node>& node);
  // `placed`: O_PATH of what is at the place now; invalid: nothing has changed there.
  void release(const std::string& path, const std::shared_ptr<Node>& node, Fd placed);
  // The kernel has bytes of it that are none: who looks it up gets a new node.
  void detach(const std::shared_ptr<Node>& node);
  void pin(const std::shared_ptr<Node>& node);
  void unpin(const std::shared_ptr<Node>& node);
  // That are not at their places.
  std::vector<std::shared_ptr<Node>> pinned();

 private:
  using Lock = std::unique_lock<std::mutex>;

  std::shared_ptr<Node> known(int found, const Key& key, Lock& lock);
  void lead_to(const std::shared_ptr<Node>& node, Fd placed, const Key& key, Lock& lock);
  void drop_if_unused(Node* node);

  std::shared_ptr<Node> root_;
  std::mutex mutex_;
  std::map<const Node*, std::shared_ptr<Node>> all_;
  std::map<Key, std::shared_ptr<Node>> by_key_;
  std::map<std::string, std::shared_ptr<Node>> expected_;
};

// The path by which the kernel opens a descriptor again.
std::string link_to(int file);
inline std::string link_to(const SharedFd& file) { return link_to(file->get()); }
// Where the kernel says that the file is; "" where it has no name any more, or an unknown one.
std::string path_of(int file);

}  // namespace backstay::mount
