// The two ABIs of an adapter: the front's, which the program is linked with, and the back's, which
// is that of the MPI that runs. docs/protocol/other-mpi.md.
#pragma once

#include <sets.h>
#include <stdint.h>

#include <type_traits>

#include "capture/lower/adapter/sides.h"

namespace backstay::adapter {

#ifdef BACKSTAY_FRONT_MPICH
inline constexpr bool front_is_mpich = true;
inline const BackstaySide& front = backstay_mpich;
inline const BackstaySide& back = backstay_openmpi;
#else
inline constexpr bool front_is_mpich = false;
inline const BackstaySide& front = backstay_openmpi;
inline const BackstaySide& back = backstay_mpich;
#endif

// MPICH's files are pointers, all else of it are numbers; Open MPI's handles are pointers.
template <Class Type, bool Mpich>
using HandleOf = std::conditional_t<Mpich && Type != Class::file, uint32_t, void*>;
template <Class Type>
using Front = HandleOf<Type, front_is_mpich>;
template <Class Type>
using Back = HandleOf<Type, !front_is_mpich>;

// --- the back's functions, in the order of functions.txt

extern const char* const function_names[];
extern void* functions[indices_count];

template <typename Result, typename... Argument>
inline Result call(uint32_t index, Argument... argument) {
  return reinterpret_cast<Result (*)(Argument...)>(functions[index])(argument...);
}

// Any symbol of the back. Null: none.
void* find_in_back(const char* symbol);
// Of a function that the back does not have: says so, and is an error of MPI_COMM_WORLD.
int refuse(uint32_t index);

// --- numbers

inline int translate(const int* from, const int* to, Set set, int value) {
  const Span span = spans[set];
  for (int i = span.first; i < span.first + span.count; ++i) {
    if (from[i] == value && to[i] != backstay_absent) return to[i];
  }
  return value;
}
inline int to_back(Set set, int value) {
  return translate(front.numbers, back.numbers, set, value);
}
inline int to_front(Set set, int value) {
  return translate(back.numbers, front.numbers, set, value);
}
inline int rank_to_back(int rank) { return rank >= 0 ? rank : to_back(set_rank, rank); }
inline int rank_to_front(int rank) { return rank >= 0 ? rank : to_front(set_rank, rank); }
inline int tag_to_back(int tag) { return tag >= 0 ? tag : to_back(set_tag, tag); }
inline int tag_to_front(int tag) { return tag >= 0 ? tag : to_front(set_tag, tag); }

inline int translate_bits(const int* from, const int* to, Set set, int value) {
  const Span span = spans[set];
  int result = 0;
  for (int i = span.first; i < span.first + span.count; ++i) {
    if (from[i] != backstay_absent && (value & from[i]) != 0) {
      value &= ~from[i];
      if (to[i] != backstay_absent) result |= to[i];
    }
  }
  return result | value;  // bits that no one knows are an error that the real MPI names
}
inline int bits_to_back(Set set, int value) {
  return translate_bits(front.numbers, back.numbers, set, value);
}
inline void written(Set set, void* to) {
  auto* number = static_cast<int*>(to);
  if (number != nullptr) *number = to_front(set, *number);
}
inline void written_bits(Set set, void* to) {
  auto* number = static_cast<int*>(to);
  if (number != nullptr) {
    *number = translate_bits(back.numbers, front.numbers, set, *number);
  }
}

// --- addresses that mean something else than memory

inline const void* buffer_to_back(const void* buffer) {
  return buffer == front.in_place ? back.in_place : buffer;
}
void* weights_to_back(void* weights);
void* variables_to_back(void* handle);  // of MPI's tools

}  // namespace backstay::adapter
