// Journals that SQLite keeps beside a database. SQLite opens a journal only for a transaction, or
// when it first reads the database, and takes what it finds there into the database. A journal of a
// transaction behind the cut would spoil the database of the cut. So a journal belongs to the
// contents of its database, open or not. The index of a write-ahead log counts as a journal, but
// only while the program has it open: otherwise SQLite makes it anew. One thread at a time.
#pragma once

#include "capture/image/boot/tables.h"

namespace backstay::image::journals {

inline constexpr uint32_t kinds = 3;

// Where the journal of this kind beside `database` would be. Valid until the next call.
const char* beside(const char* database, uint32_t kind);
// Whether a file is there that begins as such journals do. SQLite writes that only when it syncs
// one that it has open. Nothing begins as an index.
bool begins_as_one(const char* path, uint32_t kind);

}  // namespace backstay::image::journals
