#include "capture/image/boot/areas.h"

namespace backstay::image {

namespace {

const Run* first_from(const Row<Run>& runs, uint64_t address) {
  return find_first(runs, [&](const Run& run) { return run.address < address; });
}

}  // namespace

const Area& area_of(const Row<Area>& areas, const Run& run) {
  const Area* found = find_first(areas, [&](const Area& area) { return area.end <= run.address; });
  if (found == areas.end() || run.address < found->start) {
    give_up(Text() << "pages of the image lie in no area", 78);
  }
  return *found;
}

Runs runs_of(const Row<Run>& runs, const Area& area) {
  return {first_from(runs, area.start), first_from(runs, area.end)};
}

}  // namespace backstay::image
