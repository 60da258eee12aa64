#include "capture/companion/told_reason.h"

namespace backstay::image {

bool ToldReason::hear(const std::string& why, Time now) {
  if (why != heard_) since_ = now;
  heard_ = why;
  if (why == told_) return false;
  if (why.ends_with(passing_) && now - since_ < lasts) return false;
  told_ = why;
  return true;
}

}  // namespace backstay::image
