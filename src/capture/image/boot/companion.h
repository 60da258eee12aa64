// The boot program's end of the line to its companion (format/requests.h), and the pool that the
// companion lends. Only one thread uses it at a time: the boot's first, later its control thread.
#pragma once

#include "capture/image/boot/tables.h"
#include "capture/image/format/requests.h"

namespace backstay::image::companion {

// The next request, with the descriptor that came along (-1: none). False: the companion has ended.
bool next(long fd, Request& request, long& descriptor);
void answer(long fd, const Answer& answer);
void answer(long fd, const Trouble& trouble);  // empty: yes
// Before the program runs: says why it will not, and ends the process. `refused`: ends, or image.
[[noreturn]] void refuse(long fd, const Trouble& trouble, Refused refused, int code);

// Maps the pool in the place of the one before, and closes the descriptor.
void map_pool(long descriptor, const Request& request, Trouble& trouble);
// Of the pool that is mapped; 0: none.
uint64_t lent_bytes();
// Whether a copy of this process has the pool, too.
void give_pool_to_children(bool give);
// Memory of the pool. Trouble: it has no such bytes.
uint8_t* pool(uint64_t at, uint64_t bytes, Trouble& trouble);

}  // namespace backstay::image::companion
