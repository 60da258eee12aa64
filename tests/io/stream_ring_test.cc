// io_uring on a pipe: there a test decides when, and in which pieces, a read is answered.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "aligned_bytes.h"
#include "base/fd.h"
#include "expect_status.h"
#include "io/uring.h"

namespace backstay::io {
namespace {

using namespace backstay::testing;

class PipeFile final : public File {
 public:
  explicit PipeFile(int fd) : fd_(fd) {}
  Status read_at(std::uint64_t, std::span<std::byte>) override { return no(); }
  Status write_at(std::uint64_t, Bytes) override { return no(); }
  Status allocate(std::uint64_t) override { return no(); }
  Status truncate(std::uint64_t) override { return no(); }
  Status set_attributes(const Attributes&) override { return no(); }
  Status sync() override { return no(); }
  Result<std::uint64_t> size() override { return no().error(); }
  int descriptor() const override { return fd_; }
  bool direct() const override { return false; }

 private:
  static Status no() { return Error(Code::internal, "a pipe"); }
  int fd_;
};

class StreamRing : public ::testing::Test {
 protected:
  void SetUp() override {
    auto ring = make_uring({.depth = 2}, nullptr);
    if (!ring.ok()) GTEST_SKIP() << ring.error().to_string();
    ring_ = std::move(ring).value();
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    read_end_.reset(ends[0]);
    write_end_.reset(ends[1]);
    file_ = std::make_unique<PipeFile>(ends[0]);
    to_.resize(256);
  }
  void send(std::size_t begin, std::size_t bytes) {
    const Buffer all = pattern(256, 1);
    EXPECT_EQ(::write(write_end_.get(), all.data() + begin, bytes), static_cast<ssize_t>(bytes));
  }

  Fd read_end_;
  Fd write_end_;
  std::unique_ptr<PipeFile> file_;
  Buffer to_;
  std::unique_ptr<Ring> ring_;  // goes first
};

TEST_F(StreamRing, ShortReadsAreContinued) {
  ring_->read(*file_, 0, to_, 9);
  EXPECT_TRUE(ring_->reap(false).empty());
  send(0, 100);
  EXPECT_TRUE(ring_->reap(false).empty()) << "a part of a request came out";
  std::thread rest([this] { send(100, 156); });
  const auto done = ring_->reap(true);
  rest.join();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_TRUE(is_ok(done[0].status));
  EXPECT_EQ(to_, pattern(256, 1));
}

TEST_F(StreamRing, TheEndIsCorrupt) {
  ring_->read(*file_, 0, to_, 9);
  send(0, 100);
  write_end_.reset();
  const auto done = ring_->reap(true);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_TRUE(fails_with(done[0].status, Code::corrupt));
}

TEST_F(StreamRing, WaitingSleepsAndSignalsDoNotEndIt) {
  struct sigaction action {};
  action.sa_handler = [](int) {};  // no SA_RESTART: system calls do return EINTR
  struct sigaction before {};
  ASSERT_EQ(::sigaction(SIGALRM, &action, &before), 0);
  const itimerval often{{0, 5'000}, {0, 5'000}};
  ring_->read(*file_, 0, to_, 9);
  timespec cpu_before{};
  timespec cpu_after{};
  std::thread later([this] {
    // 200 ms is what is measured here, not waited for.
    while (::poll(nullptr, 0, 200) != 0) {
    }
    send(0, 256);
  });
  ASSERT_EQ(::setitimer(ITIMER_REAL, &often, nullptr), 0);
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu_before);
  const auto done = ring_->reap(true);
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu_after);
  const itimerval never{};
  ::setitimer(ITIMER_REAL, &never, nullptr);
  later.join();
  ::sigaction(SIGALRM, &before, nullptr);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_TRUE(is_ok(done[0].status));
  const double used = static_cast<double>(cpu_after.tv_sec - cpu_before.tv_sec) +
                      1e-9 * static_cast<double>(cpu_after.tv_nsec - cpu_before.tv_nsec);
  EXPECT_LT(used, 0.1) << "reap(true) spins";
}

}  // namespace
}  // namespace backstay::io
