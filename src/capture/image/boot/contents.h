// Files whose contents belong to the image: those that fit the patterns of `--contents`, and that
// the program has open for writing at a cut. For the time of the cut each is mapped shared, as if
// the program had mapped it: an image holds all pages of such an area, and a restart writes them
// back (describe_areas.cc, bring_memory.cc). The areas are marked, as the program has none there.
// One thread at a time.
#pragma once

#include "capture/image/boot/tables.h"

namespace backstay::image::contents {

// Patterns of absolute paths, one a line, as capture/files/pattern.h has them; copied. Null: none.
void fit(const char* patterns, Trouble& trouble);
const char* patterns();  // null: none

// After the descriptors were described, before the areas are. Until unmap().
void map(const Tables& tables, Trouble& trouble);
bool is_one(uint64_t start);  // an area that begins here
void unmap();
// Another process may have written to a file while it was copied: what was copied is no cut then.
void compare(const Tables& tables, Trouble& trouble);

bool any(const Tables& tables);  // areas that are marked

// Of a restart: whether the image holds the contents of the file with this path.
bool holds(const Tables& tables, const char* path);
// Makes the file where it is not there, with the length that it had. A descriptor for its mapping,
// or a negative error.
long open(const Tables& tables, const Area& area);

}  // namespace backstay::image::contents
