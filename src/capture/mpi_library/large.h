// Counts of 64 bits (MPI 4, 2.6: functions whose names end in _c), for functions that take an int:
// the real MPI is called by those alone, and so a cut has to know no others.
//
// A count of elements that fits into no int becomes one element of a larger datatype. Other numbers
// that are too large are refused: MPI_ERR_COUNT, after a sentence.
#pragma once

#include "capture/mpi_library/degrees.h"
#include "capture/mpi_library/requests.h"

namespace backstay::mpi {

struct Elements {
  int count;
  abi::Handle<Class::datatype> type;
};

// As many as peers_of() at the root of a call; elsewhere 0, where MPI does not look at the array.
int at_root(abi::Handle<Class::comm> comm, int root);

// The members of the own group.
int members_of(abi::Handle<Class::comm> comm);

template <typename Ask>
auto ask_in_call(Ask ask) {
  const InCall in_call;
  return ask();
}

// The arguments of one call of a function in _c, as the function with int takes them. One thread.
class Narrow {
 public:
  explicit Narrow(const char* function) : function_(function) {}
  ~Narrow();
  Narrow(const Narrow&) = delete;
  Narrow& operator=(const Narrow&) = delete;

  // The number as an int. One that does not fit makes fits() false.
  int one(int64_t number);
  // The same of a number behind a pointer; 0 for null.
  int at(const void* number) {
    return number != nullptr ? one(*static_cast<const int64_t*>(number)) : 0;
  }
  // `count` elements: a count that fits, or one element of a datatype made of them, which lives as
  // long as this object.
  Elements elements(int64_t count, abi::Handle<Class::datatype> type);
  // `count` numbers as ints, null for none. array(): as long as this object lives. kept(): for
  // ever, as MPI may read them after the call; equal arrays are kept once.
  void* array(const void* numbers, int64_t count);
  void* kept(const void* numbers, int64_t count);

  bool fits() const { return fits_; }
  // Prints a sentence, calls MPI_COMM_WORLD's error handler, and returns MPI_ERR_COUNT.
  int refuse() const;

 private:
  static constexpr int most = 4;
  const char* function_;
  bool fits_ = true;
  abi::Handle<Class::datatype> types_[most]{};
  int types_count_ = 0;
  void* arrays_[most]{};
  int arrays_count_ = 0;
};

}  // namespace backstay::mpi
