#include "base/tell.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <string>

#include "base/fd.h"

namespace backstay {
namespace {

// A pipe in the place of stderr.
class Tell : public ::testing::Test {
 protected:
  Tell() : before_(::dup(STDERR_FILENO)) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    reader_.reset(ends[0]);
    EXPECT_EQ(::dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    ::close(ends[1]);
  }
  ~Tell() override { ::dup2(before_.get(), STDERR_FILENO); }

  std::string read() {
    std::string text(100'000, '\0');
    const ssize_t count = ::read(reader_.get(), text.data(), text.size());
    text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
    return text;
  }

  Fd before_;
  Fd reader_;
};

TEST_F(Tell, ALineIsWrittenAtOnce) {
  tell_user("something is wrong");
  EXPECT_EQ(read(), "backstay: something is wrong\n");
  tell_user(std::string(10'000, 'x'));
  const std::string cut = read();
  EXPECT_EQ(cut.size(), 4096u);
  EXPECT_TRUE(cut.ends_with("x\n"));
}

TEST_F(Tell, NobodyWhoReadsIsNoReasonToDie) {
  reader_.reset();
  tell_user("lost");  // SIGPIPE would end the test
  sigset_t pending;
  ::sigpending(&pending);
  EXPECT_EQ(::sigismember(&pending, SIGPIPE), 0);
  sigset_t blocked;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  EXPECT_EQ(::sigismember(&blocked, SIGPIPE), 0);
}

TEST_F(Tell, APipeThatIsFullIsNotWaitedFor) {
  const std::string much(4096, 'x');
  ASSERT_EQ(::fcntl(STDERR_FILENO, F_SETFL, O_NONBLOCK), 0);
  while (::write(STDERR_FILENO, much.data(), much.size()) > 0) {
  }
  ASSERT_EQ(::fcntl(STDERR_FILENO, F_SETFL, 0), 0);
  tell_user("lost");
  ::close(STDERR_FILENO);
  tell_user("lost too");
}

}  // namespace
}  // namespace backstay
