// Which pages of the pool a session touches at its start.
#include <sys/stat.h>

#include <filesystem>

#include "client/session.h"
#include "session_fixture.h"

namespace backstay::client::test {
namespace {

// Of the pool of the agent in this process: memory that somebody has touched.
std::uint64_t touched_bytes() {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const auto name = std::filesystem::read_symlink(entry.path(), gone).string();
    struct stat facts {};
    if (name.starts_with("/memfd:pool") && ::stat(entry.path().c_str(), &facts) == 0) {
      return static_cast<std::uint64_t>(facts.st_blocks) * 512;
    }
  }
  return 0;
}

// To touch 512 MiB takes 0.1 s, which a process that copies nothing does not spend at its start.
TEST(Start, TouchesThePoolWhereThisProcessCopies) {
  for (const Copier copier : {Copier::another, Copier::this_process}) {
    const World world;
    FakeAgent::Options options;
    options.buffer_bytes = 1 << 20;
    options.buffers = 4;
    const FakeAgent agent(world.socket(), options);
    const auto session = Session::start(Group(), world.config().c_str(), copier);
    ASSERT_TRUE(session.ok()) << session.error().to_string();
    EXPECT_EQ(touched_bytes(), copier == Copier::another ? 0U : 4U << 20);
  }
}

}  // namespace
}  // namespace backstay::client::test
