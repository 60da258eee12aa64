// Which pages of the program's private memory are written: the kernel notes it from one look to the
// next (userfaultfd, write-protected asynchronously; Linux 6.7 and later). The first write to a
// page after a look costs one fault, which the kernel handles by itself.
//
// The notes belong to the mapping: memory that is mapped anew, moved or not watched yet counts as
// written. The kernel also ends the watch of a mapping once another one was moved (mremap) and has
// become a part of it: then all of it counts as written, and what was noted of it is removed. The
// control thread holds the descriptor; a child that the program forks is not watched.
#pragma once

#include "capture/image/boot/tables.h"

namespace backstay::image::watch {

// False: this kernel, or the machine's settings, have nothing of the kind; or this kernel takes
// memory for unwritten that was moved (mremap), as early ones do.
bool begin();
// Begins to watch this area: from now on all of its pages count as written, those too that were
// watched already. False: this area cannot be watched.
bool add(const Area& area);
// As add(); and all pages that are there count as unwritten from now on. An area that cannot be
// watched counts as written.
void start(const Area& area);

// While it is open the kernel watches; -1: there is none. A restart opens it before the control
// thread has descriptors of its own. So it is moved to a number that the image does not use, and
// the program's copy is closed once that thread has its own.
long descriptor();
void move_descriptor(long to);

}  // namespace backstay::image::watch
