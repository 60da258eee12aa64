// Files whose contents belong to the image: those that fit the patterns of `--contents`, and that
// the program has open for writing at a cut; and SQLite's journals beside them (journals.h). An
// image holds each as an area at an address where the program has nothing, with all pages but those
// of holes. A restart writes them into the file once all of them are there (bring_contents.cc). The
// pages are read from the file, not by a mapping: if another process shortens the file meanwhile,
// that is an error and no signal. One thread at a time.
#pragma once

#include "capture/image/boot/tables.h"

namespace backstay::image::contents {

// Patterns of absolute paths, one a line, as capture/files/pattern.h has them; copied. Null: none.
void fit(const char* patterns, Trouble& trouble);
const char* patterns();  // null: none

// The areas lie behind this address, in order.
inline constexpr uint64_t first_place = lower::range_end + (1ULL << 40);

struct Content {
  uint64_t start, end;  // of its area
  uint64_t bytes;
  uint64_t device, inode;
  uint32_t mode;
  uint32_t path;  // a text of the tables
  long fd;        // the control thread's
};
// Opens them, after the descriptors were described, and SQLite's journals beside them; until
// close().
void open(Tables& tables, Trouble& trouble);
uint64_t count();
const Content& one(uint64_t number);
// The first pages from the address `start` on that are no hole of the file, up to the next hole;
// false: there are none. Where the file system does not tell, there are no holes.
bool next_data(const Content& content, uint64_t& start, uint64_t& end);
void close();
// Bytes of an area; false where the file has become shorter. Behind the file's end are zeros.
bool read(const Area& area, uint64_t address, void* to, uint64_t bytes);
// In a snapshot, before it closes what is the program's: copies them to where their areas are.
void own(const Tables& tables, Trouble& trouble);
// Another process may have written to a file while it was copied: what was copied is no cut then.
void compare(const Tables& tables, Trouble& trouble);

bool any(const Tables& tables);
// Whether the image holds the contents of the file with this path.
bool holds(const Tables& tables, const char* path);

}  // namespace backstay::image::contents
