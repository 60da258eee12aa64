// One cut: stops the program's threads, writes its image to a sink, lets them go on. Called by the
// control thread. A cut that is refused or fails leaves the program as it was.
#pragma once

#include "capture/image/boot/sink.h"

namespace backstay::image {

struct CutResult {
  uint64_t bytes = 0, pages = 0;
  uint64_t agreeing_ns = 0;    // until the last thread stood still
  uint64_t describing_ns = 0;  // the tables, and which pages hold something
  uint64_t stopped_ns = 0;     // from the first that stood still until all went on
};

void cut(const Sink& sink, CutResult& result, Trouble& trouble);

}  // namespace backstay::image
