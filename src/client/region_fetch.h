// Reading one region of a saved object into memory of the caller's.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"
#include "client/object_reader.h"

namespace backstay::client {

// A failure leaves `data` untouched. Errors: not_found, mismatch (another size), too_large, and
// those of the reading.
Status fetch_region(ObjectReader& object, const std::string& name, void* data, std::size_t bytes);

}  // namespace backstay::client
