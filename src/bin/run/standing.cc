#include "bin/run/standing.h"

#include <algorithm>

namespace backstay::bin {
namespace {

double seconds(std::uint64_t from_ns, std::uint64_t to_ns) {
  return to_ns > from_ns ? static_cast<double>(to_ns - from_ns) * 1e-9 : 0;
}

}  // namespace

// A run that has lost a rank before it had its data has not computed; one that asked for none has.
void Standing::lost(std::uint64_t at) {
  computes();
  if (!failed_) failed_ = at;
}

void Standing::began(std::uint64_t at, std::uint64_t ended) {
  if (!failed_) return;
  const std::uint64_t from = *failed_;
  if (ended_ == 0) ended_ = std::clamp(ended, from, std::max(at, from));
  began_ = at;
  read_ = 0;
}

void Standing::reads(std::uint64_t at) {
  if (failed_ && read_ == 0) read_ = at;
}

void Standing::restored(std::uint64_t at) {
  if (failed_ && began_ != 0) over(read_ == 0 ? at : read_, at);
}

void Standing::computes() {
  if (failed_ && began_ != 0 && read_ == 0) over(began_, began_);
}

void Standing::over(std::uint64_t read, std::uint64_t computing) {
  times_.noticing_s += seconds(*failed_, ended_);
  times_.launching_s += seconds(ended_, began_);
  times_.init_s += seconds(began_, read);
  times_.reading_s += seconds(read, computing);
  failed_.reset();
  ended_ = began_ = read_ = 0;
}

}  // namespace backstay::bin
