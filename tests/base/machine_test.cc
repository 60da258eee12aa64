// What is left of the memory, from files as the kernel writes them.
#include "base/machine.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace backstay {
namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t mib = 1 << 20;

class Machine : public ::testing::Test {
 protected:
  Machine() {
    std::string name = ::testing::TempDir() + "machine-XXXXXX";
    root_ = ::mkdtemp(name.data());
    write("/proc/meminfo", "MemTotal: 8388608 kB\nMemFree: 1 kB\nMemAvailable: 4194304 kB\n");
  }
  ~Machine() override { fs::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  std::string root_;
};

TEST_F(Machine, WithoutAGroupTheKernelSaysWhatIsAvailable) {
  EXPECT_EQ(memory_left(root_).bytes, 4096 * mib);
  EXPECT_EQ(memory_left(root_).of, "the machine");
}

TEST_F(Machine, TheTightestGroupAboveUsCountsAndCacheDoesNot) {
  write("/proc/self/cgroup", "0::/slurm/job_7/step_0\n");
  write("/sys/fs/cgroup/slurm/job_7/step_0/memory.max", "max\n");
  write("/sys/fs/cgroup/slurm/job_7/memory.max", std::to_string(1024 * mib) + "\n");
  write("/sys/fs/cgroup/slurm/job_7/memory.current", std::to_string(900 * mib) + "\n");
  write("/sys/fs/cgroup/slurm/job_7/memory.stat",
        "anon 1\ninactive_file " + std::to_string(300 * mib) + "\nslab 2\n");
  write("/sys/fs/cgroup/slurm/memory.max", std::to_string(2048 * mib) + "\n");
  write("/sys/fs/cgroup/slurm/memory.current", std::to_string(900 * mib) + "\n");
  EXPECT_EQ(memory_left(root_).bytes, 424 * mib);
  EXPECT_EQ(memory_left(root_).of, "control group /slurm/job_7");
  EXPECT_EQ(memory_bytes(root_), 1024 * mib);
}

TEST_F(Machine, TheFirstVersionOfGroupsCountsToo) {
  write("/proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/box\n0::/\n");
  write("/sys/fs/cgroup/memory/box/memory.limit_in_bytes", std::to_string(512 * mib) + "\n");
  write("/sys/fs/cgroup/memory/box/memory.usage_in_bytes", std::to_string(500 * mib) + "\n");
  write("/sys/fs/cgroup/memory/box/memory.stat",
        "inactive_file 7\ntotal_inactive_file " + std::to_string(100 * mib) + "\n");
  EXPECT_EQ(memory_left(root_).bytes, 112 * mib);
  EXPECT_EQ(memory_left(root_).of, "control group /box");
}

TEST_F(Machine, AFullGroupLeavesNothing) {
  write("/proc/self/cgroup", "0::/\n");
  write("/sys/fs/cgroup/memory.max", "1048576\n");
  write("/sys/fs/cgroup/memory.current", "2097152\n");
  EXPECT_EQ(memory_left(root_).bytes, 0u);
}

TEST_F(Machine, WhereNothingIsKnownNothingIsRefused) {
  EXPECT_EQ(memory_left(root_ + "/none").bytes, UINT64_MAX);
}

}  // namespace
}  // namespace backstay
