// Reading one region of a saved object into memory of the caller's.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"
#include "client/fetch.h"

namespace backstay::client {

// A failure leaves `data` untouched. Errors: not_found, mismatch (another size), too_large, and
// those of a fetch.
Status fetch_region(Fetch& fetch, const std::string& name, void* data, std::size_t bytes);

}  // namespace backstay::client
