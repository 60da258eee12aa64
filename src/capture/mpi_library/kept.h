// Arrays and texts that descriptors keep, in the program's memory. Plain: a descriptor is a block
// of zeros at first, and whoever ends it clears them.
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

namespace backstay::mpi {

inline void* keep_bytes(const void* from, uint64_t bytes) {
  void* const to = malloc(bytes + 1);  // never null because there is nothing
  if (to == nullptr) abort();
  if (bytes != 0) memcpy(to, from, bytes);
  return to;
}
inline char* keep_text(const char* from) {
  return static_cast<char*>(keep_bytes(from, strlen(from) + 1));
}

template <typename Element>
struct Kept {
  Element* all;
  uint32_t count;
  uint32_t room;

  Element* begin() const { return all; }
  Element* end() const { return all + count; }
  Element& operator[](uint32_t at) const { return all[at]; }

  Element& add(const Element& one) {
    if (count == room) {
      room = room == 0 ? 4 : 2 * room;
      all = static_cast<Element*>(realloc(static_cast<void*>(all), room * sizeof(Element)));
      if (all == nullptr) abort();
    }
    all[count] = one;
    return all[count++];
  }
  void remove(uint32_t at) {
    --count;
    memmove(static_cast<void*>(all + at), all + at + 1, (count - at) * sizeof(Element));
  }
  void clear() {
    free(static_cast<void*>(all));
    *this = Kept{};
  }
};

}  // namespace backstay::mpi
