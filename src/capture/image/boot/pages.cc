#include "capture/image/boot/pages.h"

#include <linux/mman.h>

#include "capture/image/boot/areas.h"
#include "capture/image/boot/kept.h"
#include "capture/image/boot/watch.h"

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
  if ((entry & (bit_present | bit_swapped)) == 0) return false;
  return which == Which::present || (entry & bit_file) == 0;
}

// Joins it to the run before where both are neighbours in memory.
bool add_page(Row<Run>& runs, uint64_t area_start, uint64_t address) {
  Run* last = runs.size() > 0 ? &runs[runs.size() - 1] : nullptr;
  const uint64_t offset = last != nullptr ? last->offset + bytes_of(*last) : 0;
  if (last != nullptr && last->address >= area_start && last->version == 0 &&
      end_of(*last) == address) {
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

// Adds the pages of [start, end) that are not zeros; with `zeros` all of them.
bool add_pages(Row<Run>& runs, uint64_t area_start, uint64_t start, uint64_t end, bool zeros) {
  for (uint64_t at = start; at < end; at += page_bytes) {
    if ((zeros || !is_zero(at)) && !add_page(runs, area_start, at)) return false;
  }
  return true;
}

// False: a read of one of these pages ends in a signal. Kernels before 5.14 cannot tell: true.
bool may_be_read(uint64_t start, uint64_t end) {
  constexpr long populate_for_reading = 22;  // MADV_POPULATE_READ
  constexpr long bad_address = -14;
  return system_call(__NR_madvise, static_cast<long>(start), static_cast<long>(end - start),
                     populate_for_reading) != bad_address;
}

// As add_pages, but leaves out pages whose read ends in a signal: those behind the end of a mapped
// file, and guards (MADV_GUARD_INSTALL), which the page map shows as swapped.
bool add_readable_pages(Row<Run>& runs, uint64_t area_start, uint64_t start, uint64_t end,
                        bool zeros) {
  constexpr uint64_t step = 512 * page_bytes;
  for (uint64_t at = start; at < end; at += step) {
    const uint64_t step_end = end - at < step ? end : at + step;
    const bool all = may_be_read(at, step_end);
    if (all && !add_pages(runs, area_start, at, step_end, zeros)) return false;
    for (uint64_t page = at; !all && page < step_end; page += page_bytes) {
      const uint64_t page_end = page + page_bytes;
      if (!may_be_read(page, page_end)) continue;
      if (!add_pages(runs, area_start, page, page_end, zeros)) return false;
    }
  }
  return true;
}

// Adds pages that the page map shows. Only pages in memory (`present`) can be read without care. A
// changed page of a mapped file counts also if it is zeros, as the file has other bytes there.
bool add_found(Row<Run>& runs, const Area& area, Which which, bool present, uint64_t start,
               uint64_t end) {
  const auto add = present ? add_pages : add_readable_pages;
  return add(runs, area.start, start, end, which == Which::changed);
}

bool add_unwritten(Row<Run>& runs, uint64_t start, uint64_t end) {
  Run* run = runs.add();
  if (run != nullptr) *run = Run{start, (end - start) / page_bytes, 0, kept::unwritten};
  return run != nullptr;
}

// PAGEMAP_SCAN, of Linux 6.7 and later: ranges instead of a word a page.
struct Range {
  uint64_t start, end, categories;
};
constexpr long scan_call = 0xc0606610;
constexpr uint64_t scan_watched_alone = 2;  // fails where the memory is not watched
constexpr uint64_t scan_and_watch = 1;      // what was found counts as unwritten from now on
constexpr uint64_t scan_written = 2;
constexpr uint64_t scan_file = 4;
constexpr uint64_t scan_present = 8;
constexpr uint64_t scan_swapped = 16;
constexpr uint64_t scan_zero = 32;
struct Scan {
  uint64_t bytes = sizeof(Scan), flags, start, end, walk_end = 0, ranges, ranges_max, pages_max = 0;
  uint64_t inverted = 0, all_of = 0, any_of = scan_present | scan_swapped, returned = any_of;

  Scan(uint64_t how, uint64_t from, uint64_t to, Range* found = nullptr, uint64_t room = 0)
      : flags(how),
        start(from),
        end(to),
        ranges(reinterpret_cast<uint64_t>(found)),
        ranges_max(room) {}
};

// Of an area, which is one mapping: its first page tells.
bool is_watched(long fd, const Area& area) {
  Range range{};
  Scan scan(scan_watched_alone, area.start, area.start + page_bytes, &range, 1);
  scan.returned = scan_present;
  return system_call(__NR_ioctl, fd, scan_call, address_of(&scan)) >= 0;
}

// False where this kernel does not know it, the area is not watched, or the row is full (`full`).
bool scan_pages(long fd, const Area& area, Which which, Watching watching, Row<Run>& runs,
                bool& full) {
  static Range ranges[512];
  const uint64_t without = scan_zero | (which == Which::changed ? scan_file : 0);
  const bool watched = watching != Watching::off;
  Scan scan(watched ? scan_watched_alone | scan_and_watch : 0, area.start, area.end, ranges,
            sizeof ranges / sizeof ranges[0]);
  scan.inverted = scan.all_of = without;
  if (watching == Watching::goes_on) scan.returned |= scan_written;
  while (scan.start < area.end) {
    const long count = system_call(__NR_ioctl, fd, scan_call, address_of(&scan));
    if (count < 0) return false;
    for (long i = 0; i < count; ++i) {
      const Range& range = ranges[i];
      const bool read = watching != Watching::goes_on || (range.categories & scan_written) != 0;
      const bool present = (range.categories & scan_swapped) == 0;
      full = read ? !add_found(runs, area, which, present, range.start, range.end)
                  : !add_unwritten(runs, range.start, range.end);
      if (full) return false;
    }
    scan.start = scan.walk_end;
  }
  return true;
}

bool read_pagemap(long fd, const Area& area, Which which, Row<Run>& runs, Trouble& trouble) {
  static uint64_t entries[batch];
  for (uint64_t at = area.start; at < area.end; at += batch * page_bytes) {
    const uint64_t left = (area.end - at) / page_bytes;
    const uint64_t count = left < batch ? left : batch;
    const long got = sys_pread(fd, entries, count * 8, at / page_bytes * 8);
    if (got != static_cast<long>(count * 8)) {
      trouble << "/proc/self/pagemap cannot be read (error " << -got << ")";
      return true;
    }
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t page = at + i * page_bytes;
      if (!is_wanted(entries[i], which)) continue;
      const bool present = (entries[i] & bit_present) != 0;
      if (!add_found(runs, area, which, present, page, page + page_bytes)) return false;
    }
  }
  return true;
}

// How this area is watched from now on.
Watching watch_area(long fd, const Area& area, Watching wanted) {
  if (wanted == Watching::off || is_watched(fd, area)) return wanted;
  return watch::add(area) ? Watching::begins : Watching::off;
}

}  // namespace

bool without_scan = false;

bool is_written(const Area& page) {
  const long fd = sys_open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  Range range{};
  Scan scan(scan_watched_alone | scan_and_watch, page.start, page.end, &range, 1);
  scan.all_of = scan.returned = scan_written;
  const long count = system_call(__NR_ioctl, fd, scan_call, address_of(&scan));
  sys_close(fd);
  return count == 1;
}

bool each_unwritten(const Area& area, VisitUnwritten visit) {
  static Range ranges[64];
  const long fd = sys_open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  Scan scan(scan_watched_alone, area.start, area.end, ranges, sizeof ranges / sizeof ranges[0]);
  scan.inverted = scan.all_of = scan_written;
  bool good = fd >= 0;
  while (good && scan.start < area.end) {
    const long count = system_call(__NR_ioctl, fd, scan_call, address_of(&scan));
    good = count >= 0;
    for (long i = 0; i < count && good; ++i) good = visit(ranges[i].start, ranges[i].end);
    scan.start = scan.walk_end;
  }
  sys_close(fd);
  return good;
}

void forget_writes(const Area& area) {
  const long fd = sys_open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  const Scan scan(scan_watched_alone | scan_and_watch, area.start, area.end);
  system_call(__NR_ioctl, fd, scan_call, address_of(&scan));
  sys_close(fd);
}

void find_pages(const Area& area, Which which, Watching watching, Row<Run>& runs,
                Trouble& trouble) {
  const Readable readable(area, (area.protection & PROT_READ) == 0);
  bool full = false;
  if (which == Which::all || which == Which::whole) {
    full = !add_readable_pages(runs, area.start, area.start, area.end, which == Which::whole);
  } else {
    const long fd = sys_open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    const uint64_t before = runs.size();
    if (fd < 0) {
      trouble << "/proc/self/pagemap cannot be read (error " << -fd << ")";
      return;
    }
    watching = which == Which::present ? watch_area(fd, area, watching) : Watching::off;
    bool found = !without_scan && scan_pages(fd, area, which, watching, runs, full);
    if (!found && !full && watching != Watching::off) {
      runs.resize(before);  // a part of it is not watched
      watch::add(area);
      found = scan_pages(fd, area, which, Watching::off, runs, full);
    }
    if (!found && !full) {
      runs.resize(before);  // an older kernel
      full = !read_pagemap(fd, area, which, runs, trouble);
    }
    sys_close(fd);
  }
  if (full) trouble << "the memory has more pieces than an image can name";
}

}  // namespace backstay::image
