#include "capture/companion/told_reason.h"

namespace backstay::image {

namespace {

// "rank 2 (host): it has a file open" without its rank.
std::string without_rank(const std::string& why) {
  const auto colon = why.starts_with("rank ") ? why.find(": ") : std::string::npos;
  return colon == std::string::npos ? why : why.substr(colon + 2);
}

}  // namespace

bool ToldReason::hear(const std::string& why, Time now) {
  if (why != heard_) since_ = now;
  heard_ = why;
  if (why.ends_with(passing_) && now - since_ < lasts) return false;
  return told_.insert(without_rank(why)).second;
}

}  // namespace backstay::image
