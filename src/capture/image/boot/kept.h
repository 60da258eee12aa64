// What an image keeps of the one before (docs/format/image.md, "Pages that are kept"): which of its
// chunks, and so where each page lies in the object. Used by the control thread, in a cut; what is
// remembered lives until the next one.
#pragma once

#include "capture/image/boot/tables.h"
#include "capture/image/format/requests.h"

namespace backstay::image::kept {

// A chunk of the image before that holds pages alone.
struct Piece {
  uint64_t offset = 0, bytes = 0;
  uint64_t live = 0;   // bytes of it that still are the program's
  uint64_t moved = 0;  // where it begins in the new object; not_kept: nowhere
};
inline constexpr uint64_t not_kept = ~0ULL;

// Runs whose `version` is this are of pages that were not written since the image before: they may
// be zeros, too.
inline constexpr uint64_t unwritten = 1;

// There is an image before, and its pages were watched since then.
bool any();
// Gives each run its offset; those of unwritten pages are cut in pieces, or go away where they are
// zeros. Kept chunks come first. Returns their bytes. Trouble: more runs than there is room for.
uint64_t place(const Row<Area>& areas, Row<Run>& runs, Trouble& trouble);
// The chunks that place() has kept, in order; their offsets are those of the image before. They are
// there until the cut ends.
const Row<Piece>& pieces();

// The image just made is the one before from now on. Its chunks: those that were kept, then
// `chunk_bytes` each.
void remember(const Row<Run>& runs, uint64_t kept_bytes, uint64_t pages_end, uint64_t chunk_bytes);
// The same for the image that is just brought back, with the chunks that its object has, in order:
// those that end before `pages_end` hold pages alone. False: there are too many.
bool remember_restored(const Row<Run>& runs, const Row<KeptChunk>& chunks, uint64_t pages_end);
void forget();

}  // namespace backstay::image::kept
