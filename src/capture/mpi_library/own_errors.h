// MPICH 4.0 gives an error of a request to MPI_COMM_WORLD's handler (newer ones to its
// communicator's), and an error of MPI_Recv to its communicator's. Our blocking receives are
// requests of the real MPI. So while such a request is tested, MPI_COMM_WORLD's handler is
// MPI_ERRORS_RETURN, where the communicator has another one. So is MPI_COMM_SELF's where errors of
// no communicator go to it.
#pragma once

#include "capture/mpi_library/communicators.h"
#include "capture/mpi_library/counters.h"

namespace backstay::mpi {

// While it lives, an error of a request comes back to this library. In a call that is counted, with
// the lock.
class ErrorsReturn {
 public:
  explicit ErrorsReturn(bool is_needed) : is_set_(is_needed) {
    if (is_set_) let_own_errors_return();
  }
  ~ErrorsReturn() { end(); }
  ErrorsReturn(const ErrorsReturn&) = delete;
  ErrorsReturn& operator=(const ErrorsReturn&) = delete;

  bool is_set() const { return is_set_; }
  void end() {
    if (is_set_) set_own_handlers_again();
    is_set_ = false;
  }

 private:
  bool is_set_;
};

// The errors of a receive on this communicator in which the program waits; null: there are none.
class OwnErrors {
 public:
  explicit OwnErrors(const Communicator* in)
      : in_(in), returned_(is_over_mpich() && has_own_handler(in)) {}

  // Behind the test that gave `result`.
  int raise(int result) {
    const bool is_ours = returned_.is_set();
    returned_.end();
    if (is_ours && result != 0) {
      inside(index_MPI_Comm_call_errhandler, abi::real<Class::comm>(in_->handle), result);
    }
    return result;
  }

 private:
  static bool has_own_handler(const Communicator* in) {
    if (in == nullptr || abi::real<Class::comm>(in->handle) == abi::world()) return false;
    const CommunicatorMade* made = communicator(in->handle);
    if (made == nullptr) return false;
    // A function of the program is called with the communicator.
    return made->handler.made != nullptr ||
           made->real_handler() != real_handler_of(abi::predefined<Class::comm>(abi::world()));
  }

  const Communicator* in_;
  ErrorsReturn returned_;
};

}  // namespace backstay::mpi
