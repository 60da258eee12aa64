// make_ring() takes what the machine allows and says what it did not get.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstdlib>
#include <thread>

#include "aligned_bytes.h"
#include "expect_status.h"
#include "io/posix.h"
#include "io/ring.h"
#include "io/uring.h"
#include "temp_directory.h"

namespace backstay::io {
namespace {

using namespace backstay::testing;

bool has_io_uring() { return make_uring({}, nullptr).ok(); }

void expect_works(Ring& ring) {
  TempDirectory directory;
  AlignedBytes bytes(8192);
  fill_pattern(bytes.part(0, 4096), 1);
  auto file = posix_filesystem().open(directory.path() + "/f", Open::create_direct);
  ASSERT_TRUE(is_ok(file));
  ring.write(**file, 0, bytes.part(0, 4096), 1);
  ASSERT_TRUE(is_ok(ring.reap(true).at(0).status));
  ring.read(**file, 0, bytes.part(4096, 4096), 2);
  ASSERT_TRUE(is_ok(ring.reap(true).at(0).status));
  EXPECT_EQ(first_difference(bytes.part(4096, 4096), 1), 4096u);
}

TEST(RingKind, SwitchedOff) {
  RingKind kind;
  auto ring = make_ring({.allow_io_uring = false}, &kind);
  ASSERT_TRUE(is_ok(ring));
  EXPECT_FALSE(kind.io_uring);
  EXPECT_FALSE(kind.why_not.empty());
  expect_works(**ring);
}

TEST(RingKind, Registered) {
  if (!has_io_uring()) GTEST_SKIP() << "no io_uring here";
  AlignedBytes memory(1 << 16);
  RingKind kind;
  auto ring = make_ring({.registered = {memory.all()}}, &kind);
  ASSERT_TRUE(is_ok(ring));
  EXPECT_TRUE(kind.io_uring);
  EXPECT_TRUE(kind.registered_buffers || !kind.why_not.empty());
  expect_works(**ring);
}

// Memory without read permission cannot be pinned, as memory beyond the memlock limit cannot.
TEST(RingKind, MemoryThatCannotBePinnedIsLeftOut) {
  if (!has_io_uring()) GTEST_SKIP() << "no io_uring here";
  void* none = ::mmap(nullptr, 1 << 16, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(none, MAP_FAILED);
  RingKind kind;
  auto ring = make_ring({.registered = {{static_cast<std::byte*>(none), 1 << 16}}}, &kind);
  ASSERT_TRUE(is_ok(ring));
  EXPECT_TRUE(kind.io_uring);
  EXPECT_FALSE(kind.registered_buffers);
  EXPECT_NE(kind.why_not.find("pinned"), std::string::npos) << kind.why_not;
  expect_works(**ring);
  ring->reset();
  ::munmap(none, 1 << 16);
}

// From here on the calling thread, and what it starts, gets EPERM for this system call.
bool forbid(unsigned call) {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program{static_cast<unsigned short>(std::size(rules)), rules};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// As in many containers.
TEST(RingKind, ForbiddenIoUringBecomesThreads) {
  std::thread([] {
    if (!forbid(__NR_io_uring_setup)) GTEST_SKIP() << "no seccomp here";
    RingKind kind;
    auto ring = make_ring({}, &kind);
    ASSERT_TRUE(is_ok(ring));
    EXPECT_FALSE(kind.io_uring);
    EXPECT_FALSE(kind.why_not.empty());
    expect_works(**ring);
  }).join();
}

TEST(RingKind, ARefusalForGoodIsTold) {
  if (!has_io_uring()) GTEST_SKIP() << "no io_uring here";
  std::thread([] {
    TempDirectory directory;
    AlignedBytes bytes(4096);
    auto file = posix_filesystem().open(directory.path() + "/f", Open::create);
    auto ring = make_uring({}, nullptr);
    ASSERT_TRUE(is_ok(file) && is_ok(ring));
    EXPECT_FALSE((*ring)->broken());
    if (!forbid(__NR_io_uring_enter)) GTEST_SKIP() << "no seccomp here";
    (*ring)->write(**file, 0, bytes.all(), 1);
    EXPECT_TRUE(fails_with((*ring)->reap(true).at(0).status, Code::permission));
    EXPECT_TRUE((*ring)->broken());
  }).join();
}

TEST(ThreadRingDeathTest, AProcessExitsWhileARingExists) {
  const TempDirectory directory;  // the process that exits leaves it to us
  EXPECT_EXIT(
      {
        static AlignedBytes* bytes = new AlignedBytes(4096);
        static File* file =
            posix_filesystem().open(directory.path() + "/f", Open::create).value().release();
        static Ring* ring = make_thread_ring(4, 4).value().release();
        ring->write(*file, 0, bytes->all(), 1);
        std::exit(7);
      },
      ::testing::ExitedWithCode(7), "");
}

TEST(RingDeathTest, MoreThanTheDepthIsOurBug) {
  const TempDirectory directory;  // the process that dies leaves it to us
  EXPECT_DEATH(
      {
        AlignedBytes bytes(4096);
        auto file = posix_filesystem().open(directory.path() + "/f", Open::create);
        auto ring = make_ring({.depth = 2}, nullptr);
        for (int i = 0; i < 3; ++i) (*ring)->write(**file, 0, bytes.all(), 1);
      },
      "");
}

}  // namespace
}  // namespace backstay::io
