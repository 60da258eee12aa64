// The kernel's code for clock_gettime and others in the program's address space. libc keeps
// pointers into it, so after a restart it must lie where it was and have its functions where they
// were.
#pragma once

#include "capture/image/boot/sink.h"
#include "capture/image/boot/tables.h"

namespace backstay::image {

// Moves this process's own into the window, out of the way of the areas to come.
void keep_vdso();
// Reads pages of the image's vdso into the window.
void take_vdso_page(const Area& area, const Run& run, const Source& source, Trouble& trouble);

}  // namespace backstay::image
