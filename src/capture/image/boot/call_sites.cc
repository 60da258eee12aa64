#include "capture/image/boot/call_sites.h"

#include <linux/mman.h>
#include <string.h>

namespace backstay::image {

namespace {

constexpr uint64_t page = 4096;

void write_code(uint8_t* at, const uint8_t* code, uint64_t bytes, uint64_t end) {
  const uint64_t start = reinterpret_cast<uint64_t>(at) & ~(page - 1);
  const uint64_t pages = start + 2 * page <= end ? 2 * page : page;  // it may cross a page
  if (sys_protect(start, pages, PROT_READ | PROT_WRITE) != 0) return;
  memcpy(at, code, bytes);
  sys_protect(start, pages, PROT_READ | PROT_EXEC);
}

bool is_call(const uint8_t* at, uint32_t number) {
  return at[0] == 0xb8 && at[5] == 0x0f && at[6] == 0x05 &&
         memcmp(at + 1, &number, sizeof number) == 0;
}

bool is_site(const uint8_t* at, const CallSite& site) {
  return is_call(at, site.number) && at[7] == 0x48 && at[8] == 0x3d &&
         memcmp(at + 9, &site.errors, sizeof site.errors) == 0;
}

void change_site(uint8_t* at, const CallSite& site, uint64_t end) {
  uint8_t code[CallSite::bytes] = {0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xd0, 0x90};
  memcpy(code + 2, &site.function, sizeof site.function);
  write_code(at, code, sizeof code, end);
}

}  // namespace

uint64_t change_sites(uint64_t start, uint64_t end, const CallSite* sites, uint64_t count) {
  uint64_t changed = 0;
  for (auto* at = reinterpret_cast<uint8_t*>(start);
       at + CallSite::bytes <= reinterpret_cast<uint8_t*>(end); ++at) {
    if (at[0] != 0xb8) continue;
    for (uint64_t i = 0; i < count; ++i) {
      if (!is_site(at, sites[i])) continue;
      change_site(at, sites[i], end);
      ++changed;
      break;
    }
  }
  return changed;
}

uint64_t change_to_zero(uint64_t start, uint64_t end, uint32_t number) {
  constexpr uint8_t zero[short_site_bytes] = {0x48, 0xc7, 0xc0, 0, 0, 0, 0};
  uint64_t changed = 0;
  for (auto* at = reinterpret_cast<uint8_t*>(start);
       at + short_site_bytes <= reinterpret_cast<uint8_t*>(end); ++at) {
    if (!is_call(at, number)) continue;
    write_code(at, zero, sizeof zero, end);
    ++changed;
  }
  return changed;
}

}  // namespace backstay::image
