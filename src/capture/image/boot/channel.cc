#include "capture/image/boot/channel.h"

#include <linux/mman.h>

#include "capture/image/boot/system.h"
#include "capture/lower/channel.h"

namespace backstay::image {

namespace {
char name[4096];
}

void name_channel(const char* path) {
  if (path != nullptr) copy_text(name, sizeof name, path);
}

const char* channel_name() { return name[0] != 0 ? name : nullptr; }

// Most of it is never touched: it has room for the largest job.
void map_channel(Trouble& trouble) {
  long file = -1;
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
  if (name[0] != 0) {
    file = sys_open(name, O_RDWR | O_CLOEXEC);
    flags = MAP_SHARED | MAP_FIXED_NOREPLACE;
    if (file < 0) {
      trouble << "the companion's memory " << name << " cannot be opened (error " << -file << ")";
      return;
    }
  }
  const long at =
      sys_map(lower::channel_place, lower::channel_bytes_max, PROT_READ | PROT_WRITE, flags, file);
  if (at != static_cast<long>(lower::channel_place)) {
    trouble << "the address range of the boot program is taken (error " << -at << ")";
  }
  if (file >= 0) sys_close(file);
}

}  // namespace backstay::image
