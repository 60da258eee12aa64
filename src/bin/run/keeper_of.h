// Which host keeps copies of whose captured files. No I/O.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace backstay::bin {

// The host that keeps the copies of `owner`: at the first try the one after it in the list, at the
// second try the next one, and so on, round the list. "": there is no other host.
std::string keeper_of(const std::string& owner, const std::vector<std::string>& hosts,
                      std::size_t tried);

}  // namespace backstay::bin
