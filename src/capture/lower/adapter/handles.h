// Handles of the front for those of the back and the other way.
//
// Open MPI over MPICH: a handle of the front is MPICH's number with a bit above it, which makes an
// address of it that nothing lies at. MPICH over Open MPI: a number that stands in a table. A
// handle of the back keeps its number when it is freed, because Open MPI uses the address again.
#pragma once

#include "capture/lower/adapter/abi.h"

namespace backstay::adapter {

// Learns the back's predefined handles. Null: all is well; else which one is missing.
const char* learn_handles();
// The handle of the front that a row of handles.txt is; 0: the back has none.
uint64_t front_of_row(int row);
// The row of a predefined handle of the front; -1: it is none.
int row_of(Class type, uint64_t front_handle);

#ifdef BACKSTAY_FRONT_MPICH

inline constexpr uint32_t index_mask = 0x03ffffff;

struct Known {
  void* null[16];              // by class
  void* made_before[16][256];  // by class and the number's lowest byte
  void* pairs[8];
  void** made;  // by number
  uint32_t made_count;
};
extern Known known;

// The number of the front; made where it is a new one. Without its class where it is not
// predefined.
uint32_t number_of(void* handle);

template <Class Type>
inline void* to_back(Front<Type> handle) {
  if constexpr (Type == Class::file) {
    return handle != nullptr ? handle : known.null[static_cast<int>(Class::file)];
  } else {
    constexpr auto type = static_cast<int>(Type);
    const uint32_t index = handle & index_mask;
    switch (handle >> 30) {
      case 3: return index < known.made_count ? known.made[index] : nullptr;
      case 2: return index < 8 ? known.pairs[index] : nullptr;
      case 1: return known.made_before[type][handle & 0xff];
      default: return handle != 0 ? known.null[type] : nullptr;
    }
  }
}

template <Class Type>
inline Front<Type> to_front(void* handle) {
  if constexpr (Type == Class::file) {
    return handle != known.null[static_cast<int>(Class::file)] ? handle : nullptr;
  } else {
    // MPICH numbers messages as requests.
    constexpr auto type = static_cast<uint32_t>(Type == Class::message ? Class::request : Type);
    const uint32_t number = number_of(handle);
    return number >> 30 == 3 ? number | type << 26 : number;
  }
}

#else

inline constexpr uint64_t mark = 1ULL << 32;
inline constexpr uint64_t null_file = 2ULL << 32;

template <Class Type>
inline Back<Type> to_back(void* handle) {
  if constexpr (Type == Class::file) {
    return reinterpret_cast<uint64_t>(handle) != null_file ? handle : nullptr;
  } else {
    return static_cast<uint32_t>(reinterpret_cast<uint64_t>(handle));
  }
}

template <Class Type>
inline void* to_front(Back<Type> handle) {
  if constexpr (Type == Class::file) {
    return handle != nullptr ? handle : reinterpret_cast<void*>(null_file);
  } else {
    return reinterpret_cast<void*>(mark | handle);
  }
}

#endif

}  // namespace backstay::adapter
