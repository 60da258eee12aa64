#include "client/regions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "client/device_memory.h"

namespace backstay::client {

namespace {

// More than any machine can address: a larger product is a mistake of the caller.
constexpr std::uint64_t region_bytes_max = std::uint64_t{1} << 47;

Result<std::uint64_t> count_bytes(const std::string& name, const std::uint64_t* shape, int dims,
                                  std::size_t element) {
  if (std::find(shape, shape + dims, 0U) != shape + dims) return std::uint64_t{0};
  std::uint64_t bytes = element;
  for (int i = 0; i < dims; ++i) {
    if (shape[i] > region_bytes_max / bytes) {
      return Error(Code::too_large, "region '" + name +
                                        "' is larger than the limit of 128 TiB: is "
                                        "its count or shape right?");
    }
    bytes *= shape[i];
  }
  return bytes;
}

Status set_place(format::Region& region, const backstay_array& array) {
  const int dims = array.dims;
  const auto all_zero = [dims](const std::uint64_t* counts) {
    return std::all_of(counts, counts + dims, [](std::uint64_t count) { return count == 0; });
  };
  if (all_zero(array.global_shape)) {
    if (all_zero(array.global_offset)) return {};
    return Error(Code::invalid,
                 fmt::format("region '{}': it has a global_offset and no global_shape: give the "
                             "shape of the whole array too, or leave both out",
                             region.name));
  }
  region.global_shape.assign(array.global_shape, array.global_shape + dims);
  region.global_offset.assign(array.global_offset, array.global_offset + dims);
  BACKSTAY_TRY(count_bytes(region.name, array.global_shape, dims, 1));
  for (int i = 0; i < dims; ++i) {
    if (array.shape[i] > array.global_shape[i] ||
        array.global_offset[i] > array.global_shape[i] - array.shape[i]) {
      return Error(Code::invalid, fmt::format("region '{}': in dimension {} the block ({} elements "
                                              "at {}) lies outside of the global array ({})",
                                              region.name, i, array.shape[i],
                                              array.global_offset[i], array.global_shape[i]));
    }
  }
  return {};
}

}  // namespace

Result<ProtectedRegion> describe_region(const char* name, void* data, const backstay_array* array,
                                        backstay_type type) {
  if (name == nullptr) return Error(Code::null, "name is NULL: give the region a name");
  if (array == nullptr) return Error(Code::null, "array is NULL: give its dims and shape");
  if (const auto good = format::check_region_name(name); !good.ok()) return good.error();
  const auto element = static_cast<format::ElementType>(type);
  if (static_cast<int>(type) < BACKSTAY_BYTE || static_cast<int>(type) > BACKSTAY_COMPLEX128) {
    return Error(Code::invalid, fmt::format("region '{}': {} is no element type of backstay.h",
                                            name, static_cast<int>(type)));
  }
  if (array->dims < 1 || array->dims > BACKSTAY_DIMS_MAX) {
    return Error(Code::invalid,
                 fmt::format("region '{}': dims is {}, allowed are 1 to 8", name, array->dims));
  }
  ProtectedRegion region;
  region.description.name = name;
  region.description.type = element;
  region.description.shape.assign(array->shape, array->shape + array->dims);
  BACKSTAY_ASSIGN(region.description.bytes,
                  count_bytes(name, array->shape, array->dims, format::element_bytes(element)));
  BACKSTAY_TRY(set_place(region.description, *array));
  if (data == nullptr && region.description.bytes != 0) {
    return Error(
        Code::null,
        fmt::format("region '{}': data is NULL: give the address of its elements, or a count of 0",
                    name));
  }
  region.data = static_cast<std::byte*>(data);
  region.on_device = DeviceMemory::of(data) != nullptr;
  return region;
}

Status Regions::add(ProtectedRegion region) {
  const std::string& name = region.description.name;
  if (by_name_.count(name) != 0) {
    return Error(Code::duplicate, "region '" + name + "' is protected already: unprotect it first");
  }
  if (regions_.size() >= format::regions_max) {
    return Error(Code::too_large, "more than 1000000 regions are protected");
  }
  by_name_.emplace(name, next_);
  regions_.emplace(next_++, std::move(region));
  return {};
}

Status Regions::remove(const std::string& name) {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) {
    return Error(Code::not_found, "no region '" + name + "' is protected");
  }
  regions_.erase(found->second);
  by_name_.erase(found);
  return {};
}

const ProtectedRegion* Regions::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &regions_.at(found->second);
}

std::string shape_text(const format::Region& region) {
  std::string text =
      fmt::format("{}[{}]", format::element_name(region.type), fmt::join(region.shape, ", "));
  if (!region.global_shape.empty()) {
    text += fmt::format(" of [{}] at [{}]", fmt::join(region.global_shape, ", "),
                        fmt::join(region.global_offset, ", "));
  }
  return text;
}

}  // namespace backstay::client
