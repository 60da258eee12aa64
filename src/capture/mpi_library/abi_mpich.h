// Handles of MPICH's ABI (libmpich.so.12): numbers of 4 bytes, whose two highest bits say how the
// handle came to be, the next four what it is. Files are pointers.
#pragma once

#include "capture/mpi_library/slots.h"

namespace backstay::mpi::abi {

inline constexpr const char* library = "libmpich.so.12";
inline constexpr bool handles_are_pointers = false;
inline constexpr bool is_mpich = true;
// Fortran's number of a predefined handle is the handle.
inline constexpr bool numbers_are_handles = true;
inline constexpr int version_major = -1, version_minor = -1;  // of no standard ABI
// The address that means MPI_COMM_DUP_FN; 0: that is a function.
inline constexpr uint64_t duplicate_function = 0;
using RealElement = uint32_t;  // in an array of real handles

template <Class Type>
struct HandleOf {
  using type = uint32_t;
};
template <>
struct HandleOf<Class::file> {
  using type = Slot*;
};
template <Class Type>
using Handle = typename HandleOf<Type>::type;

// Real handles and values that this library itself uses.
inline uint64_t world() { return 0x44000000; }
inline uint64_t self() { return 0x44000001; }
inline uint64_t byte() { return 0x4c00010d; }
inline uint64_t packed() { return 0x4c00010f; }
inline uint64_t uint64() { return 0x4c00083e; }
inline uint64_t max() { return 0x58000001; }
inline uint64_t errors_are_fatal() { return 0x54000000; }
inline uint64_t errors_return() { return 0x54000001; }
// The standard leaves open in which order attributes are copied, whether MPI_Comm_dup takes the
// hints along, and MPI_Comm_create_group the error handler.
inline constexpr bool copies_last_first = true;
inline constexpr bool copies_hints = false;
inline constexpr bool copies_error_handler = false;
inline constexpr int undefined = -32766;
inline constexpr int keyval_invalid = 0x24000000;
inline bool is_win_base(int keyval) { return keyval == 0x66000001; }
inline bool is_win_size(int keyval) { return keyval == 0x66000003; }
// MPI's own keyvals: an odd number in C, and the next one in Fortran, which no other MPI knows.
inline int own_keyval_in_c(int keyval) {
  const bool is_own = keyval >> 24 == 0x64 || keyval >> 24 == 0x66;
  return is_own && keyval % 2 == 0 ? keyval - 1 : keyval;
}
inline constexpr int err_count = 2;
inline constexpr int err_truncate = 14;
inline constexpr int err_other = 15;
inline constexpr int err_no_mem = 34;
// MPICH's own address where the program gives one that means something else than an array.
void* real_address(void* address);
void* unweighted();
inline constexpr int graph = 1, cartesian = 2, distributed_graph = 3;
inline constexpr int thread_multiple = 3;

enum : uint32_t { made_null = 0, made_before = 1, made_direct = 2, made_indirect = 3 };
inline constexpr uint32_t index_mask = 0x03ffffff;
inline uint32_t made(uint32_t handle) { return handle >> 30; }

// The null handle of a class. MPICH has messages among its requests, and so do we: their number
// says so to a reader.
template <Class Type>
constexpr uint64_t null() {
  return Type == Class::file
             ? 0
             : static_cast<uint64_t>(Type == Class::message ? Class::request : Type) << 26;
}

// Handles of ours are marked as MPICH marks those beyond its first blocks.
template <Class Type>
uint32_t number_of(const Slot* slot) {
  return made_indirect << 30 | static_cast<uint32_t>(null<Type>()) |
         static_cast<uint32_t>(slot - slots);
}

// Null where the handle is no slot's.
template <Class Type>
Slot* slot_of(Handle<Type> handle) {
  if constexpr (Type == Class::file) {
    return handle;
  } else {
    return made(handle) == made_indirect ? &slots[handle & index_mask] : nullptr;
  }
}

template <Class Type>
uint64_t real(Handle<Type> handle) {
  if constexpr (Type == Class::file) {
    return handle != nullptr ? handle->real : 0;
  } else {
    return made(handle) == made_indirect ? slots[handle & index_mask].real : handle;
  }
}

template <Class Type>
bool is_null(uint64_t real) {
  return Type == Class::file ? real == 0 : made(static_cast<uint32_t>(real)) == made_null;
}

// Handles that are the same in each process. Requests that are complete at once look so too, but
// belong to one life of a process. The five types of pairs with gaps are made at MPICH's start.
template <Class Type>
bool is_predefined(uint64_t real) {
  constexpr uint32_t pairs = 5;
  const auto number = static_cast<uint32_t>(real);
  if (is_null<Type>(real)) return true;
  if (Type == Class::file || Type == Class::request) return false;
  if (Type == Class::datatype && made(number) == made_direct) return (number & index_mask) < pairs;
  return made(number) == made_before;
}

template <Class Type>
Handle<Type> predefined(uint64_t real) {
  if constexpr (Type == Class::file) {
    return nullptr;
  } else {
    return static_cast<uint32_t>(real);
  }
}

// The handle that an argument's word is.
template <typename Type>
Type handle_of_word(uint64_t word) {
  return static_cast<Type>(word);
}

template <Class Type>
Handle<Type> handle_of(Slot* slot) {
  if constexpr (Type == Class::file) {
    return slot;
  } else {
    return number_of<Type>(slot);
  }
}

// --- what a call says and gets by number

struct Status {
  int count_low, count_high;  // the high one's lowest bit: cancelled
  int source, tag, error;
};
inline uint64_t bytes_of(const Status& status) {
  return static_cast<uint32_t>(status.count_low) |
         static_cast<uint64_t>(static_cast<uint32_t>(status.count_high) >> 1) << 32;
}
inline bool is_ignored(const void* status) { return reinterpret_cast<uint64_t>(status) <= 1; }
inline constexpr int any_source = -2;
inline constexpr int any_tag = -1;
inline constexpr int process_null = -1;
inline constexpr int root = -3;
inline constexpr int error_in_status = 17;

}  // namespace backstay::mpi::abi
