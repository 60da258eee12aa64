// Which handles have a descriptor, and how one comes to it that MPI gave.
#pragma once

#include "capture/mpi_library/abi.h"
#include "capture/mpi_library/counters.h"
#include "capture/mpi_library/made.h"

namespace backstay::mpi {

constexpr bool is_described(Class type) {
  return type == Class::comm || type == Class::group || type == Class::datatype ||
         type == Class::errhandler || type == Class::op || type == Class::info ||
         type == Class::win;
}

// Behind the call that gave it; of a communicator at all members.
Made* describe(Class type, uint64_t real);

template <Class Type>
abi::Handle<Type> handle_of_made(Made* made) {
  Slot* slot = take_slot(Type, made->real);
  attach(slot, made);
  const abi::Handle<Type> handle = abi::handle_of<Type>(slot);
  if constexpr (Type == Class::comm) count_made(handle);
  return handle;
}
// The handle that the program has already, if it has one: MPI gives the same one each time, and
// wants it freed as often.
template <>
abi::Handle<Class::errhandler> handle_of_made<Class::errhandler>(Made* made);

}  // namespace backstay::mpi
