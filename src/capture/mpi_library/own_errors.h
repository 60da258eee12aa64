// MPICH gives an error of a request to MPI_COMM_WORLD's handler, and an error of MPI_Recv to its
// communicator's. Our blocking receives are requests of the real MPI. So while such a request is
// tested, MPI_COMM_WORLD's handler is MPI_ERRORS_RETURN, where the communicator has another one.
#pragma once

#include "capture/mpi_library/communicators.h"
#include "capture/mpi_library/counters.h"

namespace backstay::mpi {

// While it lives, an error of a request comes back to this library. In a call that is counted, with
// the lock.
class ErrorsReturn {
 public:
  explicit ErrorsReturn(bool is_needed = true) : is_set_(is_needed && is_over_mpich()) {
    if (is_set_) set(abi::errors_return());
  }
  ~ErrorsReturn() { end(); }
  ErrorsReturn(const ErrorsReturn&) = delete;
  ErrorsReturn& operator=(const ErrorsReturn&) = delete;

  bool is_set() const { return is_set_; }
  void end() {
    if (is_set_) set(real_handler_of(world()));
    is_set_ = false;
  }
  static abi::Handle<Class::comm> world() { return abi::predefined<Class::comm>(abi::world()); }

 private:
  static bool is_over_mpich() { return abi::is_mpich == (lower::table().adapter == nullptr); }
  static void set(uint64_t handler) {
    inside(index_MPI_Comm_set_errhandler, abi::world(), handler);
  }

  bool is_set_;
};

// Of a receive on this communicator in which the program waits; null: of none.
class OwnErrors {
 public:
  explicit OwnErrors(const Communicator* in) : in_(in), returned_(has_own_handler(in)) {}

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
           real_handler_of(in->handle) != real_handler_of(ErrorsReturn::world());
  }

  const Communicator* in_;
  ErrorsReturn returned_;
};

}  // namespace backstay::mpi
