// What is known beside a slot, by the slot's number: memory of the program, taken in blocks where
// it is first needed.
#pragma once

#include <stdlib.h>

#include "capture/mpi_library/slots.h"

namespace backstay::mpi {

template <typename T>
class Chunks {
 public:
  // Zeros where it is new. Never null: the process ends where there is no memory.
  T& at(const Slot* slot) {
    const auto index = static_cast<uint32_t>(slot - slots);
    T*& chunk = chunks_[index / each];
    if (chunk == nullptr) chunk = static_cast<T*>(calloc(each, sizeof(T)));
    if (chunk == nullptr) abort();
    return chunk[index % each];
  }
  T* find(const Slot* slot) {
    const auto index = static_cast<uint32_t>(slot - slots);
    T* chunk = chunks_[index / each];
    return chunk != nullptr ? &chunk[index % each] : nullptr;
  }

 private:
  static constexpr uint32_t each = 1024;
  T* chunks_[slots_max / each];
};

}  // namespace backstay::mpi
