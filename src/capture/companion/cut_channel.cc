#include "capture/companion/cut_channel.h"

#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace backstay::image {

Result<std::unique_ptr<CutChannel>> CutChannel::make() {
  Fd file(::memfd_create("backstay-cut", MFD_CLOEXEC));
  if (!file.valid()) return errno_error("make memory to share with the program", errno);
  if (::ftruncate(file.get(), static_cast<off_t>(lower::channel_bytes_max)) != 0) {
    return errno_error("make memory to share with the program", errno);
  }
  void* at =
      ::mmap(nullptr, lower::channel_bytes_max, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (at == MAP_FAILED) return errno_error("map memory to share with the program", errno);
  auto* memory = static_cast<lower::Channel*>(at);
  return std::unique_ptr<CutChannel>(new CutChannel(std::move(file), memory));
}

CutChannel::~CutChannel() { ::munmap(memory_, lower::channel_bytes_max); }

std::string CutChannel::path() const {
  return fmt::format("/proc/{}/fd/{}", ::getpid(), file_.get());
}

void CutChannel::wait(std::uint32_t seen, std::chrono::microseconds at_most) {
  timespec time{};
  time.tv_sec = at_most.count() / 1'000'000;
  time.tv_nsec = at_most.count() % 1'000'000 * 1000;
  ::syscall(SYS_futex, &memory_->told, FUTEX_WAIT, seen, &time, nullptr, 0);
}

}  // namespace backstay::image
