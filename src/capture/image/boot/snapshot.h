// A snapshot: a copy of the stopped process, made by the kernel's fork. The image is read out of
// the copy while the program runs; the kernel copies the pages that the program writes meanwhile.
//
// The copy has one thread, that of the control thread, and no descriptor but its channel: a lock, a
// pipe or a socket of the program is not held any longer by it. It is no child of the program but
// of the program's parent, so that the program never meets it in wait(), and it ends with that
// parent, or with the channel. The machine's memory being short, it ends before the program does.
#pragma once

#include "capture/image/boot/tables.h"
#include "capture/image/format/requests.h"

namespace backstay::image::snapshot {

// In a cut whose tables are complete. Returns the process id of the copy, and 0 in the copy, where
// `trouble` says why it is of no use. Else trouble: there is none, and nothing has changed;
// `refused`: now (this program has none), again (the machine has none to give).
long fork(long channel, const Tables& tables, uint64_t kept_bytes, Refused& refused,
          Trouble& trouble);

}  // namespace backstay::image::snapshot
