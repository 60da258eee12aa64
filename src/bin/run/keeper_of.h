// Which host keeps copies of whose captured files, and when the next try is. No I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace backstay::bin {

// The host that keeps the copies of `owner`: at the first try the one after it in the list, at the
// second try the next one, and so on, round the list. "": there is no other host.
std::string keeper_of(const std::string& owner, const std::vector<std::string>& hosts,
                      std::size_t tried);

// Before a pair is started again that has been started `in_vain` times since it has worked last: 2
// s, doubled with each time up to 17 minutes. A job of Slurm has a number of steps, often 40 000.
std::uint64_t pause_before_next_ns(unsigned in_vain);

}  // namespace backstay::bin
