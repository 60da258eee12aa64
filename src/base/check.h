// BACKSTAY_CHECK(condition): an assertion about our own code. It stays on in every build of the
// agent and the tools. Errors are for the world, assertions are for us.
//
// The client library must never end the user's program: there, code that is reached from the
// public API returns Code::internal instead of checking.
#pragma once

namespace backstay {
[[noreturn]] void check_failed(const char* condition, const char* file, int line);
}  // namespace backstay

#define BACKSTAY_CHECK(condition) \
  ((condition) ? (void)0 : ::backstay::check_failed(#condition, __FILE__, __LINE__))
