// The kernel's code for clock_gettime and others in the program's address space. libc keeps
// pointers into it, so after a restart it must lie where it was and have its functions where they
// were.
#pragma once

#include "capture/image/boot/tables.h"

namespace backstay::image {

// Moves this process's own into the window, out of the way of the areas to come.
void keep_vdso();
// Room in the window for the pages of the image's vdso. Trouble: there are too many.
void keep_room_for_vdso(const Area& area, Trouble& trouble);
uint8_t* room_for_vdso(uint64_t offset);

}  // namespace backstay::image
