// Handles of MPI's own ABI (MPI 5.0, chapter 20; libmpi_abi.so.1): addresses. Those of predefined
// handles are small numbers, the same in each MPI that has it. Today these are MPICH 5.0 and Intel
// MPI, so what the standard leaves open is as in MPICH.
#pragma once

#include "capture/mpi_library/slots.h"

namespace backstay::mpi::abi {

inline constexpr const char* library = "libmpi_abi.so.1";
inline constexpr bool handles_are_pointers = true;
inline constexpr bool is_mpich = true;
// Fortran's number of a predefined handle is the handle.
inline constexpr bool numbers_are_handles = true;
inline constexpr int version_major = 1, version_minor = 0;
// The address that means MPI_COMM_DUP_FN; 0: that is a function.
inline constexpr uint64_t duplicate_function = 1;
using RealElement = uint64_t;

template <Class>
using Handle = Slot*;

// Real handles and values that this library itself uses.
inline uint64_t world() { return 0x101; }
inline uint64_t self() { return 0x102; }
inline uint64_t byte() { return 0x247; }
inline uint64_t packed() { return 0x207; }
inline uint64_t uint64() { return 0x259; }
inline uint64_t max() { return 0x23; }
inline uint64_t errors_are_fatal() { return 0x141; }
inline uint64_t errors_return() { return 0x143; }
inline constexpr bool copies_last_first = true;
inline constexpr bool copies_hints = false;
inline constexpr bool copies_error_handler = false;
inline constexpr int undefined = -32766;
inline constexpr int keyval_invalid = 0;
inline int own_keyval_in_c(int keyval) { return keyval; }
inline bool is_win_base(int keyval) { return keyval == 601; }
inline bool is_win_size(int keyval) { return keyval == 603; }
inline constexpr int err_count = 2;
inline constexpr int err_truncate = 15;
inline constexpr int err_other = 16;
inline constexpr int err_no_mem = 39;
inline void* real_address(void* address) { return address; }
inline void* unweighted() { return reinterpret_cast<void*>(10); }
inline constexpr int cartesian = 211, graph = 212, distributed_graph = 213;
inline constexpr int thread_multiple = 4096;

inline constexpr uint64_t predefined_end = 0x1000;

template <Class Type>
constexpr uint64_t null() {
  switch (Type) {
    case Class::comm: return 0x100;
    case Class::group: return 0x108;
    case Class::win: return 0x110;
    case Class::file: return 0x118;
    case Class::session: return 0x120;
    case Class::message: return 0x128;
    case Class::info: return 0x130;
    case Class::errhandler: return 0x140;
    case Class::request: return 0x180;
    case Class::datatype: return 0x200;
    case Class::op: return 0x20;
  }
  return 0;
}

template <Class Type>
Slot* slot_of(Slot* handle) {
  return handle >= slots && handle < slots + slots_max ? handle : nullptr;
}

template <Class Type>
uint64_t real(Slot* handle) {
  return slot_of<Type>(handle) != nullptr ? handle->real : reinterpret_cast<uint64_t>(handle);
}

template <Class Type>
bool is_null(uint64_t real) {
  return real == null<Type>();
}

// Requests that are complete at once belong to one life of a process.
template <Class Type>
bool is_predefined(uint64_t real) {
  return is_null<Type>(real) || (Type != Class::request && real < predefined_end);
}

template <Class>
Slot* predefined(uint64_t real) {
  return reinterpret_cast<Slot*>(real);
}

// The handle that an argument's word is.
template <typename Type>
Type handle_of_word(uint64_t word) {
  return reinterpret_cast<Type>(word);
}

template <Class>
Slot* handle_of(Slot* slot) {
  return slot;
}

// --- what a call says and gets by number

struct Status {
  int source, tag, error, of_mpi[5];
};
// Asks the real MPI. In a call that is counted.
uint64_t bytes_of(const Status& status);
inline bool is_ignored(const void* status) { return status == nullptr; }
inline constexpr int any_source = -1;
inline constexpr int any_tag = -2;
inline constexpr int process_null = -3;
inline constexpr int root = -4;
inline constexpr int error_in_status = 19;

}  // namespace backstay::mpi::abi
