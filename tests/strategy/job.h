// A job without agents whose ranks are threads: each has a slice of a global array and a copy of
// the step, which both say which version they are of.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "strategy/session.h"
#include "tests/client/thread_group.h"
#include "thread_transport.h"

namespace backstay::strategy::test {

using client::Group;
using client::test::ThreadGroup;

inline double value(VersionNumber version, std::uint64_t element) {
  return static_cast<double>(version * 1'000'000'000 + element);
}

// One rank of it.
class Member {
 public:
  Member(const Group& group, client::ProgramSession& session, std::uint64_t elements)
      : session_(session) {
    const auto ranks = static_cast<std::uint64_t>(group.ranks());
    const auto rank = static_cast<std::uint64_t>(group.rank());
    begin_ = elements * rank / ranks;
    data_.resize(elements * (rank + 1) / ranks - begin_);
    backstay_array array{};
    array.dims = 1;
    array.shape[0] = data_.size();
    array.global_shape[0] = elements;
    array.global_offset[0] = begin_;
    EXPECT_TRUE(session.protect("u", data_.data(), &array, BACKSTAY_DOUBLE).ok());
    backstay_array one{};
    one.dims = 1;
    one.shape[0] = 1;
    EXPECT_TRUE(session.protect("step", &step_, &one, BACKSTAY_UINT64).ok());
  }
  void fill(VersionNumber version) {
    step_ = version;
    for (std::size_t i = 0; i < data_.size(); ++i) data_[i] = value(version, begin_ + i);
  }
  bool holds(VersionNumber version) const {
    for (std::size_t i = 0; i < data_.size(); ++i) {
      if (data_[i] != value(version, begin_ + i)) return false;
    }
    return step_ == version;
  }
  client::ProgramSession& session() { return session_; }

 private:
  client::ProgramSession& session_;
  std::uint64_t begin_ = 0;
  std::vector<double> data_;
  std::uint64_t step_ = 0;
};

constexpr const char* one_file_each = "name = \"file_per_process\"\n";
// Each way of writing.
constexpr const char* ways[] = {
    one_file_each,
    "name = \"collective\"\n",
    "name = \"collective\"\nfiles = 2\nalign_kib = 64\n",
    "name = \"writers\"\n",
    "name = \"writers\"\nranks_per_writer = 2\n",
    "name = \"writers\"\nranks_per_writer = 2\nfiles = 1\n",
};

class Job {
 public:
  explicit Job(const std::string& strategy = one_file_each) : settings(strategy) {
    char name[] = "/tmp/backstay-strategy-XXXXXX";
    folder_ = ::mkdtemp(name);
    std::filesystem::create_directory(shared());
  }
  ~Job() { std::filesystem::remove_all(folder_); }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  std::string shared() const { return folder_ + "/shared"; }
  std::string version(VersionNumber number) const {
    return shared() + "/job/v" + std::string(15, '0') + std::to_string(number);
  }
  std::uint64_t elements = 600'000;  // of the global array: some MiB
  // More lines of the configuration, the last of them in [strategy].
  std::string settings;
  int piece_mib = 1;  // of 8 MiB of buffers
  OpenTier open_tier = open_files;
  bool has_transport = true;
  std::optional<int> sees_another;  // this rank has another directory there
  // Changes the ranks' files and calls before they start.
  std::function<void(ThreadTransport&)> prepare = [](ThreadTransport&) {};

  // The same outcome on all ranks, whose messages may differ.
  Status run(int ranks, const std::function<Status(Member&)>& body) {
    ++run_;
    ThreadTransport transport(ranks);
    prepare(transport);
    std::vector<std::optional<Status>> all(static_cast<std::size_t>(ranks));
    ThreadGroup(ranks).run([&](const Group& group) {
      auto session = FileSession::start(group, begin(group.rank()),
                                        has_transport ? transport.of(group) : nullptr, open_tier);
      Status& mine = all[static_cast<std::size_t>(group.rank())].emplace();
      if (!session.ok()) {
        mine = session.error();
        return;
      }
      Member member(group, **session, elements);
      mine = body(member);
      const Status finished = (*session)->finish();
      if (mine.ok()) mine = finished;
    });
    for (const auto& one : all) {
      EXPECT_EQ(one->ok(), all[0]->ok());
      if (one->ok() || all[0]->ok()) continue;
      EXPECT_EQ(one->error().code(), all[0]->error().code());
    }
    return *all[0];
  }
  // Version `number`, which is the next.
  Status save(int ranks, VersionNumber number) {
    return run(ranks, [number](Member& member) {
      member.fill(number);
      const Status saved = member.session().checkpoint();
      EXPECT_EQ(member.session().version() == number, saved.ok());
      return saved;
    });
  }
  // The version that comes back, exact; 0: none.
  Result<VersionNumber> restart(int ranks) {
    std::mutex mutex;
    VersionNumber back = 0;
    const Status status = run(ranks, [&](Member& member) -> Status {
      member.fill(77);
      const auto version = member.session().restart();
      EXPECT_TRUE(member.holds(version.ok() ? *version : 77));
      if (!version.ok()) return version.error();
      const std::lock_guard lock(mutex);
      back = *version;
      return {};
    });
    if (!status.ok() && status.error().code() != Code::none) return status.error();
    return back;
  }

 private:
  client::JobStart begin(int rank) const {
    const std::string text = "[job]\nname = \"job\"\n[storage]\ndir = \"" + folder_ +
                             "/store\"\n[durable]\ndir = \"" +
                             (rank == sees_another ? folder_ + "/other" : shared()) +
                             "\"\n[pool]\nbuffer_mib = " + std::to_string(piece_mib) +
                             "\n[strategy]\nbuffer_mib = 8\n" + settings;
    auto config = parse_config(text, "test");
    EXPECT_TRUE(config.ok()) << config.error().to_string();
    client::JobStart start;
    start.config = *config;
    start.run = run_;
    return start;
  }
  std::string folder_;
  RunId run_ = 0;
};

}  // namespace backstay::strategy::test
