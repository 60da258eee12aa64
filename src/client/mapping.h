// Shared memory that another process handed over: mapped once, unmapped by its owner.
#pragma once

#include <cstddef>
#include <span>

#include "base/fd.h"
#include "base/result.h"

namespace backstay::client {

class Mapping {
 public:
  Mapping() = default;
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  // Maps the first `bytes` of `memory`. Errors: protocol (the memory is shorter: touching it
  // would kill the program), io.
  static Result<Mapping> of(const Fd& memory, std::size_t bytes, bool writable);

  std::span<std::byte> bytes() const { return {start_, bytes_}; }

 private:
  std::byte* start_ = nullptr;
  std::size_t bytes_ = 0;
};

// Makes every page of `memory` present, for writing, without changing a byte: it may be in use.
void touch(std::span<std::byte> memory);

}  // namespace backstay::client
