// Filling memory in huge pages. A fault for each page of 4096 bytes takes three times as long as
// the copy; a huge page of 2 MiB has one.
//
// Only where the machine gives huge pages to those who ask (its setting is "madvise"): where it
// gives them to all, nothing needs to be asked, and where it gives none, none is wanted. Only whole
// ones, so memory takes no more room than before. The program's own advice is not saved.
#pragma once

#include "capture/image/boot/tables.h"

namespace backstay::image {

struct Span {
  uint64_t start = 0, end = 0;
};

// Asks for them: after the areas are mapped, before they are filled. Any failure leaves small
// pages.
void ask_for_huge_pages(const Tables& tables);

// Of a run, what is filled in huge pages; empty: nothing.
Span huge_part(const Tables& tables, const Run& run);

// Once all is filled: each area has one kind of advice again, and so is one mapping.
void end_huge_pages(const Tables& tables);

}  // namespace backstay::image
