#include "capture/mount/nodes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace backstay::mount {

namespace {

Key key_of(const struct stat& found) { return {found.st_dev, found.st_ino}; }

}  // namespace

std::string link_to(int file) { return fmt::format("/proc/self/fd/{}", file); }

std::string path_of(int file) {
  std::array<char, PATH_MAX> path{};
  const ssize_t bytes = ::readlink(link_to(file).c_str(), path.data(), path.size());
  if (bytes <= 0 || path[0] != '/') return "";
  return {path.data(), static_cast<std::size_t>(bytes)};
}

Nodes::Nodes(Fd target) {
  auto made = look_up(std::move(target));
  BACKSTAY_CHECK(made.ok());
  root_ = *made;
}

std::shared_ptr<Node> Nodes::of(const Node* address) {
  const Lock lock(mutex_);
  const auto found = all_.find(address);
  BACKSTAY_CHECK(found != all_.end());
  return found->second;
}

// A file that came to an expected path by a rename has an inode that we have not seen.
std::shared_ptr<Node> Nodes::known(int found, const Key& key, Lock& lock) {
  if (const auto one = by_key_.find(key); one != by_key_.end()) return one->second;
  if (expected_.empty()) return nullptr;
  const auto one = expected_.find(path_of(found));
  if (one == expected_.end()) return nullptr;
  const auto node = one->second;
  Fd again(::fcntl(found, F_DUPFD_CLOEXEC, 3));
  if (again.valid()) lead_to(node, std::move(again), key, lock);
  return node;
}

// The node's own lock comes before the table's.
void Nodes::lead_to(const std::shared_ptr<Node>& node, Fd placed, const Key& key, Lock& lock) {
  const auto place = std::make_shared<const Fd>(std::move(placed));
  ++node->pins;  // the kernel may forget it meanwhile
  lock.unlock();
  {
    const std::unique_lock alone(node->lock);
    node->place = place;
  }
  lock.lock();
  --node->pins;
  if (const auto old = by_key_.find(node->key); old != by_key_.end() && old->second == node)
    by_key_.erase(old);
  node->key = key;
  by_key_[key] = node;
}

Result<std::shared_ptr<Node>> Nodes::look_up(Fd found) {
  struct stat stat = {};
  if (::fstat(found.get(), &stat) != 0) return errno_error("look at a file", errno);
  Lock lock(mutex_);
  std::shared_ptr<Node> node = known(found.get(), key_of(stat), lock);
  if (node == nullptr) {
    node = std::make_shared<Node>();
    node->number = stat.st_ino;
    node->key = key_of(stat);
    node->anchor = node->place = std::make_shared<const Fd>(std::move(found));
    by_key_[node->key] = node;
    all_[node.get()] = node;
  }
  ++node->lookups;
  return node;
}

std::shared_ptr<Node> Nodes::find(int found) {
  struct stat stat = {};
  if (::fstat(found, &stat) != 0) return nullptr;
  Lock lock(mutex_);
  const auto node = known(found, key_of(stat), lock);
  if (node != nullptr) drop_if_unused(node.get());
  return node;
}

std::shared_ptr<Node> Nodes::at(const Key& key) {
  const Lock lock(mutex_);
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? nullptr : found->second;
}

void Nodes::drop_if_unused(Node* node) {
  if (node->lookups != 0 || node->pins != 0) return;
  const auto own = by_key_.find(node->key);
  if (own != by_key_.end() && own->second.get() == node) by_key_.erase(own);
  all_.erase(node);
}

void Nodes::forget(Node* node, std::uint64_t lookups) {
  const Lock lock(mutex_);
  if (node == root_.get()) return;
  node->lookups -= std::min(lookups, node->lookups);
  drop_if_unused(node);
}

void Nodes::expect(const std::string& path, const std::shared_ptr<Node>& node) {
  const Lock lock(mutex_);
  expected_[path] = node;
}

void Nodes::release(const std::string& path, const std::shared_ptr<Node>& node, Fd placed) {
  Lock lock(mutex_);
  struct stat stat = {};
  if (placed.valid() && ::fstat(placed.get(), &stat) == 0 && key_of(stat) != node->key)
    lead_to(node, std::move(placed), key_of(stat), lock);
  const auto own = expected_.find(path);
  if (own != expected_.end() && own->second == node) expected_.erase(own);
}

void Nodes::detach(const std::shared_ptr<Node>& node) {
  const Lock lock(mutex_);
  const auto own = by_key_.find(node->key);
  if (own != by_key_.end() && own->second == node) by_key_.erase(own);
}

void Nodes::pin(const std::shared_ptr<Node>& node) {
  const Lock lock(mutex_);
  ++node->pins;
}

void Nodes::unpin(const std::shared_ptr<Node>& node) {
  const Lock lock(mutex_);
  --node->pins;
  drop_if_unused(node.get());
}

std::vector<std::shared_ptr<Node>> Nodes::pinned() {
  const Lock lock(mutex_);
  std::vector<std::shared_ptr<Node>> found;
  for (const auto& [address, node] : all_)
    if (node->pins != 0) found.push_back(node);
  return found;
}

}  // namespace backstay::mount
