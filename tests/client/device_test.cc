// Regions in GPU memory, with a fake CUDA driver whose memory faults when it is touched directly.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstring>

#include "backstay/backstay.h"
#include "fake_agent.h"
#include "world.h"

namespace backstay::client::test {
namespace {

struct Driver {
  Driver() {
    void* library = ::dlopen(BACKSTAY_FAKE_CUDA, RTLD_NOW);
    EXPECT_NE(library, nullptr) << ::dlerror();
    allocate = reinterpret_cast<void* (*)(std::size_t)>(::dlsym(library, "fake_cuda_allocate"));
    shadow = reinterpret_cast<void* (*)(void*)>(::dlsym(library, "fake_cuda_shadow"));
    pinned = reinterpret_cast<int (*)()>(::dlsym(library, "fake_cuda_pinned"));
    synchronized = reinterpret_cast<int (*)()>(::dlsym(library, "fake_cuda_synchronized"));
  }
  void* (*allocate)(std::size_t);
  void* (*shadow)(void*);
  int (*pinned)();
  int (*synchronized)();
};

TEST(Device, HostOnlyProgramsNeverMeetTheDriver) {
  const World world;
  FakeAgent agent(world.socket(), {});
  double u = 1;
  ASSERT_EQ(backstay_init(world.config().c_str()), BACKSTAY_OK);
  EXPECT_EQ(backstay_protect("u", &u, 1, BACKSTAY_DOUBLE), BACKSTAY_OK);
  EXPECT_EQ(backstay_checkpoint(), BACKSTAY_OK);
  EXPECT_EQ(backstay_finalize(), BACKSTAY_OK);
  EXPECT_EQ(::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), nullptr);
}

TEST(Device, RegionsGoThereAndBack) {
  const World world;
  FakeAgent agent(world.socket(), {});
  const Driver driver;
  constexpr std::size_t bytes = 3000;
  void* on_gpu = driver.allocate(bytes);
  void* inside = driver.shadow(on_gpu);
  const auto content = pattern(bytes, 1);
  std::memcpy(inside, content.data(), bytes);
  double on_host[5] = {1, 2, 3, 4, 5};

  ASSERT_EQ(backstay_init(world.config().c_str()), BACKSTAY_OK);
  EXPECT_EQ(driver.pinned(), 0) << "nothing is pinned without a region on the GPU";
  ASSERT_EQ(backstay_protect("host", on_host, 5, BACKSTAY_DOUBLE), BACKSTAY_OK);
  ASSERT_EQ(backstay_protect("gpu", on_gpu, bytes, BACKSTAY_BYTE), BACKSTAY_OK);
  EXPECT_EQ(driver.pinned(), 1);
  ASSERT_EQ(backstay_checkpoint(), BACKSTAY_OK) << backstay_error_message();
  EXPECT_GT(driver.synchronized(), 0) << "kernels must have ended before the copy";
  std::memset(inside, 0, bytes);
  std::memset(on_host, 0, sizeof on_host);
  ASSERT_EQ(backstay_restart(nullptr), BACKSTAY_OK) << backstay_error_message();
  EXPECT_EQ(std::memcmp(inside, content.data(), bytes), 0);
  EXPECT_EQ(on_host[4], 5);
  std::memset(inside, 0, bytes);
  ASSERT_EQ(backstay_read_region(1, "gpu", on_gpu, bytes), BACKSTAY_OK);
  EXPECT_EQ(std::memcmp(inside, content.data(), bytes), 0);
  ASSERT_EQ(backstay_finalize(), BACKSTAY_OK);
  EXPECT_EQ(driver.pinned(), 0);
  agent.stop();
  EXPECT_EQ(agent.problem(), "");
}

}  // namespace
}  // namespace backstay::client::test
