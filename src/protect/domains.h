// Failure domains by number: equal labels are one domain, an empty label is a domain of its own.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace backstay::protect {

// One number a label, in the order of their first appearance: 0, 1, ..
std::vector<std::uint32_t> number_domains(std::span<const std::string> labels);

}  // namespace backstay::protect
