// Files without a name that an image holds: removed ones, memfds, shared memory that has no file.
// The same one may be mapped several times, and be open several times. One thread.
#pragma once

#include "capture/image/boot/tables.h"

namespace backstay::image::nameless {

inline constexpr uint32_t files_max = 1024;

// Which one it is: the number that the areas have which show it (docs/format/image.md, "areas").
uint64_t number_of(uint64_t device, uint64_t inode);
// This descriptor has one open.
bool is_one(const Tables& tables, const Descriptor& one);

// In a cut, of whole tables. Trouble: a restart could not make so many. It makes those that are
// mapped first, and keeps of these what is open, too.
void refuse_many(const Tables& tables, Trouble& trouble);

// The rest is for a restart.
// A descriptor of the new file, which stays open until close_all(). The first call for a number
// makes the file: as long as it was, with the bytes that the image holds of an open one. Negative:
// an error.
long file(const Tables& tables, uint64_t number);

// Call it when all areas are mapped. Only files that descriptors of the image have open stay open.
void close_unopened(const Tables& tables);
// Moves our descriptors above all numbers of the image; `numbers` gets the new ones. Returns how
// many.
uint32_t lift(long (&numbers)[files_max]);
void close_all(const Tables& tables);

}  // namespace backstay::image::nameless
