// What areas and runs of an image have to do with each other. Both rows are in the order of
// addresses, and each run lies in one area.
#pragma once

#include "capture/image/boot/tables.h"

namespace backstay::image {

// Whether it holds the contents of a file (contents.h), and is no memory of the program.
inline bool is_content(const Area& area) { return (area.flags & area_is_content) != 0; }

inline uint64_t bytes_of(const Run& run) { return run.pages * page_bytes; }
inline uint64_t end_of(const Run& run) { return run.address + bytes_of(run); }

// The area that a run lies in. Ends the process where there is none.
const Area& area_of(const Row<Area>& areas, const Run& run);

// The runs of one area, in order.
class Runs {
 public:
  Runs(const Run* first, const Run* end) : first_(first), end_(end) {}
  const Run* begin() const { return first_; }
  const Run* end() const { return end_; }
  bool empty() const { return first_ == end_; }

 private:
  const Run* first_;
  const Run* end_;
};
Runs runs_of(const Row<Run>& runs, const Area& area);

}  // namespace backstay::image
