// Copies what a memory file holds, hole by hole.
#pragma once

#include <sys/types.h>

namespace backstay::files {

// Writes all data of `from` to the same offsets of `to`; holes are left alone. Moves the offset of
// `from`. Returns an error number.
int copy_data(int from, int to);

// As copy_data, but leaves alone what is zero in `from`: bytes that another process has written
// into `to` stay where this process wrote none.
int merge_data(int from, int to);

// Reserves room in `to` for the data of `from`, without changing its size. Returns ENOSPC or EDQUOT
// where there is none; 0 too where the file system cannot reserve.
int reserve_data(int from, int to);

}  // namespace backstay::files
