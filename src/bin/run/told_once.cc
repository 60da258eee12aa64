#include "bin/run/told_once.h"

#include <utility>

namespace backstay::bin {

bool ToldOnce::is_new(const std::string& about, const std::string& trouble) {
  std::string kind = trouble;
  std::erase_if(kind, [](char letter) { return letter >= '0' && letter <= '9'; });
  return told_[about].insert(std::move(kind)).second;
}

}  // namespace backstay::bin
