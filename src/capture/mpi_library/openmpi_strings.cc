// Texts of Fortran, padded with blanks, and C's: functions that Open MPI's stock Fortran library
// takes from libmpi.so.40.
#include <stdlib.h>
#include <string.h>

namespace {

enum : int { done = 0, no_memory = -2 };

void free_texts(char** all) {
  for (char** one = all; one != nullptr && *one != nullptr; ++one) free(*one);
  free(static_cast<void*>(all));
}

// One more at the end, which is then null. Takes the text.
bool append(char**& all, size_t& count, char* text) {
  auto** const more =
      static_cast<char**>(realloc(static_cast<void*>(all), (count + 2) * sizeof(char*)));
  if (more == nullptr) return false;
  all = more;
  all[count++] = text;
  all[count] = nullptr;
  return true;
}

}  // namespace

extern "C" {

// Blanks at both ends do not belong to it.
int ompi_fortran_string_f2c(const char* from, int length, char** to) {
  while (length > 0 && *from == ' ') ++from, --length;
  while (length > 0 && from[length - 1] == ' ') --length;
  const auto bytes = static_cast<size_t>(length > 0 ? length : 0);
  *to = static_cast<char*>(malloc(bytes + 1));
  if (*to == nullptr) return no_memory;
  memcpy(*to, from, bytes);
  (*to)[bytes] = 0;
  return done;
}

int ompi_fortran_string_c2f(const char* from, char* to, int length) {
  if (length <= 0) return done;
  const auto room = static_cast<size_t>(length);
  const size_t bytes = strnlen(from, room);
  memcpy(to, from, bytes);
  memset(to + bytes, ' ', room - bytes);
  return done;
}

// A list of `count` texts; -1: up to one of blanks alone.
static int list(const char* from, int count, int length, int advance, char*** to) {
  char** all = nullptr;
  size_t made = 0;
  *to = nullptr;
  for (int i = 0; count < 0 || i < count; ++i, from += advance) {
    char* text = nullptr;
    if (ompi_fortran_string_f2c(from, length, &text) != done) break;
    if (count < 0 && *text == 0) {
      free(text);
      *to = all;
      return done;
    }
    if (!append(all, made, text)) {
      free(text);
      break;
    }
  }
  if (count >= 0 && made == static_cast<size_t>(count)) {
    *to = all;
    return done;
  }
  free_texts(all);
  return no_memory;
}

int ompi_fortran_argv_blank_f2c(const char* from, int length, int advance, char*** to) {
  return list(from, -1, length, advance, to);
}

int ompi_fortran_argv_count_f2c(const char* from, int count, int length, int advance, char*** to) {
  return list(from, count, length, advance, to);
}

// Of each of `count` programs: the list's texts lie side by side, program by program.
int ompi_fortran_multiple_argvs_f2c(int count, const char* from, int length, char**** to) {
  const auto lists = static_cast<size_t>(count > 0 ? count : 0);
  auto*** const all = static_cast<char***>(calloc(lists + 1, sizeof(char**)));
  if (all == nullptr) return no_memory;
  for (size_t i = 0; i < lists; ++i, from += length) {
    if (list(from, -1, length, length * count, &all[i]) == done) continue;
    free(static_cast<void*>(all));
    return no_memory;
  }
  *to = all;
  return done;
}
}
