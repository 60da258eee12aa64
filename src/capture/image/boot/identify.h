// Which file it is: by build id where it is an ELF file with one, else by a hash of its content.
#pragma once

#include "capture/image/boot/files.h"
#include "capture/image/format/layout.h"

namespace backstay::image {

// Fills all but the path. `content`: its bytes matter (a private or read-only mapping).
void identify(const char* path, const FileStatus& status, bool content, File& file,
              Trouble& trouble);

// Says how the file that is there now differs from the recorded one. `content`: as above; a file
// that is too large for a hash must then have the same length and time of change.
void compare(const char* path, const File& recorded, bool content, Trouble& trouble);

}  // namespace backstay::image
