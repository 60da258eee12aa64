#include "capture/lower/adapter/errors.h"

#include <pthread.h>
#include <stdlib.h>

#include "capture/lower/adapter/texts.h"

namespace backstay::adapter {

namespace {

struct Code {
  int front, back;
};
// Several threads may meet an error at once.
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
class Locked {
 public:
  Locked() { pthread_mutex_lock(&mutex); }
  ~Locked() { pthread_mutex_unlock(&mutex); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
};
Code* codes = nullptr;
uint32_t codes_count = 0;
uint32_t codes_room = 0;
int added_classes = 0;
int added_codes = 0;
int last_added = 0;

constexpr int own_codes = 0x20000000;    // of the back, without a number in the front
constexpr int mpich_added = 0x40000000;  // what MPICH marks the program's own with
constexpr int mpich_code_shift = 8;

int note(int front_code, int back_code) {
  if (codes_count == codes_room) {
    codes_room = codes_room == 0 ? 64 : 2 * codes_room;
    codes = static_cast<Code*>(realloc(codes, codes_room * sizeof(Code)));
    if (codes == nullptr) abort();
  }
  codes[codes_count++] = {front_code, back_code};
  return front_code;
}

// Is it one of the classes of MPI itself?
bool find_class(const int* from, const int* to, int code, int other, int& found) {
  const Span span = spans[set_error];
  for (int i = span.first; i < span.first + span.count; ++i) {
    if (from[i] != code) continue;
    found = to[i] != backstay_absent ? to[i] : other;
    return true;
  }
  return false;
}

int first_added() { return front.numbers[number_ERR_LASTCODE] + 1; }

int next_class() {
  ++added_classes;
  return front_is_mpich ? mpich_added | added_classes
                        : first_added() + added_classes + added_codes - 1;
}

int next_code(int of) {
  ++added_codes;
  return front_is_mpich ? of | added_codes << mpich_code_shift
                        : first_added() + added_classes + added_codes - 1;
}

}  // namespace

int unusual_error_to_front(int code) {
  int found = 0;
  if (find_class(back.numbers, front.numbers, code, front.numbers[number_ERR_OTHER], found)) {
    return found;
  }
  const Locked locked;
  for (uint32_t i = 0; i < codes_count; ++i) {
    if (codes[i].back == code) return codes[i].front;
  }
  return note(own_codes + static_cast<int>(codes_count), code);
}

int unusual_error_to_back(int code) {
  const Locked locked;
  for (uint32_t i = 0; i < codes_count; ++i) {
    if (codes[i].front == code) return codes[i].back;
  }
  int found = code;
  find_class(front.numbers, back.numbers, code, back.numbers[number_ERR_OTHER], found);
  return found;
}

int last_error() { return last_added != 0 ? last_added : front.numbers[number_ERR_LASTCODE]; }

extern "C" {
#pragma GCC visibility push(default)

int MPI_Add_error_class(int* to) {
  int code = 0;
  const int result = call<int>(index_MPI_Add_error_class, &code);
  if (result != 0) return error_to_front(result);
  const Locked locked;
  *to = last_added = note(next_class(), code);
  return 0;
}

int MPI_Add_error_code(int of, int* to) {
  int code = 0;
  const int result = call<int>(index_MPI_Add_error_code, error_to_back(of), &code);
  if (result != 0) return error_to_front(result);
  const Locked locked;
  *to = note(next_code(of), code);
  // MPICH counts classes alone.
  if (!front_is_mpich) last_added = *to;
  return 0;
}

int MPI_Add_error_string(int code, const char* text) {
  return error_to_front(call<int>(index_MPI_Add_error_string, error_to_back(code), text));
}

int MPI_Error_class(int code, int* to) {
  int of = 0;
  const int result = call<int>(index_MPI_Error_class, error_to_back(code), &of);
  if (result == 0) *to = error_to_front(of);
  return error_to_front(result);
}

int MPI_Error_string(int code, char* text, int* length) {
  OutText text_(text, length, number_MAX_ERROR_STRING);
  const int result =
      call<int>(index_MPI_Error_string, error_to_back(code), text_.place(), text_.length());
  return text_.put(result);
}

#pragma GCC visibility pop
}

}  // namespace backstay::adapter
