#include "capture/image/boot/companion.h"

#include <linux/mman.h>

#include "capture/image/boot/message.h"

namespace backstay::image::companion {

namespace {

constexpr long close_on_exec = 0x40000000;  // MSG_CMSG_CLOEXEC
constexpr long no_signal = 0x4000;          // MSG_NOSIGNAL
constexpr long populate_for_writing = 23;   // MADV_POPULATE_WRITE
constexpr long not_for_children = 10;       // MADV_DONTFORK
constexpr long for_children = 11;           // MADV_DOFORK

uint64_t pool_bytes = 0;

}  // namespace

bool next(long fd, Request& request, long& descriptor) {
  const long got = receive(fd, &request, sizeof request, close_on_exec, descriptor);
  return got == static_cast<long>(sizeof request);
}

void answer(long fd, const Answer& answer) {
  long sent = interrupted;
  while (sent == interrupted) {
    sent = system_call(__NR_sendto, fd, address_of(&answer), sizeof answer, no_signal);
  }
}

namespace {

void say(long fd, const Trouble& trouble, Refused refused) {
  Answer said{};
  said.refused = static_cast<uint32_t>(refused);
  copy_text(said.why, sizeof said.why, trouble.c_str());
  answer(fd, said);
}

}  // namespace

void answer(long fd, const Trouble& trouble) {
  say(fd, trouble, trouble.empty() ? Refused::no : Refused::now);
}

void refuse(long fd, const Trouble& trouble, Refused refused, int code) {
  say(fd, trouble, refused);
  sys_exit(code);
}

// The pages are there already, as the pool's owner has touched them; here those that this rank
// prefers enter this process's page tables, so that no cut pays for it. A child of the program has
// no part in it.
void map_pool(long descriptor, const Request& request, Trouble& trouble) {
  const uint64_t bytes = request.bytes;
  if (pool_bytes > 0) sys_unmap(pool_start, pool_bytes);
  pool_bytes = 0;
  if (bytes == 0 || bytes > window_end - pool_start) {
    trouble << "the agent's pool of " << bytes << " bytes does not fit into the boot program's "
            << "address range";
  } else {
    const long at = sys_map(pool_start, bytes, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_FIXED_NOREPLACE, descriptor);
    if (at == static_cast<long>(pool_start)) {
      pool_bytes = bytes;
      system_call(__NR_madvise, static_cast<long>(pool_start), static_cast<long>(bytes),
                  not_for_children);
      system_call(__NR_madvise, static_cast<long>(pool_start + request.at),
                  static_cast<long>(request.object), populate_for_writing);
    } else {
      trouble << "the agent's pool cannot be mapped into the program (error " << -at
              << "); is its memory limited (ulimit -v)?";
    }
  }
  if (descriptor >= 0) sys_close(descriptor);
}

void give_pool_to_children(bool give) {
  if (pool_bytes == 0) return;
  system_call(__NR_madvise, static_cast<long>(pool_start), static_cast<long>(pool_bytes),
              give ? for_children : not_for_children);
}

uint64_t lent_bytes() { return pool_bytes; }

uint8_t* pool(uint64_t at, uint64_t bytes, Trouble& trouble) {
  if (bytes > pool_bytes || at > pool_bytes - bytes) {
    trouble << "the pool has no such bytes";
    return nullptr;
  }
  return reinterpret_cast<uint8_t*>(pool_start + at);
}

}  // namespace backstay::image::companion
