#include "capture/image/boot/pages.h"

#include <linux/mman.h>

namespace backstay::image {

namespace {

constexpr uint64_t bit_present = 1ULL << 63;
constexpr uint64_t bit_swapped = 1ULL << 62;
constexpr uint64_t bit_file = 1ULL << 61;
constexpr uint64_t batch = 4096;

bool is_zero(uint64_t address) {
  const auto* words = reinterpret_cast<const uint64_t*>(address);
  for (uint64_t i = 0; i < page_bytes / sizeof *words; i += 8) {
    const uint64_t any = words[i] | words[i + 1] | words[i + 2] | words[i + 3] | words[i + 4] |
                         words[i + 5] | words[i + 6] | words[i + 7];
    if (any != 0) return false;
  }
  return true;
}

bool is_wanted(uint64_t entry, Which which) {
  if (which == Which::all) return true;
  if ((entry & (bit_present | bit_swapped)) == 0) return false;
  return which == Which::present || (entry & bit_file) == 0;
}

// Joins it to the run before where both are neighbours in memory.
bool add_page(Row<Run>& runs, uint64_t area_start, uint64_t address) {
  Run* last = runs.size() > 0 ? &runs[runs.size() - 1] : nullptr;
  const uint64_t offset = last != nullptr ? last->offset + last->pages * page_bytes : 0;
  if (last != nullptr && last->address >= area_start &&
      last->address + last->pages * page_bytes == address) {
    ++last->pages;
    return true;
  }
  Run* run = runs.add();
  if (run == nullptr) return false;
  *run = Run{address, 1, offset, 0};
  return true;
}

// Pages that may not be read are made readable meanwhile: no other thread runs.
struct Readable {
  Readable(const Area& area, bool needed) : area_(area), needed_(needed) {
    if (needed_) sys_protect(area.start, area.end - area.start, PROT_READ);
  }
  ~Readable() {
    if (needed_)
      sys_protect(area_.start, area_.end - area_.start, static_cast<int>(area_.protection));
  }
  Readable(const Readable&) = delete;
  Readable& operator=(const Readable&) = delete;

 private:
  const Area& area_;
  bool needed_;
};

}  // namespace

void find_pages(const Area& area, Which which, Row<Run>& runs, Trouble& trouble) {
  static uint64_t entries[batch];
  const long fd = sys_open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    trouble << "/proc/self/pagemap cannot be read (error " << -fd << ")";
    return;
  }
  const Readable readable(area, (area.protection & PROT_READ) == 0);
  for (uint64_t at = area.start; at < area.end && trouble.empty(); at += batch * page_bytes) {
    const uint64_t left = (area.end - at) / page_bytes;
    const uint64_t count = left < batch ? left : batch;
    const long got = sys_pread(fd, entries, count * 8, at / page_bytes * 8);
    if (got != static_cast<long>(count * 8)) {
      trouble << "/proc/self/pagemap cannot be read (error " << -got << ")";
      break;
    }
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t address = at + i * page_bytes;
      if (!is_wanted(entries[i], which) || is_zero(address)) continue;
      if (!add_page(runs, area.start, address)) {
        trouble << "the memory has more pieces than an image can name";
        break;
      }
    }
  }
  sys_close(fd);
}

}  // namespace backstay::image
