// Assertions on Status and Result that print the error.
#pragma once

#include <gtest/gtest.h>

#include "base/result.h"

namespace backstay::testing {

template <typename T>
::testing::AssertionResult is_ok(const Result<T>& result) {
  if (result.ok()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << result.error().to_string();
}

template <typename T>
::testing::AssertionResult fails_with(const Result<T>& result, Code code) {
  if (result.ok()) return ::testing::AssertionFailure() << "it succeeded";
  if (result.error().code() == code) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << result.error().to_string();
}

}  // namespace backstay::testing
