// Runs what other ranks wait for: whatever it throws becomes an error that all can be told.
#pragma once

#include <exception>
#include <new>

#include "base/result.h"

namespace backstay {

// `body` -> Status. Errors: its own; internal (names the exception).
template <typename Body>
Status attempt(Body&& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return Error(Code::internal, "out of memory");
  } catch (const std::exception& unexpected) {
    return Error(Code::internal, unexpected.what());
  }
}

}  // namespace backstay
