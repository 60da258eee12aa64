// A target that takes chunks before all ranks have verified theirs, of a version that does not fit
// into the pool.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "base/checksum.h"
#include "client/object_session.h"
#include "session_fixture.h"
#include "thread_group.h"

namespace backstay::client::test {
namespace {

constexpr std::uint64_t saved_bytes = 1000;  // four chunks of the agent's
constexpr std::size_t saved_chunks = 4;

class FilledObject final : public ObjectSource {
 public:
  explicit FilledObject(std::byte with) : with_(with) {}
  std::uint64_t object_bytes() const override { return saved_bytes; }
  Result<std::uint64_t> read_next(std::span<std::byte> to) override {
    std::ranges::fill(to, with_);
    return checksum(to);
  }

 private:
  const std::byte with_;
};

class EarlyTarget final : public ObjectTarget {
 public:
  explicit EarlyTarget(bool early) : early_(early) {}
  std::uint64_t table_bytes() const override { return 0; }
  Result<std::uint64_t> tail_bytes(Bytes footer, std::uint64_t) override { return footer.size(); }
  Status match_tail(Bytes, std::uint64_t bytes) override {
    got.assign(bytes, std::byte{});
    return {};
  }
  Status place(std::uint64_t at, Bytes chunk, Checksum* sum) override {
    if (fails && at == 0) return Error(Code::not_found, "this machine has no such memory");
    std::ranges::copy(chunk, got.begin() + static_cast<std::ptrdiff_t>(at));
    ++placed;
    if (sum != nullptr) sum->update(chunk);
    return {};
  }
  bool exchange(std::uint64_t, std::span<std::byte>) override { return false; }
  bool takes_early() const override { return early_; }
  Status finish() override { return {}; }

  bool fails = false;
  std::size_t placed = 0;
  Buffer got;

 private:
  const bool early_;
};

class Early : public testing::TestWithParam<bool> {
 protected:
  // Versions 1 and 2.
  void save(const FakeAgent::Options& options) {
    agent_.emplace(world_.socket(), options);
    run([&](ObjectSession& objects) {
      for (const std::byte with : {std::byte{1}, std::byte{2}}) {
        const Status saved = objects.checkpoint([&](Connection&, const Origin&) {
          return Result<std::unique_ptr<ObjectSource>>(std::make_unique<FilledObject>(with));
        });
        ASSERT_TRUE(saved.ok()) << saved.error().to_string();
      }
    });
  }
  Result<VersionNumber> restart(EarlyTarget& target) {
    Result<VersionNumber> version = Error(Code::internal, "no session");
    run([&](ObjectSession& objects) {
      version =
          objects.restart([&](Connection&, const Origin&) -> ObjectTarget& { return target; });
    });
    agent_->stop();
    EXPECT_EQ(agent_->problem(), "");
    return version;
  }
  // The table is in the last chunk. `early`: how many chunks are sent to a target that takes them
  // early.
  void gets_all(bool table_comes_first, std::size_t early) {
    FakeAgent::Options options;
    options.never_hold = true;
    options.reverse_chunks = table_comes_first;
    save(options);
    EarlyTarget target(GetParam());
    const auto version = restart(target);
    ASSERT_TRUE(version.ok()) << version.error().to_string();
    EXPECT_EQ(target.got, Buffer(saved_bytes, std::byte{2}));
    EXPECT_EQ(sent(), GetParam() ? early : 2 * saved_chunks);
  }
  std::size_t sent() const { return agent_->chunks_sent; }

 private:
  template <typename Function>
  void run(const Function& function) {
    ThreadGroup job(1);
    job.run([&](const Group& group) {
      auto session = session_in(world_, group);
      ASSERT_NE(session, nullptr);
      ObjectSession objects(*session);
      function(objects);
    });
  }

  World world_;
  std::optional<FakeAgent> agent_;
};
INSTANTIATE_TEST_SUITE_P(OrNot, Early, testing::Bool());

TEST_P(Early, GetsEachChunkOnce) { gets_all(/*table_comes_first=*/true, saved_chunks); }

TEST_P(Early, GetsChunksThatComeBeforeTheTableOnceMore) {
  gets_all(/*table_comes_first=*/false, 2 * saved_chunks - 1);
}

// It has taken all but the damaged chunk.
TEST_P(Early, TakesAllOfAnOlderVersionWhereANewerOneIsDamaged) {
  FakeAgent::Options options;
  options.never_hold = true;
  options.damage = {2};
  save(options);
  EarlyTarget target(GetParam());
  const auto version = restart(target);
  ASSERT_TRUE(version.ok()) << version.error().to_string();
  EXPECT_EQ(*version, 1u);
  EXPECT_EQ(target.got, Buffer(saved_bytes, std::byte{1}));
}

// Which of the two is wrong counts for what is set aside.
TEST_P(Early, CallsDamageDamageAlsoWhereTheTargetCannotTakeIt) {
  FakeAgent::Options options;
  options.never_hold = true;
  options.damage = {1, 2};
  save(options);
  EarlyTarget target(GetParam());
  target.fails = true;
  const auto version = restart(target);
  ASSERT_FALSE(version.ok());
  EXPECT_EQ(version.error().code(), Code::corrupt) << version.error().to_string();
}

}  // namespace
}  // namespace backstay::client::test
