// The worked example of docs/format/image.md, as records.
#pragma once

#include "capture/image/format/image.h"

namespace backstay::image::test {

inline constexpr std::uint64_t sample_table_offset = page_bytes;

inline Identity sample_identity() {
  Identity out{};
  out.time_ns = 1'795'000'000'000'000'000;
  out.brk_start = 0x100000;
  out.brk_end = 0x101000;
  out.xfeatures = 7;
  out.xstate_bytes = 832;
  out.rseq_offset = 0x970;
  out.rseq_bytes = 32;
  out.pid = 41;
  out.uid = out.gid = 1000;
  out.umask = 022;
  out.program = 0;
  out.interpreter = 7;
  out.cwd = 11;
  out.kernel = 13;
  out.host = 17;
  return out;
}

// One thread, one area of two pages, of which the second holds something.
inline Image sample_image() {
  Image image;
  image.identity = sample_identity();
  image.texts = std::string(
      "/bin/a\0/ld\0/\0"
      "6.1\0"
      "n\0",
      19);
  image.areas = {{0x7f0000001000, 0x7f0000003000, 0, 0, 1, 3, 0, no_index}};
  image.runs = {{0x7f0000002000, 1, 0, 0}};
  Thread thread{};
  thread.frame = 0x7f0000002100;
  thread.fs = 0x7f0000002800;
  thread.tid = 41;
  thread.flags = thread_leader;
  thread.name[0] = 'a';
  image.threads = {thread};
  image.handlers.resize(signals);
  image.handlers[14] = {0x401000, 0x04000000, 0x402000, 0};
  return image;
}

}  // namespace backstay::image::test
