// Descriptors: of each handle that the program made, how to make it again in another MPI
// (docs/protocol/lower-half.md, "Handles after a restart").
//
// A descriptor is one object of the real MPI; several handles of the program may stand for it, and
// other descriptors may use it when the program has freed them all. Memory of the program. One
// thread of the program is in MPI at a time, so nothing is locked.
#pragma once

#include "capture/mpi_library/abi.h"
#include "capture/mpi_library/kept.h"

namespace backstay::mpi {

// What an attribute was given as, and is asked for as: a pointer in C, a number in Fortran. MPICH's
// numbers: its Fortran library says them.
enum class Given : int { pointer = 0, address_number = 1, number = 3 };

struct Attribute {
  int keyval;
  Given given;
  void* value;
};

struct Made {
  Class type;
  uint32_t handles;  // slots that stand for it; of an error handler, how often the program has it
  uint32_t uses;     // descriptors that need it
  uint64_t real;     // 0: MPI has freed it, as no handle is left
  Made* before;
  Made* next;  // of the same class, in the order in which they were made
  char* name;  // null: the program has given none, and MPI none of its own
  Kept<Attribute> attributes;
};

// A block of zeros at the end of its class's list.
Made* begin_made(Class type, uint64_t real, uint64_t bytes);
template <typename Kind>
Kind* new_made(Class type, uint64_t real) {
  return static_cast<Kind*>(begin_made(type, real, sizeof(Kind)));
}
Made* first_made(Class type);
// The last one of a real handle; null: none. It looks at all.
Made* find_made(Class type, uint64_t real);

inline void use(Made* made) {
  if (made != nullptr) ++made->uses;
}
void unuse(Made* made);
// Ends it if nothing needs it any more.
void end_if_unneeded(Made* made);

// The descriptor of a slot; null where its class has none.
extern Made* made_of_slot[slots_max];
inline Made*& made_of(const Slot* slot) { return made_of_slot[slot - slots]; }
// The descriptor of a handle; null: it is one of MPI's own, or none.
template <Class Type>
Made* made_of(abi::Handle<Type> handle) {
  const Slot* slot = abi::slot_of<Type>(handle);
  return slot != nullptr ? made_of(slot) : nullptr;
}
void attach(Slot* slot, Made* made);
void detach(Slot* slot);

// An object that a descriptor or a request needs.
template <Class Type>
struct Reference {
  Made* made;             // null: one of MPI's own
  abi::Handle<Type> own;  // the handle, where it is one of MPI's own
  uint64_t real() const { return made != nullptr ? made->real : abi::real<Type>(own); }
};
// The descriptor stays until unuse().
template <Class Type>
Reference<Type> refer_to(abi::Handle<Type> handle) {
  Made* made = made_of<Type>(handle);
  use(made);
  return {made, handle};
}

void rename(char*& name, const char* to);

// Frees what a class keeps in its descriptors, and lets go of others.
void clear_type(Made* made);
void clear_communicator(Made* made);
void clear_group(Made* made);
void clear_info(Made* made);

}  // namespace backstay::mpi
