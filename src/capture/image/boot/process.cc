#include "capture/image/boot/process.h"

#include <linux/prctl.h>

namespace backstay::image {

Process process;

long set_layout(const Identity& layout, uint64_t* auxv, uint64_t auxv_bytes) {
  prctl_mm_map map{};
  map.start_code = layout.code_start;
  map.end_code = layout.code_end;
  map.start_data = layout.data_start;
  map.end_data = layout.data_end;
  map.start_brk = layout.brk_start;
  map.brk = layout.brk_end;
  map.start_stack = layout.stack_start;
  map.arg_start = layout.arg_start;
  map.arg_end = layout.arg_end;
  map.env_start = layout.env_start;
  map.env_end = layout.env_end;
  map.auxv = reinterpret_cast<__u64*>(auxv);
  map.auxv_size = static_cast<__u32>(auxv_bytes);
  map.exe_fd = static_cast<__u32>(-1);
  return system_call(__NR_prctl, PR_SET_MM, PR_SET_MM_MAP, address_of(&map), sizeof map);
}

}  // namespace backstay::image
