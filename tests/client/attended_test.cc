// A version of which the owner sees to other things meanwhile: it uses the connection, and no
// answer to the capture is lost.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/checksum.h"
#include "client/object_session.h"
#include "session_fixture.h"

namespace backstay::client::test {
namespace {

constexpr std::uint64_t object_bytes = 40 * buffer_bytes;

class AttendedSource final : public ObjectSource {
 public:
  explicit AttendedSource(Connection& agent) : agent_(agent) {}
  std::uint64_t object_bytes() const override { return test::object_bytes; }
  Result<std::uint64_t> read_next(std::span<std::byte> to) override {
    std::fill(to.begin(), to.end(), std::byte{7});
    return checksum(to);
  }
  int attend() override {
    ++calls;
    (void)agent_.take_unasked();  // reads all that is there
    return 1;
  }
  static inline int calls = 0;

 private:
  Connection& agent_;
};

TEST(AttendedCapture, LosesNoAnswer) {
  const World world;
  FakeAgent::Options options;
  options.buffer_bytes = buffer_bytes;
  options.buffers = 4;  // so that grants come one by one
  FakeAgent agent(world.socket(), options);
  const auto session = session_in(world);
  ObjectSession objects(*session);
  for (int version = 1; version <= 5; ++version) {
    AttendedSource::calls = 0;
    const Status taken = objects.checkpoint(
        [](Connection& own, const Origin&) -> Result<std::unique_ptr<ObjectSource>> {
          return std::unique_ptr<ObjectSource>(std::make_unique<AttendedSource>(own));
        });
    ASSERT_TRUE(taken.ok()) << taken.error().to_string();
    EXPECT_GE(AttendedSource::calls, 40);
  }
}

}  // namespace
}  // namespace backstay::client::test
