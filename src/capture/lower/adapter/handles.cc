#include "capture/lower/adapter/handles.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

namespace backstay::adapter {

#ifdef BACKSTAY_FRONT_MPICH

Known known;

namespace {

// Several threads may be in calls at once. Who reads `known.made` has no lock.
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

// Addresses of the back and their numbers. Open addressing; a quarter is free at least.
struct Entry {
  void* handle;
  uint32_t number;
};
Entry* entries = nullptr;
uint64_t entries_size = 0;
uint64_t entries_used = 0;
uint32_t made_room = 0;

void* must_have(void* memory) {
  if (memory == nullptr) abort();
  return memory;
}

Entry& entry_of(void* handle) {
  uint64_t at = (reinterpret_cast<uint64_t>(handle) >> 4) * 0x9e3779b97f4a7c15 >> 20;
  for (;; ++at) {
    Entry& one = entries[at & (entries_size - 1)];
    if (one.handle == handle || one.handle == nullptr) return one;
  }
}

void grow() {
  Entry* const old = entries;
  const uint64_t old_size = entries_size;
  entries_size = old_size == 0 ? 1024 : 2 * old_size;
  entries = static_cast<Entry*>(must_have(calloc(entries_size, sizeof(Entry))));
  for (uint64_t i = 0; i < old_size; ++i) {
    if (old[i].handle != nullptr) entry_of(old[i].handle) = old[i];
  }
  free(old);
}

void note(void* handle, uint32_t number) {
  if (4 * (entries_used + 1) > 3 * entries_size) grow();
  Entry& one = entry_of(handle);
  if (one.handle != nullptr) return;  // the first name counts
  one = {handle, number};
  ++entries_used;
}

uint32_t make_number(void* handle) {
  if (known.made_count > index_mask) abort();
  if (known.made_count == made_room) {
    made_room = made_room == 0 ? 1024 : 2 * made_room;
    auto** made = static_cast<void**>(must_have(malloc(made_room * sizeof(void*))));
    if (known.made_count != 0) memcpy(made, known.made, known.made_count * sizeof(void*));
    // The old ones stay: another thread may be reading there. Together they are no larger.
    __atomic_store_n(&known.made, made, __ATOMIC_RELEASE);
  }
  const uint32_t number = 3U << 30 | known.made_count;
  known.made[known.made_count++] = handle;
  note(handle, number);
  return number;
}

void*& place_of(int type, uint32_t number) {
  switch (number >> 30) {
    case 0: return known.null[type];
    case 1: return known.made_before[type][number & 0xff];
    default: return known.pairs[number & 7];
  }
}

}  // namespace

uint32_t number_of(void* handle) {
  if (handle == nullptr) return 0;
  pthread_mutex_lock(&mutex);
  const Entry& one = entry_of(handle);
  const uint32_t number = one.handle != nullptr ? one.number : make_number(handle);
  pthread_mutex_unlock(&mutex);
  return number;
}

const char* learn_handles() {
  grow();
  for (int i = 0; i < handles_count; ++i) {
    const char* object = back.handles[i].object;
    const uint32_t number = front.handles[i].number;
    void* const handle = object != nullptr ? find_in_back(object) : nullptr;
    if (object != nullptr && handle == nullptr) return object;
    if (handle == nullptr) continue;
    const auto type = static_cast<int>(predefined[i].type);
    if (predefined[i].type == Class::file) {
      known.null[type] = handle;
      continue;
    }
    if (number == 0) continue;
    note(handle, number);
    void*& place = place_of(type, number);
    if (place == nullptr) place = handle;
  }
  return nullptr;
}

uint64_t front_of_row(int row) { return front.handles[row].number; }

#else

const char* learn_handles() { return nullptr; }

uint64_t front_of_row(int row) {
  if (row == handle_FILE_NULL) return null_file;
  const uint32_t number = back.handles[row].number;
  const bool is_none =
      number == back.handles[handle_DATATYPE_NULL].number && row != handle_DATATYPE_NULL;
  return number == 0 || is_none ? 0 : mark | number;
}

#endif

int row_of(Class type, uint64_t front_handle) {
  for (int i = 0; i < handles_count; ++i) {
    if (predefined[i].type == type && front_of_row(i) == front_handle) return i;
  }
  return -1;
}

}  // namespace backstay::adapter
