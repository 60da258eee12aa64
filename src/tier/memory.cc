#include "tier/memory.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <mutex>

#include "base/folders.h"
#include "io/file.h"
#include "tier/name.h"

namespace backstay::tier {

namespace {

// Owned by the tier's map, by readers, and by the writer; the last of them gives the room back.
struct Room {
  explicit Room(std::uint64_t capacity) : capacity_bytes(capacity) {}
  const std::uint64_t capacity_bytes;
  std::mutex mutex;  // guards used and all contents
  std::uint64_t used = 0;
};

struct Content {
  explicit Content(std::shared_ptr<Room> in) : room(std::move(in)) {}
  Content(const Content&) = delete;
  Content& operator=(const Content&) = delete;
  ~Content() { room->used -= bytes.size(); }  // with the lock held

  Status resize(std::uint64_t size) {
    if (size > bytes.size() && size - bytes.size() > room->capacity_bytes - room->used) {
      return errno_error("the tier in memory", ENOSPC);
    }
    room->used = room->used - bytes.size() + size;
    bytes.resize(size);
    return {};
  }

  const std::shared_ptr<Room> room;
  Buffer bytes;
};

using ContentPointer = std::shared_ptr<Content>;

// The common part of Writer and Reader: a content, and completions that wait to be reaped.
class Stream {
 public:
  Stream(ContentPointer content, unsigned depth)
      : room_(content->room), content_(std::move(content)), depth_(depth) {}
  ~Stream() {
    const std::lock_guard lock(room_->mutex);
    content_.reset();
  }
  unsigned depth() const { return depth_; }
  unsigned in_flight() const { return static_cast<unsigned>(done_.size()); }
  std::vector<Done> reap() { return std::exchange(done_, {}); }
  void done(std::uint64_t tag, Status status) {
    BACKSTAY_CHECK(in_flight() < depth_);
    done_.push_back({tag, std::move(status)});
  }
  std::mutex& mutex() { return room_->mutex; }
  Content& content() { return *content_; }

 private:
  const std::shared_ptr<Room> room_;  // outlives the content
  ContentPointer content_;
  const unsigned depth_;
  std::vector<Done> done_;
};

class MemoryWriter final : public Writer {
 public:
  MemoryWriter(ContentPointer content, unsigned depth) : stream_(std::move(content), depth) {}
  unsigned depth() const override { return stream_.depth(); }
  unsigned in_flight() const override { return stream_.in_flight(); }
  std::vector<Done> reap(bool) override { return stream_.reap(); }

  void write(std::uint64_t offset, Bytes from, std::uint64_t tag) override {
    const std::lock_guard lock(stream_.mutex());
    Buffer& bytes = stream_.content().bytes;
    Status status;
    if (bytes.size() < offset + from.size())
      status = stream_.content().resize(offset + from.size());
    if (status.ok()) {
      std::copy(from.begin(), from.end(), bytes.begin() + static_cast<std::ptrdiff_t>(offset));
    } else if (failed_.ok()) {
      failed_ = status;
    }
    stream_.done(tag, std::move(status));
  }

  Status seal(std::uint64_t bytes) override {
    BACKSTAY_CHECK(in_flight() == 0);
    BACKSTAY_TRY(failed_);
    const std::lock_guard lock(stream_.mutex());
    return stream_.content().resize(bytes);
  }

 private:
  Stream stream_;
  Status failed_;
};

class MemoryReader final : public Reader {
 public:
  MemoryReader(ContentPointer content, unsigned depth) : stream_(std::move(content), depth) {}
  unsigned depth() const override { return stream_.depth(); }
  unsigned in_flight() const override { return stream_.in_flight(); }
  std::vector<Done> reap(bool) override { return stream_.reap(); }

  void read(std::uint64_t offset, std::span<std::byte> to, std::uint64_t tag) override {
    const std::lock_guard lock(stream_.mutex());
    const Buffer& bytes = stream_.content().bytes;
    if (offset > bytes.size() || to.size() > bytes.size() - offset) {
      return stream_.done(tag, Error(Code::corrupt, "it ends at " + std::to_string(bytes.size())));
    }
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), to.size(), to.begin());
    stream_.done(tag, {});
  }

 private:
  Stream stream_;
};

class MemoryTier final : public Tier {
 public:
  explicit MemoryTier(MemoryTierOptions options)
      : options_(options), room_(std::make_shared<Room>(options.capacity_bytes)) {}
  ~MemoryTier() override {
    const std::lock_guard lock(room_->mutex);
    contents_.clear();
  }

  Result<std::unique_ptr<Writer>> create(const std::string& name, std::uint64_t bytes) override {
    BACKSTAY_TRY(check_name(name));
    const std::lock_guard lock(room_->mutex);
    BACKSTAY_TRY(check_free(name));
    contents_.erase(name);
    auto content = std::make_shared<Content>(room_);
    BACKSTAY_TRY(content->resize(bytes));
    contents_[name] = content;
    return std::unique_ptr<Writer>(std::make_unique<MemoryWriter>(content, options_.depth));
  }

  Result<std::unique_ptr<Reader>> open(const std::string& name) override {
    BACKSTAY_TRY(check_name(name));
    const std::lock_guard lock(room_->mutex);
    BACKSTAY_ASSIGN(ContentPointer content, find(name));
    return std::unique_ptr<Reader>(
        std::make_unique<MemoryReader>(std::move(content), options_.depth));
  }

  Status put(const std::string& name, Bytes bytes) override {
    BACKSTAY_TRY(check_name(name));
    const std::lock_guard lock(room_->mutex);
    BACKSTAY_TRY(check_free(name));
    auto content = std::make_shared<Content>(room_);
    BACKSTAY_TRY(content->resize(bytes.size()));
    std::copy(bytes.begin(), bytes.end(), content->bytes.begin());
    contents_[name] = content;
    return {};
  }

  Result<Buffer> get(const std::string& name, std::uint64_t bytes_max) override {
    BACKSTAY_TRY(check_name(name));
    const std::lock_guard lock(room_->mutex);
    BACKSTAY_ASSIGN(const ContentPointer content, find(name));
    if (content->bytes.size() <= bytes_max) return content->bytes;
    return Error(Code::too_large, name + " has " + std::to_string(content->bytes.size()) +
                                      " bytes, more than " + std::to_string(bytes_max));
  }

  Result<std::vector<std::string>> list(const std::string& prefix) override {
    BACKSTAY_TRY(check_prefix(prefix));
    const std::string begin = prefix.empty() ? "" : prefix + "/";
    const std::lock_guard lock(room_->mutex);
    std::vector<std::string> names;
    for (auto at = contents_.lower_bound(begin);
         at != contents_.end() && at->first.starts_with(begin); ++at) {
      const std::string rest = at->first.substr(begin.size());
      names.push_back(rest.substr(0, rest.find('/')));
    }
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
  }

  Status remove(const std::string& name) override {
    BACKSTAY_TRY(check_name(name));
    const std::lock_guard lock(room_->mutex);
    std::erase_if(contents_, [&](const auto& entry) {
      return entry.first == name || entry.first.starts_with(name + "/");
    });
    return {};
  }

  Status sync(const std::string& prefix) override { return check_prefix(prefix); }

 private:
  Result<ContentPointer> find(const std::string& name) {
    const auto found = contents_.find(name);
    if (found == contents_.end()) return errno_error("open " + name, ENOENT);
    return found->second;
  }

  // A name cannot be a prefix of another one as well: no directory could hold both.
  Status check_free(const std::string& name) {
    const auto below = contents_.lower_bound(name + "/");
    if (below != contents_.end() && below->first.starts_with(name + "/")) {
      return errno_error("create " + name, EISDIR);
    }
    for (std::string above = parent_of(name); above != "."; above = parent_of(above)) {
      if (contents_.contains(above)) return errno_error("create " + name, ENOTDIR);
    }
    return {};
  }

  const MemoryTierOptions options_;
  const std::shared_ptr<Room> room_;
  std::map<std::string, ContentPointer> contents_;  // guarded by room_->mutex
};

}  // namespace

std::unique_ptr<Tier> make_memory_tier(MemoryTierOptions options) {
  return std::make_unique<MemoryTier>(options);
}

}  // namespace backstay::tier
