// Functions of the program that MPI calls. The back does not say whose it calls, so each has a
// trampoline of its own (as in our MPI library, whose trampolines these ones call).
#include <stdlib.h>

#include <utility>

#include "capture/lower/adapter/arguments.h"

namespace backstay::adapter {

namespace {

// As many as our MPI library has of each kind.
constexpr uint32_t trampolines = 256;

template <typename Function>
struct Places {
  Function all[trampolines];
  uint32_t count;

  // `trampolines`: no room.
  uint32_t place_of(Function function) {
    for (uint32_t i = 0; i < count; ++i) {
      if (all[i] == function) return i;
    }
    if (count < trampolines)
      all[count++] = function;
    else
      return trampolines;
    return count - 1;
  }
};

int no_room() { return front.numbers[number_ERR_OTHER]; }

// --- operations

using Operation = void (*)(void*, void*, int*, Front<Class::datatype>*);
using BackOperation = void (*)(void*, void*, int*, Back<Class::datatype>*);
Places<Operation> operations;

template <uint32_t Index>
void operate(void* in, void* inout, int* count, Back<Class::datatype>* type) {
  Front<Class::datatype> front_type = to_front<Class::datatype>(*type);
  operations.all[Index](in, inout, count, &front_type);
}

template <uint32_t... Index>
BackOperation operation_at(uint32_t at, std::integer_sequence<uint32_t, Index...>) {
  static constexpr BackOperation all[] = {operate<Index>...};
  return all[at];
}

// --- error handlers

template <Class Type>
using Handler = void (*)(Front<Type>*, int*, ...);
template <Class Type>
using BackHandler = void (*)(Back<Type>*, int*, ...);
template <Class Type>
Places<Handler<Type>> handlers;

template <Class Type, uint32_t Index>
void handle_error(Back<Type>* of, int* code, ...) {
  Front<Type> front_of = to_front<Type>(*of);
  int front_code = error_to_front(*code);
  handlers<Type>.all[Index](&front_of, &front_code);
}

template <Class Type, uint32_t... Index>
BackHandler<Type> handler_at(uint32_t at, std::integer_sequence<uint32_t, Index...>) {
  static constexpr BackHandler<Type> all[] = {handle_error<Type, Index>...};
  return all[at];
}

template <Class Type>
int create_handler(uint32_t index, void* function, void* errhandler) {
  const uint32_t at = handlers<Type>.place_of(reinterpret_cast<Handler<Type>>(function));
  if (at == trampolines) return no_room();
  OutHandle<Class::errhandler> made(errhandler);
  const int result =
      call<int>(index, handler_at<Type>(at, std::make_integer_sequence<uint32_t, trampolines>()),
                made.place());
  made.put();
  return error_to_front(result);
}

// --- generalized requests

struct Generalized {
  int (*query)(void*, FrontStatus*);
  int (*done)(void*);
  int (*cancel)(void*, int);
  void* extra;
};
int query(void* state, BackStatus* status) {
  const auto* own = static_cast<Generalized*>(state);
  FrontStatus written{};
  const int result = own->query(own->extra, &written);
  const int error = status->error;
  *status = to_back(written);
  status->error = error;  // MPI's own
  return error_to_back(result);
}
int done(void* state) {
  auto* own = static_cast<Generalized*>(state);
  const int result = own->done(own->extra);
  free(own);
  return error_to_back(result);
}
int cancel(void* state, int is_complete) {
  const auto* own = static_cast<Generalized*>(state);
  return error_to_back(own->cancel(own->extra, is_complete));
}

}  // namespace

extern "C" {
#pragma GCC visibility push(default)

int MPI_Op_create(void* function, int commutes, void* op) {
  const uint32_t at = operations.place_of(reinterpret_cast<Operation>(function));
  if (at == trampolines) return no_room();
  OutHandle<Class::op> made(op);
  const int result = call<int>(
      index_MPI_Op_create, operation_at(at, std::make_integer_sequence<uint32_t, trampolines>()),
      commutes, made.place());
  made.put();
  return error_to_front(result);
}

int MPI_Comm_create_errhandler(void* function, void* errhandler) {
  return create_handler<Class::comm>(index_MPI_Comm_create_errhandler, function, errhandler);
}
int MPI_Errhandler_create(void* function, void* errhandler) {
  return create_handler<Class::comm>(index_MPI_Comm_create_errhandler, function, errhandler);
}
int MPI_Win_create_errhandler(void* function, void* errhandler) {
  return create_handler<Class::win>(index_MPI_Win_create_errhandler, function, errhandler);
}
int MPI_File_create_errhandler(void* function, void* errhandler) {
  return create_handler<Class::file>(index_MPI_File_create_errhandler, function, errhandler);
}

int MPI_Grequest_start(void* query_function, void* free_function, void* cancel_function,
                       void* extra, void* request) {
  auto* own = static_cast<Generalized*>(malloc(sizeof(Generalized)));
  if (own == nullptr) return front.numbers[number_ERR_NO_MEM];
  own->query = reinterpret_cast<decltype(own->query)>(query_function);
  own->done = reinterpret_cast<decltype(own->done)>(free_function);
  own->cancel = reinterpret_cast<decltype(own->cancel)>(cancel_function);
  own->extra = extra;
  OutHandle<Class::request> made(request);
  const int result = call<int>(index_MPI_Grequest_start, query, done, cancel, own, made.place());
  made.put();
  if (result != 0) free(own);
  return error_to_front(result);
}

#pragma GCC visibility pop
}

}  // namespace backstay::adapter
