#include "client/region_fetch.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <new>

#include "client/place.h"
#include "client/regions.h"

namespace backstay::client {

namespace {

Result<format::Region> find_region(ObjectReader& object, const std::string& name,
                                   std::size_t bytes) {
  BACKSTAY_ASSIGN(const format::Table saved, object.table());
  const auto& all = saved.regions;
  const auto region = std::find_if(all.begin(), all.end(), [&](const format::Region& other) {
    return other.kind == format::RegionKind::array && other.name == name;
  });
  if (region == all.end()) {
    return Error(Code::not_found, fmt::format("the version has no region '{}'", name));
  }
  if (region->bytes == bytes) return *region;
  return Error(Code::mismatch, fmt::format("region '{}' was saved as {}, {} bytes; the caller has "
                                           "room for {} bytes",
                                           name, shape_text(*region), region->bytes, bytes));
}

}  // namespace

// Reads into memory of its own first, so that a failure leaves the caller's untouched.
Status fetch_region(ObjectReader& object, const std::string& name, void* data, std::size_t bytes) {
  BACKSTAY_ASSIGN(const format::Region region, find_region(object, name, bytes));
  const std::unique_ptr<std::byte[]> copy(new (std::nothrow) std::byte[bytes]);
  if (copy == nullptr) {
    return Error(Code::too_large, fmt::format("no memory for a second copy of region '{}' ({} "
                                              "bytes)",
                                              name, bytes));
  }
  BACKSTAY_TRY(object.range(region.offset, {copy.get(), bytes}));
  if (bytes == 0) return {};
  return copy_out(memory_at(data), 0, {copy.get(), bytes}, /*sum=*/nullptr);
}

}  // namespace backstay::client
