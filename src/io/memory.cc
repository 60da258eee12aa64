#include "io/memory.h"

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <set>

#include "io/memory_node.h"

namespace backstay::io {

struct MemoryFileSystem::State {
  explicit State(MemoryOptions with) : options(with) {}
  MemoryOptions options;
  mutable std::mutex mutex;  // guards everything below and all nodes
  NodePointer root = std::make_shared<MemoryNode>(true);
  std::uint64_t used = 0;        // bytes of files with a link or an open handle
  std::uint64_t generation = 0;  // number of crashes
  std::uint64_t nodes = 0;       // made so far

  std::uint64_t room() const {
    return options.capacity_bytes - std::min(used, options.capacity_bytes);
  }
  Moment now() const {
    constexpr std::uint64_t second = 1'000'000'000;
    const std::uint64_t ns = options.clock == nullptr ? 0 : options.clock->wall_ns();
    return {static_cast<std::int64_t>(ns / second), static_cast<std::uint32_t>(ns % second)};
  }
  void written(MemoryNode& node) const { node.attributes.modified = node.changed = now(); }
  void release_if_unused(MemoryNode& node) {
    if (!node.directory && node.links == 0 && node.opens == 0) used -= node.content.size();
  }
  void unlink(MemoryNode& node) {
    --node.links;
    release_if_unused(node);
  }
};

namespace {

using State = MemoryFileSystem::State;

std::vector<std::string> parts_of(const std::string& path) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    std::string part = path.substr(begin, end - begin);
    if (!part.empty() && part != ".") parts.push_back(std::move(part));
    begin = end + 1;
  }
  return parts;
}

// The folder of the first `count` parts. Errors: not_found, io (ENOTDIR).
Result<NodePointer> walk(const State& state, const std::vector<std::string>& parts,
                         std::size_t count, const std::string& path) {
  NodePointer node = state.root;
  for (std::size_t i = 0; i < count; ++i) {
    if (!node->directory) return errno_error(path, ENOTDIR);
    const auto found = node->names.find(parts[i]);
    if (found == node->names.end()) return errno_error(path, ENOENT);
    node = found->second;
  }
  return node;
}

struct Place {
  NodePointer folder;
  std::string name;
  NodePointer node;  // null: there is none
};

Result<Place> find(const State& state, const std::string& path) {
  const auto parts = parts_of(path);
  if (parts.empty()) return errno_error(path, EISDIR);
  BACKSTAY_ASSIGN(const NodePointer folder, walk(state, parts, parts.size() - 1, path));
  if (!folder->directory) return errno_error(path, ENOTDIR);
  const auto found = folder->names.find(parts.back());
  return Place{folder, parts.back(), found == folder->names.end() ? nullptr : found->second};
}

class MemoryFile final : public File {
 public:
  // Called with the lock held, as all that begins with "locked".
  MemoryFile(std::shared_ptr<State> state, NodePointer node, std::string path, bool writable,
             bool direct)
      : state_(std::move(state)),
        node_(std::move(node)),
        path_(std::move(path)),
        generation_(state_->generation),
        writable_(writable),
        direct_(direct) {
    ++node_->opens;
  }

  ~MemoryFile() override {
    const std::lock_guard lock(state_->mutex);
    if (generation_ != state_->generation) return;  // the crash has forgotten us
    --node_->opens;
    state_->release_if_unused(*node_);
  }

  Status read_at(std::uint64_t offset, std::span<std::byte> to) override {
    const std::lock_guard lock(state_->mutex);
    BACKSTAY_TRY(locked_check("read", false));
    BACKSTAY_TRY(check_aligned(offset, to.data(), to.size()));
    const std::uint64_t size = node_->content.size();
    if (offset > size || to.size() > size - offset) {
      return Error(Code::corrupt, path_ + ": the file ends at " + std::to_string(size));
    }
    std::copy_n(node_->content.begin() + static_cast<std::ptrdiff_t>(offset), to.size(),
                to.begin());
    return {};
  }

  Status write_at(std::uint64_t offset, Bytes from) override {
    const std::lock_guard lock(state_->mutex);
    BACKSTAY_TRY(locked_check("write", true));
    BACKSTAY_TRY(check_aligned(offset, from.data(), from.size()));
    const std::uint64_t fits = node_->content.size() + state_->room();
    const std::uint64_t end = std::min<std::uint64_t>(offset + from.size(), fits);
    if (end > offset) locked_write(offset, from.first(end - offset));
    return end == offset + from.size() ? Status() : errno_error("write " + path_, ENOSPC);
  }

  Status allocate(std::uint64_t bytes) override {
    const std::lock_guard lock(state_->mutex);
    BACKSTAY_TRY(locked_check("reserve", true));
    return bytes <= node_->content.size() ? Status() : locked_resize(bytes);
  }

  Status truncate(std::uint64_t bytes) override {
    const std::lock_guard lock(state_->mutex);
    BACKSTAY_TRY(locked_check("set the size of", true));
    return locked_resize(bytes);
  }

  Status set_attributes(const Attributes& attributes) override {
    const std::lock_guard lock(state_->mutex);
    BACKSTAY_TRY(locked_check("set the attributes of", true));
    node_->attributes = attributes;
    node_->changed = state_->now();
    return {};
  }

  Status sync() override {
    const std::lock_guard lock(state_->mutex);
    BACKSTAY_TRY(locked_check("sync", false));
    node_->sync();
    return {};
  }

  Result<std::uint64_t> size() override {
    const std::lock_guard lock(state_->mutex);
    BACKSTAY_TRY(locked_check("look at", false));
    return static_cast<std::uint64_t>(node_->content.size());
  }

  int descriptor() const override { return -1; }
  bool direct() const override { return direct_; }

 private:
  Status locked_check(const char* what, bool writes) const {
    const bool dead = generation_ != state_->generation;
    if (dead) return errno_error(what + (" " + path_) + " after a crash", EIO);
    if (writes && !writable_) return errno_error(what + (" " + path_), EBADF);
    return {};
  }

  Status check_aligned(std::uint64_t offset, const void* address, std::size_t bytes) const {
    const auto bits = offset | reinterpret_cast<std::uintptr_t>(address) | bytes;
    const bool good = !direct_ || bits % direct_alignment == 0;
    return good ? Status() : errno_error("direct access to " + path_, EINVAL);
  }

  void locked_write(std::uint64_t offset, Bytes from) {
    const std::uint64_t before = node_->content.size();
    node_->write(offset, from);
    state_->written(*node_);
    state_->used += node_->content.size() - before;
  }

  Status locked_resize(std::uint64_t bytes) {
    const std::uint64_t before = node_->content.size();
    if (bytes > before && bytes - before > state_->room()) {
      return errno_error("extend " + path_, ENOSPC);
    }
    node_->resize(bytes);
    state_->written(*node_);
    state_->used = state_->used - before + bytes;
    return {};
  }

  const std::shared_ptr<State> state_;
  const NodePointer node_;
  const std::string path_;
  const std::uint64_t generation_;
  const bool writable_;
  const bool direct_;
};

}  // namespace

MemoryFileSystem::MemoryFileSystem(MemoryOptions options)
    : state_(std::make_shared<State>(options)) {}
MemoryFileSystem::~MemoryFileSystem() = default;

Result<std::unique_ptr<File>> MemoryFileSystem::open(const std::string& path, Open how) {
  const std::lock_guard lock(state_->mutex);
  BACKSTAY_ASSIGN(Place place, find(*state_, path));
  const bool writable = how != Open::read && how != Open::read_direct;
  const bool direct = state_->options.direct && how != Open::read && how != Open::create;
  if (place.node == nullptr && !writable) return errno_error("open " + path, ENOENT);
  if (place.node != nullptr && place.node->directory) return errno_error("open " + path, EISDIR);
  if (place.node == nullptr) {
    place.node = std::make_shared<MemoryNode>(false);
    place.node->links = 1;
    place.node->number = ++state_->nodes;
    constexpr std::uint32_t mode = 0600;
    place.node->attributes = {mode, state_->now(), state_->now()};
    place.node->synced_attributes = place.node->attributes;
    place.node->changed = state_->now();
    place.folder->apply({{place.name, place.node}});
  } else if (how == Open::create || how == Open::create_direct) {
    state_->used -= place.node->content.size();
    place.node->resize(0);
    state_->written(*place.node);
  }
  return std::unique_ptr<File>(
      std::make_unique<MemoryFile>(state_, place.node, path, writable, direct));
}

Status MemoryFileSystem::make_directories(const std::string& path) {
  const std::lock_guard lock(state_->mutex);
  NodePointer node = state_->root;
  for (const std::string& part : parts_of(path)) {
    if (!node->names.contains(part)) {
      node->apply({{part, std::make_shared<MemoryNode>(true)}});
    }
    node = node->names[part];
    if (!node->directory) return errno_error("make the folder " + path, ENOTDIR);
  }
  return {};
}

Status MemoryFileSystem::rename(const std::string& from, const std::string& to) {
  const std::lock_guard lock(state_->mutex);
  BACKSTAY_ASSIGN(const Place source, find(*state_, from));
  BACKSTAY_ASSIGN(const Place target, find(*state_, to));
  const std::string what = "rename " + from + " to " + to;
  if (source.node == nullptr) return errno_error(what, ENOENT);
  if (source.node == target.node) return {};
  if (source.node->directory && source.folder != target.folder) return errno_error(what, EXDEV);
  if (target.node != nullptr && target.node->directory) return errno_error(what, EISDIR);
  if (target.node != nullptr && source.node->directory) return errno_error(what, ENOTDIR);
  if (target.node != nullptr) state_->unlink(*target.node);
  source.node->changed = state_->now();
  if (source.folder == target.folder) {
    source.folder->apply({{source.name, nullptr}, {target.name, source.node}});
  } else {
    target.folder->apply({{target.name, source.node}});
    source.folder->apply({{source.name, nullptr}});
  }
  return {};
}

Status MemoryFileSystem::remove(const std::string& path) {
  const std::lock_guard lock(state_->mutex);
  BACKSTAY_ASSIGN(const Place place, find(*state_, path));
  if (place.node == nullptr) return errno_error("remove " + path, ENOENT);
  if (!place.node->names.empty()) return errno_error("remove " + path, ENOTEMPTY);
  place.folder->apply({{place.name, nullptr}});
  if (!place.node->directory) state_->unlink(*place.node);
  return {};
}

Result<Facts> MemoryFileSystem::look(const std::string& path) {
  const std::lock_guard lock(state_->mutex);
  BACKSTAY_ASSIGN(const Place place, find(*state_, path));
  if (place.node == nullptr) return errno_error("look at " + path, ENOENT);
  const MemoryNode& node = *place.node;
  return Facts{!node.directory,     node.directory,  0,           node.number,
               node.content.size(), node.attributes, node.changed};
}

Result<std::vector<Entry>> MemoryFileSystem::list(const std::string& path) {
  const std::lock_guard lock(state_->mutex);
  const auto parts = parts_of(path);
  BACKSTAY_ASSIGN(const NodePointer folder, walk(*state_, parts, parts.size(), path));
  if (!folder->directory) return errno_error("list " + path, ENOTDIR);
  std::vector<Entry> entries;
  for (const auto& [name, node] : folder->names) entries.push_back({name, node->directory});
  return entries;
}

Status MemoryFileSystem::sync_directory(const std::string& path) {
  const std::lock_guard lock(state_->mutex);
  const auto parts = parts_of(path);
  BACKSTAY_ASSIGN(const NodePointer folder, walk(*state_, parts, parts.size(), path));
  if (!folder->directory) return errno_error("sync the folder " + path, ENOTDIR);
  folder->sync();
  return {};
}

// Depth first in the order of names, so that the same seed makes the same choices.
static void crash_below(MemoryNode& folder, CrashDice& dice, std::set<MemoryNode*>& seen,
                        std::uint64_t* used) {
  folder.crash_directory(dice);
  for (const auto& [name, node] : folder.names) {
    if (!node->directory && seen.insert(node.get()).second) {
      node->crash_file(dice);
      node->opens = 0;
      node->links = 0;
      *used += node->content.size();
    }
    if (node->directory) crash_below(*node, dice, seen, used);
    ++node->links;
  }
}

void MemoryFileSystem::crash(std::uint64_t seed) {
  const std::lock_guard lock(state_->mutex);
  CrashDice dice(seed);
  std::set<MemoryNode*> seen;
  ++state_->generation;
  state_->used = 0;
  crash_below(*state_->root, dice, seen, &state_->used);
}

void MemoryFileSystem::set_capacity(std::uint64_t bytes) {
  const std::lock_guard lock(state_->mutex);
  state_->options.capacity_bytes = bytes;
}

std::uint64_t MemoryFileSystem::used_bytes() const {
  const std::lock_guard lock(state_->mutex);
  return state_->used;
}

}  // namespace backstay::io
