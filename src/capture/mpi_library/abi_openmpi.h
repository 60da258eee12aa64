// Handles of Open MPI's ABI (libmpi.so.40): addresses. Those of predefined handles are addresses of
// exported objects, of which a program may hold a copy; the first word of each is the real handle.
#pragma once

#include "capture/mpi_library/slots.h"

extern "C" {
extern char ompi_mpi_comm_world[], ompi_mpi_comm_self[], ompi_mpi_byte[], ompi_mpi_uint64_t[];
extern char ompi_mpi_packed[], ompi_mpi_op_max[];
extern char ompi_mpi_errors_are_fatal[], ompi_mpi_errors_return[];
}

namespace backstay::mpi::abi {

inline constexpr const char* library = "libmpi.so.40";
inline constexpr bool handles_are_pointers = true;
inline constexpr bool is_mpich = false;
// Fortran's number of a predefined handle is the handle.
inline constexpr bool numbers_are_handles = false;
inline constexpr int version_major = -1, version_minor = -1;  // of no standard ABI
// The address that means MPI_COMM_DUP_FN; 0: that is a function.
inline constexpr uint64_t duplicate_function = 0;
using RealElement = uint64_t;

template <Class>
using Handle = Slot*;

// Real handles and values that this library itself uses.
inline uint64_t real_of(const char* object) { return *reinterpret_cast<const uint64_t*>(object); }
inline uint64_t world() { return real_of(ompi_mpi_comm_world); }
inline uint64_t self() { return real_of(ompi_mpi_comm_self); }
inline uint64_t byte() { return real_of(ompi_mpi_byte); }
inline uint64_t packed() { return real_of(ompi_mpi_packed); }
inline uint64_t uint64() { return real_of(ompi_mpi_uint64_t); }
inline uint64_t max() { return real_of(ompi_mpi_op_max); }
inline uint64_t errors_are_fatal() { return real_of(ompi_mpi_errors_are_fatal); }
inline uint64_t errors_return() { return real_of(ompi_mpi_errors_return); }
// The standard leaves open in which order attributes are copied, whether MPI_Comm_dup takes the
// hints along, and MPI_Comm_create_group the error handler.
inline constexpr bool copies_last_first = false;
inline constexpr bool copies_hints = true;
inline constexpr bool copies_error_handler = true;
inline constexpr int undefined = -32766;
inline constexpr int keyval_invalid = -1;
inline int own_keyval_in_c(int keyval) { return keyval; }
inline bool is_win_base(int keyval) { return keyval == 7; }
inline bool is_win_size(int keyval) { return keyval == 8; }
inline constexpr int err_count = 2;
inline constexpr int err_truncate = 15;
inline constexpr int err_other = 16;
inline constexpr int err_no_mem = 39;
inline void* real_address(void* address) { return address; }
inline void* unweighted() { return reinterpret_cast<void*>(2); }
inline constexpr int cartesian = 1, graph = 2, distributed_graph = 3;
inline constexpr int thread_multiple = 3;

// An object of which programs name the address. Its bytes are where the program has them.
struct Object {
  Class type;
  Slot* place;  // of which only `real` is there
  const char* name;
};
struct Objects {
  const Object* first;
  uint64_t count;
};
Objects objects();  // generated; ordered by class

// The one of these objects that has this real handle; null: none.
Slot* find_object(Class type, uint64_t real);
// Real handles that stand for none, by class.
extern uint64_t null_handle[16];

template <Class Type>
Slot* slot_of(Slot* handle) {
  return handle >= slots && handle < slots + slots_max ? handle : nullptr;
}

template <Class>
uint64_t real(Slot* handle) {
  return handle != nullptr ? handle->real : 0;
}

template <Class Type>
uint64_t null() {
  return null_handle[static_cast<uint32_t>(Type)];
}

template <Class Type>
bool is_null(uint64_t real) {
  return real == null<Type>();
}

template <Class Type>
bool is_predefined(uint64_t real) {
  return is_null<Type>(real) || (Type != Class::request && find_object(Type, real) != nullptr);
}

template <Class Type>
Slot* predefined(uint64_t real) {
  return find_object(Type, real);
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
  int source, tag, error, cancelled;
  uint64_t bytes;
};
inline uint64_t bytes_of(const Status& status) { return status.bytes; }
inline bool is_ignored(const void* status) { return status == nullptr; }
inline constexpr int any_source = -1;
inline constexpr int any_tag = -1;
inline constexpr int process_null = -2;
inline constexpr int root = -4;
inline constexpr int error_in_status = 18;

}  // namespace backstay::mpi::abi
