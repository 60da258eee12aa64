// Arguments that a call reads or writes through a pointer: the front's on one side, the back's on
// the other. One object for each, alive during the call; the generated functions use them.
#pragma once

#include <stdlib.h>

#include "capture/lower/adapter/handles.h"
#include "capture/lower/adapter/status.h"

namespace backstay::adapter {

// As many as are usual on the stack, more on the heap.
template <typename Element>
class Room {
 public:
  explicit Room(int64_t count) : count_(count > 0 ? static_cast<uint64_t>(count) : 0) {
    if (count_ > sizeof here_ / sizeof here_[0]) {
      all_ = static_cast<Element*>(malloc(count_ * sizeof(Element)));
      if (all_ == nullptr) abort();
    }
  }
  ~Room() {
    if (all_ != here_) free(all_);
  }
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;
  Element* all() { return all_; }
  uint64_t count() const { return count_; }

 private:
  uint64_t count_;
  Element here_[32];
  Element* all_ = here_;
};

// The call writes a new one. A call that fails writes nothing.
template <Class Type>
class OutHandle {
 public:
  explicit OutHandle(void* to) : to_(static_cast<Front<Type>*>(to)) {}
  Back<Type>* place() { return to_ != nullptr ? &back_ : nullptr; }
  void put() {
    constexpr bool null_is_zero = !front_is_mpich && Type == Class::file;
    if (to_ != nullptr && (back_ != Back<Type>{} || null_is_zero)) *to_ = to_front<Type>(back_);
  }

 private:
  Front<Type>* to_;
  Back<Type> back_{};
};

// The call reads it and may set it to null.
template <Class Type>
class InOutHandle {
 public:
  explicit InOutHandle(void* of) : of_(static_cast<Front<Type>*>(of)) {
    if (of_ != nullptr) back_ = before_ = to_back<Type>(*of_);
  }
  Back<Type>* place() { return of_ != nullptr ? &back_ : nullptr; }
  void put() {
    if (of_ != nullptr && back_ != before_) *of_ = to_front<Type>(back_);
  }

 private:
  Front<Type>* of_;
  Back<Type> before_{};
  Back<Type> back_{};
};

template <Class Type>
class InHandles {
 public:
  InHandles(void* first, int64_t count)
      : first_(static_cast<Front<Type>*>(first)), room_(first != nullptr ? count : 0) {
    for (uint64_t i = 0; i < room_.count(); ++i) room_.all()[i] = to_back<Type>(first_[i]);
  }
  Back<Type>* place() { return first_ != nullptr ? room_.all() : nullptr; }
  void put() {}

 protected:
  Front<Type>* first_;
  Room<Back<Type>> room_;
};
template <Class Type>
class InOutHandles : public InHandles<Type> {
 public:
  using InHandles<Type>::InHandles;
  void put() {
    for (uint64_t i = 0; i < this->room_.count(); ++i) {
      const Back<Type> now = this->room_.all()[i];
      if (now != to_back<Type>(this->first_[i])) this->first_[i] = to_front<Type>(now);
    }
  }
};
template <Class Type>
class OutHandles {
 public:
  OutHandles(void* first, int64_t count)
      : first_(static_cast<Front<Type>*>(first)), room_(first != nullptr ? count : 0) {
    for (uint64_t i = 0; i < room_.count(); ++i) room_.all()[i] = {};
  }
  Back<Type>* place() { return first_ != nullptr ? room_.all() : nullptr; }
  void put() {
    for (uint64_t i = 0; i < room_.count(); ++i) {
      if (room_.all()[i] != Back<Type>{}) first_[i] = to_front<Type>(room_.all()[i]);
    }
  }

 private:
  Front<Type>* first_;
  Room<Back<Type>> room_;
};

// --- statuses

class OutStatus {
 public:
  explicit OutStatus(void* to) : to_(is_ignored(to) ? nullptr : static_cast<FrontStatus*>(to)) {
    clear(back_);
  }
  void* place() { return to_ != nullptr ? &back_ : back.status_ignore; }
  void put() {
    if (to_ != nullptr) adapter::put(back_, *to_);
  }

 private:
  FrontStatus* to_;
  BackStatus back_;
};

class InOutStatus {
 public:
  explicit InOutStatus(void* of) : of_(is_ignored(of) ? nullptr : static_cast<FrontStatus*>(of)) {
    if (of_ == nullptr) return;
    FrontStatus given = *of_;
    given.error = 0;  // anything may stand there
    back_ = to_back(given);
  }
  void* place() { return of_ != nullptr ? &back_ : back.status_ignore; }
  void put() {
    if (of_ != nullptr) of_->set(back_.bytes(), back_.is_cancelled());
  }

 private:
  FrontStatus* of_;
  BackStatus back_;
};

class InStatus : public InOutStatus {
 public:
  using InOutStatus::InOutStatus;
  void put() {}
};

class OutStatuses {
 public:
  OutStatuses(void* first, int64_t count)
      : first_(is_ignored(first) ? nullptr : static_cast<FrontStatus*>(first)),
        room_(first_ != nullptr ? count : 0) {
    for (uint64_t i = 0; i < room_.count(); ++i) clear(room_.all()[i]);
  }
  void* place() { return first_ != nullptr ? room_.all() : back.statuses_ignore; }
  void put() {
    for (uint64_t i = 0; i < room_.count(); ++i) adapter::put(room_.all()[i], first_[i]);
  }

 private:
  FrontStatus* first_;
  Room<BackStatus> room_;
};

// --- ranks of a group, among which MPI_PROC_NULL may be

class GivenRanks {
 public:
  GivenRanks(void* first, int64_t count) : room_(first != nullptr ? count : 0), first_(first) {
    for (uint64_t i = 0; i < room_.count(); ++i) {
      room_.all()[i] = rank_to_back(static_cast<int*>(first)[i]);
    }
  }
  int* place() { return first_ != nullptr ? room_.all() : nullptr; }
  void put() {}

 private:
  Room<int> room_;
  void* first_;
};

inline void ranks_to_front(int* first, int64_t count) {
  for (int64_t i = 0; first != nullptr && i < count; ++i) first[i] = rank_to_front(first[i]);
}

}  // namespace backstay::adapter
