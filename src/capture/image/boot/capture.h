// A cut: the program's threads stop, the process is described, its image is read front to back, the
// threads go on. Called by the control thread. A cut that is refused or fails leaves the program as
// it was.
#pragma once

#include "capture/image/boot/sink.h"
#include "capture/image/format/requests.h"

namespace backstay::image {

struct CutResult {
  uint64_t bytes = 0, pages = 0;
  uint64_t kept_bytes = 0;     // of `bytes`, its front: chunks of the last image (kept.h), not read
  uint64_t table_bytes = 0;    // of `bytes`, its end
  uint64_t agreeing_ns = 0;    // until the last thread stood still
  uint64_t describing_ns = 0;  // the tables, and which pages hold something
  uint64_t stopped_ns = 0;     // from the first that stood still until all went on
  Refused refused = Refused::no;
  uint64_t contents = 0;            // files whose contents it has
  char not_in_image[why_max] = {};  // a file whose pages a restart does not bring back; empty: none
};

struct CutWishes {
  const char* notes = "";    // a text for the image
  bool tersely = false;      // a child need not be named
  bool watches = false;      // which pages are written is noted from now on
  bool keeps = false;        // what the last image has and was not written since then stays there
  uint64_t chunk_bytes = 0;  // in which the image will be read
};

// Trouble: the threads have gone on, and `refused` says how to go on with it.
void begin_cut(const CutWishes& wishes, CutResult& result, Trouble& trouble);
// The next bytes of the image, in pieces: visit(const void*, uint64_t) -> bool, false to stop.
// False: stopped, or the image has no such bytes.
struct Visitor {
  void* context;
  bool (*visit)(void* context, const void* bytes, uint64_t size);
};
bool read_cut(uint64_t size, const Visitor& visitor);
// After each part: trouble where it is no cut, once all was read or a part could not be.
void check_cut(bool read, Trouble& trouble);
void end_cut(CutResult& result);
// While a cut is under way: a copy of the process, in which the cut goes on, whatever becomes of
// this one (snapshot.h). read_cut() goes on there where it is here.
long fork_cut(long channel, Refused& refused, Trouble& trouble);

// All of it.
void cut(const Sink& sink, CutResult& result, Trouble& trouble);

}  // namespace backstay::image
