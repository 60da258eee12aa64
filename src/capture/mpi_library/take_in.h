// Taking messages out of MPI during a cut, into the store, and giving them to the program later as
// if they came then (docs/protocol/cut.md, "The store").
//
// All functions are called in a call that is counted, with the program's FS base.
#pragma once

#include "capture/mpi_library/counters.h"
#include "capture/mpi_library/store.h"

namespace backstay::mpi {

// One pass over all communicators and open requests. True: a counter or a request has changed.
bool take_in_all();

extern Store store;

inline Pattern pattern_of(const Communicator* in, int source, int tag) {
  return {in, source, tag, source == abi::any_source, tag == abi::any_tag};
}

// The message for a receive: taken out of the store where there is one. Null: none.
Stored* take_stored(const Communicator* in, int source, int tag);
// Puts the message into the program's buffer by the program's type, as MPI would: of one that is
// too long, what fits. The result is MPI's, and the communicator's error handler was called;
// `status` is written, not ignored. Frees the message.
int deliver(Stored* one, void* buffer, int count, uint64_t real_type, abi::Status& status);
// Takes in a message that the real MPI has matched already. drive() says true when it has arrived.
Stored* begin_taking(uint64_t real_message, const Communicator* in, const abi::Status& status);
bool drive(Stored& one);

}  // namespace backstay::mpi
