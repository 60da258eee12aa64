// Which pages of an area an image holds: those that are there and not zeros; and which of them were
// written since the last look. Pages whose read ends in a signal are left out.
#pragma once

#include "capture/image/boot/tables.h"

namespace backstay::image {

enum class Which {
  present,  // of private memory without a file
  changed,  // of a private mapping of a file: pages that differ from it, zeros too
  all,      // memory that may be there although this process has not touched it
  whole     // zeros too: a restart writes over what is there
};

// Reads a word a page, as on kernels before 6.7. For tests.
extern bool without_scan [[gnu::visibility("hidden")]];

// How private memory without a file is watched (watch.h).
enum class Watching {
  off,
  begins,   // this look is the first one that counts
  goes_on,  // pages that were not written since the look before are marked (kept.h), and not read
};

// Of one watched page that is there; from now on it counts as unwritten.
bool is_written(const Area& page);

// Calls visit(start, end) for each part of a watched area whose pages are there and count as
// unwritten, until one returns false. False: not all were visited.
using VisitUnwritten = bool (*)(uint64_t start, uint64_t end);
bool each_unwritten(const Area& area, VisitUnwritten visit);

// All pages of a watched area that are there count as unwritten from now on.
void forget_writes(const Area& area);

// Adds its runs, with offsets behind those of the runs before.
void find_pages(const Area& area, Which which, Watching watching, Row<Run>& runs, Trouble& trouble);

}  // namespace backstay::image
