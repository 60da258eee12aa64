// Messages and common files of ranks that are threads: what a launcher's MPI would provide. A send
// ends once it was received, so that a protocol which counts on room for messages hangs here.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "client/group.h"
#include "client/launcher.h"
#include "io/file.h"
#include "io/posix.h"

namespace backstay::strategy::test {

class ThreadTransport {
 public:
  // `files`: those of a rank; null: the real ones. `path_of` changes names.
  explicit ThreadTransport(int ranks) : ranks_(ranks), members_(static_cast<std::size_t>(ranks)) {}
  std::function<io::FileSystem&(int rank)> files = [](int) -> io::FileSystem& {
    return io::posix_filesystem();
  };
  std::function<std::string(const std::string&)> path_of = [](const std::string& path) {
    return path;
  };
  // Not null: the call of that rank fails with this, as far as its rank can see. Opening fails on
  // all ranks or on none.
  std::function<const char*(int rank, const std::string& call)> fails =
      [](int, const std::string&) -> const char* { return nullptr; };

  // The functions of a rank, until the next call for it.
  const backstay_transport* of(const client::Group& group) {
    const std::lock_guard lock(all_mutex());
    all()[group.context()] = {this, group.rank()};
    return &table();
  }

 private:
  struct End {
    ThreadTransport* world = nullptr;
    int rank = 0;
  };
  struct Message {
    const void* data;
    std::size_t bytes;
    bool received = false;
  };
  struct Common {  // file of a group
    int members = 0;
    int arrived = 0;
    unsigned round = 0;
    std::unique_ptr<io::File> file;
    std::string failed;
  };
  struct Member {
    std::vector<std::shared_ptr<Message>> sends;
    std::shared_ptr<Common> common;
    bool leads = false;
  };

  static std::mutex& all_mutex() {
    static std::mutex mutex;
    return mutex;
  }
  static std::map<void*, End>& all() {
    static std::map<void*, End> ends;
    return ends;
  }
  static End end_of(void* context) {
    const std::lock_guard lock(all_mutex());
    return all().at(context);
  }
  static const char* text(const std::string& words) {
    static thread_local std::string kept;
    kept = words;
    return kept.empty() ? nullptr : kept.c_str();
  }
  template <typename Body>
  static const char* call(void* context, const char* name, Body&& body) {
    const End end = end_of(context);
    const char* const failed = end.world->fails(end.rank, name);
    if (failed != nullptr && std::string(name) == "open") return text(failed);
    const char* const done = body(*end.world, end.rank);
    return failed != nullptr ? text(failed) : done;
  }

  Member& member(int rank) { return members_[static_cast<std::size_t>(rank)]; }

  const char* send(int from, int to, const void* data, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    auto message = std::make_shared<Message>(Message{data, bytes});
    messages_[{from, to}].push_back(message);
    member(from).sends.push_back(message);
    changed_.notify_all();
    return nullptr;
  }
  const char* receive(int to, int from, void* data, std::size_t bytes) {
    std::unique_lock lock(mutex_);
    auto& waiting = messages_[{from, to}];
    changed_.wait(lock, [&] { return !waiting.empty(); });
    Message& message = *waiting.front();
    if (message.bytes != bytes) return text("a message of another length");
    if (bytes > 0) std::memcpy(data, message.data, bytes);
    message.received = true;
    waiting.pop_front();
    changed_.notify_all();
    return nullptr;
  }
  const char* wait(int rank) {
    std::unique_lock lock(mutex_);
    for (const auto& message : member(rank).sends) {
      changed_.wait(lock, [&] { return message->received; });
    }
    member(rank).sends.clear();
    return nullptr;
  }

  // All of `common`, or of the job, with the lock.
  void meet(Common& common, int members, std::unique_lock<std::mutex>& lock) {
    const unsigned round = common.round;
    if (++common.arrived == members) {
      common.arrived = 0;
      ++common.round;
      changed_.notify_all();
    }
    changed_.wait(lock, [&] { return common.round != round; });
  }
  const char* open(int rank, int group, const std::string& name) {
    std::unique_lock lock(mutex_);
    Member& mine = member(rank);
    if (group >= 0) {
      auto& common = commons_[group];
      mine.leads = common == nullptr;
      if (common == nullptr) common = std::make_shared<Common>();
      ++common->members;
      mine.common = common;
    }
    meet(job_, ranks_, lock);
    if (mine.leads) commons_.erase(group);
    if (group >= 0 && mine.leads) {
      const std::string path = path_of(name);
      io::FileSystem& disk = files(rank);
      (void)disk.make_directories(path.substr(0, path.rfind('/')));
      auto file = disk.open(path, io::Open::create);
      if (file.ok()) mine.common->file = std::move(*file);
      if (!file.ok()) mine.common->failed = file.error().message();
    }
    meet(job_, ranks_, lock);
    return group < 0 ? nullptr : text(mine.common->failed);
  }
  const char* write(int rank, std::uint64_t offset, const void* data, std::uint64_t bytes) {
    std::unique_lock lock(mutex_);
    Common& common = *member(rank).common;
    const Bytes all(static_cast<const std::byte*>(data), bytes);
    const Status written = all.empty() ? Status() : common.file->write_at(offset, all);
    meet(common, common.members, lock);
    return text(written.ok() ? "" : written.error().message());
  }
  const char* close(int rank) {
    std::unique_lock lock(mutex_);
    Member& mine = member(rank);
    const auto common = std::exchange(mine.common, nullptr);
    meet(*common, common->members, lock);
    if (mine.leads) {
      const Status synced = common->file->sync();
      if (!synced.ok()) common->failed = synced.error().message();
    }
    meet(*common, common->members, lock);
    return text(common->failed);
  }

  static const backstay_transport& table() {
    static const backstay_transport functions = {
        [](void* context, int to, const void* data, std::size_t bytes) {
          return call(context, "send", [&](ThreadTransport& world, int rank) {
            return world.send(rank, to, data, bytes);
          });
        },
        [](void* context, int from, void* data, std::size_t bytes) {
          return call(context, "receive", [&](ThreadTransport& world, int rank) {
            return world.receive(rank, from, data, bytes);
          });
        },
        [](void* context) {
          return call(context, "wait",
                      [&](ThreadTransport& world, int rank) { return world.wait(rank); });
        },
        [](void* context, int group, const char* path, const char*) {
          return call(context, "open", [&](ThreadTransport& world, int rank) {
            return world.open(rank, group, path);
          });
        },
        [](void*, const char*) { return ""; },
        [](void* context, std::uint64_t) {
          const char* const failed = call(context, "reserve", [](ThreadTransport&, int) {
            return static_cast<const char*>(nullptr);
          });
          return failed == nullptr ? 0 : ENOSPC;
        },
        [](void* context, std::uint64_t offset, const void* data, std::uint64_t bytes) {
          return call(context, "write", [&](ThreadTransport& world, int rank) {
            return world.write(rank, offset, data, bytes);
          });
        },
        [](void* context) {
          return call(context, "close",
                      [&](ThreadTransport& world, int rank) { return world.close(rank); });
        }};
    return functions;
  }

  const int ranks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<int, int>, std::deque<std::shared_ptr<Message>>> messages_;
  std::map<int, std::shared_ptr<Common>> commons_;
  Common job_;
  std::vector<Member> members_;
};

}  // namespace backstay::strategy::test
