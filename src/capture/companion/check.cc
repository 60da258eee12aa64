#include "capture/companion/check.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "capture/companion/boot_process.h"
#include "client/mapping.h"

namespace backstay::image {

Status check_saving() {
  constexpr std::size_t pool_bytes = 4096;
  const Fd memory(::memfd_create("backstay-check", MFD_CLOEXEC));
  if (::ftruncate(memory.get(), pool_bytes) != 0) return errno_error("take memory", errno);
  BACKSTAY_ASSIGN(const auto mapped, client::Mapping::of(memory, pool_bytes, true));
  BACKSTAY_ASSIGN(const auto boot, BootProcess::start({"/bin/sleep", "60"}, {}));
  BACKSTAY_TRY(boot->lend({memory.get(), mapped.bytes(), {}}));
  Request request{};
  request.kind = static_cast<std::uint32_t>(Ask::cut);
  BACKSTAY_TRY(boot->ask(request));
  request.kind = static_cast<std::uint32_t>(Ask::fill);
  request.bytes = pool_bytes;
  BACKSTAY_TRY(boot->ask(request));
  return {};
}

}  // namespace backstay::image
