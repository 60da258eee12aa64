// The streams of a version (docs/format/streams.md), as `backstay show` lists them.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "format/streams.h"

namespace backstay::bin {

// By name, over all ranks that are here.
class FoundStreams {
 public:
  void add(const std::vector<format::Stream>& of_one_rank);

  // A table with a title line, cut short where there are many; nothing where there are none.
  std::string text() const;
  nlohmann::ordered_json json() const;

 private:
  struct Sum {
    std::uint64_t ranks = 0;
    std::uint64_t bytes = 0;
  };
  std::vector<std::string> order_;  // as the first rank opened them
  std::map<std::string, Sum> sums_;
  std::uint64_t streams_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace backstay::bin
