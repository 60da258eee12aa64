// Handles of Open MPI's ABI (libmpi.so.40): addresses. Those of predefined handles are addresses of
// exported objects, of which a program may hold a copy; the first word of each is the real handle.
#pragma once

#include "capture/mpi_library/slots.h"

namespace backstay::mpi::abi {

inline constexpr const char* library = "libmpi.so.40";
inline constexpr bool handles_are_pointers = true;
using RealElement = uint64_t;

template <Class>
using Handle = Slot*;

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

// Of these objects, the one with this real handle; null: none.
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
bool is_null(uint64_t real) {
  return real == null_handle[static_cast<uint32_t>(Type)];
}

template <Class Type>
bool is_predefined(uint64_t real) {
  return is_null<Type>(real) || (Type != Class::request && find_object(Type, real) != nullptr);
}

template <Class Type>
Slot* predefined(uint64_t real) {
  return find_object(Type, real);
}

template <Class>
Slot* handle_of(Slot* slot) {
  return slot;
}

}  // namespace backstay::mpi::abi
