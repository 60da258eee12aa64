// Handles that a call takes or gives: the program's on one side, the real MPI's on the other. One
// object for each argument, alive during the call; the generated functions use them.
#pragma once

#include <stdlib.h>

#include "capture/mpi_library/abi.h"
#include "capture/mpi_library/describe.h"
#include "capture/mpi_library/threads.h"

namespace backstay::mpi {

// The program's handle for a real one that it was given.
template <Class Type>
abi::Handle<Type> handle_for(uint64_t real) {
  if (abi::is_predefined<Type>(real)) return abi::predefined<Type>(real);
  if constexpr (is_described(Type)) {
    return handle_of_made<Type>(describe(Type, real));
  } else {
    return abi::handle_of<Type>(take_slot(Type, real));
  }
}

// The same in callbacks, where the program has one already. An object of MPI's own gets a slot
// without a descriptor: nothing may be asked of MPI there.
template <Class Type>
abi::Handle<Type> known_handle_for(uint64_t real) {
  if (abi::is_predefined<Type>(real)) return abi::predefined<Type>(real);
  // A callback may look this up without the lock: the slot was made before MPI knew of the handle.
  Slot* slot = find_slot(Type, real);
  if (slot != nullptr) return abi::handle_of<Type>(slot);
  const Locked locked;
  return abi::handle_of<Type>(take_slot(Type, real));
}

// A pointer to a handle that MPI gives to a function of the program.
template <Class Type>
abi::Handle<Type> handle_at(const void* real) {
  constexpr bool is_short = !abi::handles_are_pointers && Type != Class::file;
  return known_handle_for<Type>(is_short ? *static_cast<const uint32_t*>(real)
                                         : *static_cast<const uint64_t*>(real));
}

// Behind a call that may have changed or freed the handle.
template <Class Type>
void settle(abi::Handle<Type>& handle, uint64_t before, uint64_t after) {
  if (after == before) return;
  Slot* slot = abi::slot_of<Type>(handle);
  if (abi::is_null<Type>(after) && slot != nullptr) {
    if constexpr (is_described(Type)) detach(slot);
    give_back(slot);
    handle = abi::predefined<Type>(after);
  } else if (slot != nullptr) {
    slot->real = after;
  } else {
    handle = handle_for<Type>(after);
  }
}

// MPI_Comm* and the like, of which the call writes a new one. A call that fails writes nothing.
template <Class Type>
class Out {
 public:
  explicit Out(void* to) : to_(static_cast<abi::Handle<Type>*>(to)) {}
  void* place() { return to_ != nullptr ? &real_ : nullptr; }
  void put() {
    constexpr bool null_is_zero = !abi::handles_are_pointers && Type == Class::file;
    if (to_ != nullptr && (real_ != 0 || null_is_zero)) *to_ = handle_for<Type>(real_);
  }

 private:
  abi::Handle<Type>* to_;
  uint64_t real_ = 0;
};

// MPI_Comm* and the like, which the call reads and may set to null.
template <Class Type>
class InOut {
 public:
  explicit InOut(void* of) : of_(static_cast<abi::Handle<Type>*>(of)) {
    if (of_ != nullptr) real_ = before_ = abi::real<Type>(*of_);
  }
  void* place() { return of_ != nullptr ? &real_ : nullptr; }
  void put() {
    if (of_ != nullptr) settle<Type>(*of_, before_, real_);
  }

 private:
  abi::Handle<Type>* of_;
  uint64_t before_ = 0;
  uint64_t real_ = 0;
};

// An array of handles: a copy as the real MPI has it.
template <Class Type>
class Array {
 public:
  Array(const void* first, int64_t count)
      : first_(static_cast<abi::Handle<Type>*>(const_cast<void*>(first))),
        count_(first != nullptr && count > 0 ? static_cast<uint64_t>(count) : 0) {
    if (count_ <= sizeof here_ / sizeof here_[0]) {
      all_ = here_;
    } else {
      all_ = static_cast<Element*>(malloc(count_ * sizeof(Element)));
      if (all_ == nullptr) abort();
    }
  }
  ~Array() {
    if (all_ != here_) free(all_);
  }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  void* place() { return first_ != nullptr ? all_ : nullptr; }
  bool is_null_at(int i) const { return abi::is_null<Type>(all_[i]); }
  void read() {
    for (uint64_t i = 0; i < count_; ++i) {
      all_[i] = static_cast<Element>(abi::real<Type>(first_[i]));
    }
  }
  uint64_t at(uint64_t index) const { return all_[index]; }
  void clear() {
    for (uint64_t i = 0; i < count_; ++i) all_[i] = 0;
  }
  // Behind a call that may have freed some. What a handle was before stands in its slot.
  void settle_all() {
    for (uint64_t i = 0; i < count_; ++i) {
      settle<Type>(first_[i], static_cast<Element>(abi::real<Type>(first_[i])), all_[i]);
    }
  }
  // Behind a call that has written some.
  void put() {
    for (uint64_t i = 0; i < count_; ++i) {
      if (all_[i] != 0) first_[i] = handle_for<Type>(all_[i]);
    }
  }

 private:
  // MPICH's files are pointers; no function takes an array of them.
  using Element = abi::RealElement;
  abi::Handle<Type>* first_;
  uint64_t count_;
  Element* all_;
  Element here_[64];
};

template <Class Type>
class InArray : public Array<Type> {
 public:
  InArray(const void* first, int64_t count) : Array<Type>(first, count) { this->read(); }
  void put() {}
};
template <Class Type>
class InOutArray : public InArray<Type> {
 public:
  using InArray<Type>::InArray;
  void put() { this->settle_all(); }
};
template <Class Type>
class OutArray : public Array<Type> {
 public:
  OutArray(const void* first, int64_t count) : Array<Type>(first, count) { this->clear(); }
};

}  // namespace backstay::mpi
