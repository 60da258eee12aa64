// The regions that a program protects: name, place in memory, type and shape.
//
// Owns the names and shapes, never the data. In the order in which they were protected.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>

#include "backstay/backstay.h"
#include "base/result.h"
#include "format/object.h"

namespace backstay::client {

struct ProtectedRegion {
  format::Region description;  // offset is meaningless here
  std::byte* data = nullptr;
  bool on_device = false;
};

// Builds the description from the caller's arguments.
// Errors: null, invalid (both name the argument), too_large (names the limit).
Result<ProtectedRegion> describe_region(const char* name, void* data, const backstay_array* array,
                                        backstay_type type);

class Regions {
 public:
  // Errors: duplicate, too_large (too many).
  Status add(ProtectedRegion region);
  // Errors: not_found.
  Status remove(const std::string& name);

  const ProtectedRegion* find(const std::string& name) const;
  // By age: the key means nothing but the order.
  const std::map<std::uint64_t, ProtectedRegion>& all() const { return regions_; }

 private:
  std::map<std::uint64_t, ProtectedRegion> regions_;
  std::unordered_map<std::string, std::uint64_t> by_name_;
  std::uint64_t next_ = 0;
};

// "float64[100, 3] of [400, 3] at [100, 0]", for messages.
std::string shape_text(const format::Region& region);

}  // namespace backstay::client
