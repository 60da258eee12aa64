// Messages in the program's memory that a cut has taken in and the program has not received
// (docs/protocol/cut.md). A list in the order of their arrival; no call of MPI.
#pragma once

#include <stdint.h>

namespace backstay::mpi {

struct Communicator;  // counters.h

struct Stored {
  Stored* next;
  const Communicator* communicator;
  int source, tag;
  uint64_t bytes;
  char* data;
  // The real request while it arrives.
  uint64_t arriving;
  bool is_arriving;
  alignas(8) char status[32];  // as MPI gave it to a probe; the largest of an ABI
};

// What a receive or a probe asks for.
struct Pattern {
  const Communicator* communicator;
  int source, tag;
  bool is_any_source, is_any_tag;
  bool fits(const Stored& one) const {
    return one.communicator == communicator && (is_any_source || one.source == source) &&
           (is_any_tag || one.tag == tag);
  }
};

class Store {
 public:
  bool is_empty() const { return first_ == nullptr; }
  Stored* first() const { return first_; }
  void add(Stored* last);
  // The one that came first; null: none.
  Stored* find(const Pattern& pattern) const;
  // Takes it out of the list; it is the caller's.
  void remove(Stored* one);

 private:
  Stored* first_ = nullptr;
  Stored* last_ = nullptr;
};

}  // namespace backstay::mpi
