// What `backstay run` has told of copies of captured files: each trouble once, whatever the
// versions and files that meet it. No I/O.
#pragma once

#include <map>
#include <set>
#include <string>

namespace backstay::bin {

class ToldOnce {
 public:
  // True the first time since forget(). `about`: the hosts. Digits in `trouble` do not count.
  bool is_new(const std::string& about, const std::string& trouble);
  // Their troubles are over.
  void forget(const std::string& about) { told_.erase(about); }

 private:
  std::map<std::string, std::set<std::string>> told_;
};

}  // namespace backstay::bin
