#include "capture/image/boot/huge_pages.h"

#include "capture/image/boot/areas.h"
#include "capture/image/boot/files.h"

namespace backstay::image {

namespace {

constexpr uint64_t huge_bytes = uint64_t{2} << 20;
constexpr long advice_huge = 14;            // MADV_HUGEPAGE
constexpr long advice_small = 15;           // MADV_NOHUGEPAGE
constexpr long advice_populate_write = 23;  // MADV_POPULATE_WRITE

bool asked = false;

void advise(uint64_t start, uint64_t end, long advice) {
  system_call(__NR_madvise, static_cast<long>(start), static_cast<long>(end - start), advice);
}

bool contains(const char* text, const char* part) {
  for (; *text != 0; ++text) {
    size_t at = 0;
    while (part[at] != 0 && text[at] == part[at]) ++at;
    if (part[at] == 0) return true;
  }
  return false;
}

bool are_for_those_who_ask() {
  Lines lines("/sys/kernel/mm/transparent_hugepage/enabled");
  const char* line = lines.good() ? lines.next() : nullptr;
  return line != nullptr && contains(line, "[madvise]");
}

bool may_be_huge(const Area& area) {
  return area.kind == static_cast<uint32_t>(AreaKind::anonymous) &&
         (area.flags & area_grows_down) == 0;
}

}  // namespace

void ask_for_huge_pages(const Tables& tables) {
  asked = are_for_those_who_ask();
  const Area* prepared = nullptr;
  for (const Run& run : tables.runs) {
    const Span part = huge_part(tables, run);
    if (part.start == part.end) continue;
    // Parts of a mapping that are made before its first page cannot become one mapping again.
    const Area& area = area_of(tables.areas, run);
    if (prepared != &area) advise(run.address, run.address + page_bytes, advice_populate_write);
    prepared = &area;
    advise(part.start, part.end, advice_huge);
  }
}

Span huge_part(const Tables& tables, const Run& run) {
  const uint64_t start = (run.address + huge_bytes - 1) & ~(huge_bytes - 1);
  const uint64_t end = end_of(run) & ~(huge_bytes - 1);
  if (!asked || start >= end || !may_be_huge(area_of(tables.areas, run))) return {};
  return {start, end};
}

void end_huge_pages(const Tables& tables) {
  if (!asked) return;
  for (const Area& area : tables.areas) {
    if (may_be_huge(area)) advise(area.start, area.end, advice_small);
  }
}

}  // namespace backstay::image
