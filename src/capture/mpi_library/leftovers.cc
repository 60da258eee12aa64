#include "capture/mpi_library/leftovers.h"

#include <stdlib.h>

#include "capture/mpi_library/counters.h"
#include "capture/mpi_library/kept.h"
#include "capture/mpi_library/names.h"
#include "capture/mpi_library/renew.h"

namespace backstay::mpi {

namespace {

// --- error codes
// -----------------------------------------------------------------------------------

struct ErrorCode {
  int class_of;  // of a code; -1: it is a class itself
  int code;
  char* text;  // null: none
};
Kept<ErrorCode> error_codes;

int add_error(int class_of, int* code) {
  return class_of < 0 ? inside(index_MPI_Add_error_class, code)
                      : inside(index_MPI_Add_error_code, class_of, code);
}

void set_text(int code, const char* text) {
  for (ErrorCode& one : error_codes) {
    if (one.code != code) continue;
    free(one.text);
    one.text = keep_text(text);
  }
}

int note_error(int class_of, void* code) {
  auto* to = static_cast<int*>(code);
  const int result = add_error(class_of, to);
  if (result == 0) error_codes.add({class_of, *to, nullptr});
  return result;
}

// --- the buffer
// ------------------------------------------------------------------------------------

struct Buffer {
  void* start;
  int bytes;
};
Buffer buffer;  // null: none

// --- generalized requests
// --------------------------------------------------------------------------

// What the real MPI hands to each of the three functions. It ends with the last of them, `done`.
struct Generalized {
  void* query;
  void* done;
  void* cancel;
  void* extra;
  bool is_fortran;
};
Generalized* newest = nullptr;  // the request that was made last

// Fortran's functions take addresses alone, and write their result behind them.
void* in_fortran(void* given) { return given; }
int* in_fortran(int& given) { return &given; }
template <typename... Argument>
int run(const Generalized& own, void* function, Argument... given) {
  if (!own.is_fortran) {
    return reinterpret_cast<int (*)(void*, Argument...)>(function)(own.extra, given...);
  }
  int result = 0;
  using InFortran = void (*)(void*, decltype(in_fortran(given))..., int*);
  reinterpret_cast<InFortran>(function)(own.extra, in_fortran(given)..., &result);
  return result;
}

int query(void* state, void* status) {
  const InProgram switched;
  const auto* own = static_cast<Generalized*>(state);
  return run(*own, own->query, status);
}
int done(void* state) {
  const InProgram switched;
  auto* own = static_cast<Generalized*>(state);
  const int result = run(*own, own->done);
  const Locked locked;
  if (newest == own) newest = nullptr;
  free(own);
  let_go(Open::own_request);
  return result;
}
int cancel(void* state, int is_complete) {
  const InProgram switched;
  const auto* own = static_cast<Generalized*>(state);
  return run(*own, own->cancel, is_complete);
}

}  // namespace

void renew_error_codes() {
  for (const ErrorCode& one : error_codes) {
    int code = 0;
    must(add_error(one.class_of, &code), "an error code");
    if (code != one.code) must(abi::err_other, "the same error code");
    if (one.text != nullptr) inside(index_MPI_Add_error_string, code, one.text);
  }
}

void renew_buffer() {
  if (buffer.start == nullptr) return;
  must(inside(index_MPI_Buffer_attach, buffer.start, buffer.bytes), "the buffer of MPI_Bsend");
}

extern "C" {

int PMPI_Add_error_class(void* code) {
  const InCall in_call;
  return note_error(-1, code);
}
BACKSTAY_MPI_NAME(MPI_Add_error_class)

int PMPI_Add_error_code(int class_of, void* code) {
  const InCall in_call;
  return note_error(class_of, code);
}
BACKSTAY_MPI_NAME(MPI_Add_error_code)

int PMPI_Add_error_string(int code, void* text) {
  const InCall in_call;
  const int result = inside(index_MPI_Add_error_string, code, text);
  if (result == 0) set_text(code, static_cast<const char*>(text));
  return result;
}
BACKSTAY_MPI_NAME(MPI_Add_error_string)

int PMPI_Buffer_attach(void* start, int bytes) {
  const InCall in_call;
  const int result = inside(index_MPI_Buffer_attach, start, bytes);
  if (result == 0) buffer = {start, bytes};
  return result;
}
BACKSTAY_MPI_NAME(MPI_Buffer_attach)

int PMPI_Buffer_detach(void* start, void* bytes) {
  const InCall in_call;
  const int result = beside(index_MPI_Buffer_detach, start, bytes);
  if (result == 0) buffer = {};
  return result;
}
BACKSTAY_MPI_NAME(MPI_Buffer_detach)

// Memory of the program, so that it comes into the image. MPI's own would be registered with a
// network card; ours is when it is used.
int PMPI_Alloc_mem(int64_t bytes, abi::Handle<Class::info> /*info*/, void* start) {
  constexpr size_t page = 4096;
  void* memory = nullptr;
  const auto size = static_cast<size_t>(bytes > 0 ? bytes : 1);
  if (bytes < 0 || posix_memalign(&memory, size < page ? 64 : page, size) != 0) {
    return abi::err_no_mem;
  }
  *static_cast<void**>(start) = memory;
  return 0;
}
BACKSTAY_MPI_NAME(MPI_Alloc_mem)

int PMPI_Free_mem(void* start) {
  free(start);
  return 0;
}
BACKSTAY_MPI_NAME(MPI_Free_mem)

int PMPI_Grequest_start(void* query_function, void* free_function, void* cancel_function,
                        void* extra, void* request) {
  const InCall in_call;
  hold_back(Open::own_request);
  auto* own = static_cast<Generalized*>(malloc(sizeof(Generalized)));
  if (own == nullptr) return abi::err_no_mem;
  *own = {query_function, free_function, cancel_function, extra, false};
  Out<Class::request> request_(request);
  const int result = inside(index_MPI_Grequest_start, query, done, cancel, own, request_.place());
  request_.put();
  newest = result == 0 ? own : nullptr;
  if (result != 0) {
    free(own);
    let_go(Open::own_request);
  }
  return result;
}
BACKSTAY_MPI_NAME(MPI_Grequest_start)

// What a Fortran library says of the request that it has just made. The name is MPICH's.
void MPII_Grequest_set_lang_f77(abi::Handle<Class::request> /*request*/) {
  if (newest != nullptr) newest->is_fortran = true;
}

}  // extern "C"

}  // namespace backstay::mpi
