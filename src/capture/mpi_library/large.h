// Counts of 64 bits (MPI 4, 2.6: functions whose names end in _c), for functions that take an int:
// the real MPI is called by those alone, and so a cut has to know no others. In one call, by one
// thread.
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

template <typename Ask>
auto in_call(Ask ask) {
  const InCall in_call;
  return ask();
}

class Narrow {
 public:
  explicit Narrow(const char* function) : function_(function) {}
  ~Narrow();
  Narrow(const Narrow&) = delete;
  Narrow& operator=(const Narrow&) = delete;

  int one(int64_t number);
  int at(const void* number) {
    return number != nullptr ? one(*static_cast<const int64_t*>(number)) : 0;
  }
  Elements elements(int64_t count, abi::Handle<Class::datatype> type);
  // A copy of `count` numbers, until this object ends; and one that stays, for a call that MPI may
  // still read from when it has returned. Equal ones are kept once.
  void* array(const void* numbers, int64_t count);
  void* kept(const void* numbers, int64_t count);

  bool fits() const { return fits_; }
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
