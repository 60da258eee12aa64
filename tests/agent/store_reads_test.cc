// The disk never stands idle while the store tells what it has read: new reads go out first.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/disk/store.h"
#include "tier/tier.h"

namespace backstay::agent {
namespace {

constexpr unsigned depth = 4;
using Story = std::vector<std::string>;

// A disk that works through everything that it was given and then answers all at once.
class BatchReader final : public tier::Reader {
 public:
  explicit BatchReader(Story& story) : story_(story) {}
  unsigned depth() const override { return agent::depth; }
  unsigned in_flight() const override { return static_cast<unsigned>(waiting_.size()); }
  void read(std::uint64_t, std::span<std::byte>, std::uint64_t tag) override {
    story_.push_back("read");
    waiting_.push_back(tag);
  }
  std::vector<tier::Done> reap(bool wait) override {
    std::vector<tier::Done> done;
    if (!wait) return done;
    for (const std::uint64_t tag : std::exchange(waiting_, std::vector<std::uint64_t>{}))
      done.push_back({tag, {}});
    return done;
  }

 private:
  Story& story_;
  std::vector<std::uint64_t> waiting_;
};

// Opens such a disk, and can do nothing else.
class BatchTier final : public tier::Tier {
 public:
  explicit BatchTier(Story& story) : story_(story) {}
  Result<std::unique_ptr<tier::Reader>> open(const std::string&) override {
    return std::unique_ptr<tier::Reader>(std::make_unique<BatchReader>(story_));
  }
  Result<std::unique_ptr<tier::Writer>> create(const std::string&, std::uint64_t) override {
    return refused();
  }
  Status put(const std::string&, Bytes) override { return refused(); }
  Result<Buffer> get(const std::string&, std::uint64_t) override { return refused(); }
  Result<std::vector<std::string>> list(const std::string&) override { return refused(); }
  Status remove(const std::string&) override { return refused(); }
  Status sync(const std::string&) override { return refused(); }

 private:
  static Error refused() { return Error(Code::unsupported, "this disk is only read"); }
  Story& story_;
};

TEST(StoreReads, GoToTheDiskBeforeWhatArrivedIsTold) {
  Story story;
  StoreWorker worker(
      "job",
      [&]() -> Result<std::unique_ptr<tier::Tier>> {
        return std::unique_ptr<tier::Tier>(std::make_unique<BatchTier>(story));
      },
      [&](const Event& event) {
        if (std::holds_alternative<ChunkRead>(event)) story.emplace_back("told");
      },
      {});
  for (std::uint64_t ticket = 0; ticket < 3 * depth; ++ticket) {
    ReadChunk command;
    command.version = 1;
    command.ticket = ticket;
    worker.handle(command);
    worker.reap(/*wait=*/false);
  }
  while (worker.busy()) worker.reap(/*wait=*/true);

  Story expected(2 * depth, "read");
  for (const char* const what : {"told", "read", "told", "told"}) {
    expected.insert(expected.end(), depth, what);
  }
  EXPECT_EQ(story, expected);
}

}  // namespace
}  // namespace backstay::agent
