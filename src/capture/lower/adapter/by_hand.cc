// Functions of which the prototype does not say enough.
#include <string.h>

#include "capture/lower/adapter/arguments.h"

namespace backstay::adapter {

namespace {

using Comm = Front<Class::comm>;
using BackComm = Back<Class::comm>;

// --- arrays of datatypes, as long as a communicator has peers

int64_t peers_of(BackComm comm) {
  int inter = 0;
  int size = 0;
  call<int>(index_MPI_Comm_test_inter, comm, &inter);
  call<int>(inter != 0 ? index_MPI_Comm_remote_size : index_MPI_Comm_size, comm, &size);
  return size;
}

struct Degrees {
  int in = 0, out = 0;
};

// Without a topology MPI refuses the call itself.
Degrees degrees_of(BackComm comm) {
  Degrees degrees;
  int kind = -1;
  int own = 0;
  int weighted = 0;
  call<int>(index_MPI_Topo_test, comm, &kind);
  if (kind == back.numbers[number_DIST_GRAPH]) {
    call<int>(index_MPI_Dist_graph_neighbors_count, comm, &degrees.in, &degrees.out, &weighted);
  } else if (kind == back.numbers[number_GRAPH]) {
    call<int>(index_MPI_Comm_rank, comm, &own);
    call<int>(index_MPI_Graph_neighbors_count, comm, own, &degrees.in);
    degrees.out = degrees.in;
  } else if (kind == back.numbers[number_CART]) {
    call<int>(index_MPI_Cartdim_get, comm, &degrees.in);
    degrees.out = degrees.in *= 2;
  }
  return degrees;
}

// MPI may look at the array until a call is complete that does not block. Nothing frees these
// copies yet, as those of our MPI library.
Back<Class::datatype>* kept_types(const void* first, int64_t count) {
  if (first == nullptr) return nullptr;
  const auto* types = static_cast<const Front<Class::datatype>*>(first);
  auto* all = static_cast<Back<Class::datatype>*>(
      malloc(static_cast<size_t>(count + 1) * sizeof(Back<Class::datatype>)));
  if (all == nullptr) abort();
  for (int64_t i = 0; i < count; ++i) all[i] = to_back<Class::datatype>(types[i]);
  return all;
}

// With MPI_IN_PLACE the types to be sent are not looked at.
void* sent(const void* from, void* types) { return from == front.in_place ? nullptr : types; }

using Types = InHandles<Class::datatype>;

// --- values of attributes that are numbers of the front

int attribute_value(int keyval, int value) {
  if (keyval == front.numbers[number_LASTUSEDCODE]) return last_error();
  if (keyval == front.numbers[number_WIN_CREATE_FLAVOR]) return to_front(set_flavor, value);
  if (keyval == front.numbers[number_WIN_MODEL]) return to_front(set_model, value);
  return rank_to_front(value);  // MPI_HOST, MPI_IO
}

int get_attribute(int result, int keyval, void* value, const int* flag) {
  static int values[5];
  constexpr Number translated[] = {number_LASTUSEDCODE, number_WIN_CREATE_FLAVOR, number_WIN_MODEL,
                                   number_HOST, number_IO};
  if (result != 0 || *flag == 0) return error_to_front(result);
  for (int i = 0; i < 5; ++i) {
    if (front.numbers[translated[i]] != keyval) continue;
    auto* to = static_cast<int**>(value);
    values[i] = attribute_value(keyval, **to);
    *to = &values[i];
  }
  return 0;
}

// --- the buffer of MPI_Bsend

// The program has made room for as much as the front needs beside each message.
struct Buffer {
  void* given;
  int bytes;
  void* own;
};
Buffer buffer;

int room_for(int bytes) {
  const int messages = bytes / front.numbers[number_BSEND_OVERHEAD] + 1;
  const int64_t room = bytes + static_cast<int64_t>(messages) * back.numbers[number_BSEND_OVERHEAD];
  return room < 0x7fffffff ? static_cast<int>(room) : 0x7fffffff;
}

}  // namespace

extern "C" {
#pragma GCC visibility push(default)

int MPI_Pcontrol(const int, ...) { return 0; }

// Open MPI has macros for these.
int64_t MPI_Aint_add(int64_t base, int64_t bytes) { return base + bytes; }
int64_t MPI_Aint_diff(int64_t one, int64_t other) { return one - other; }

// --- numbers for Fortran

// MPICH's handles are their own numbers. Those of Open MPI's predefined handles are in mpif.h; what
// is not there gets a number that Open MPI does not give.
#ifdef BACKSTAY_FRONT_MPICH
#define BACKSTAY_FORTRAN(name, class)                                                   \
  int MPI_##name##_c2f(Front<Class::class> handle) { return static_cast<int>(handle); } \
  Front<Class::class> MPI_##name##_f2c(int number) {                                    \
    return static_cast<Front<Class::class>>(number);                                    \
  }
#else
static int to_fortran(Class type, void* handle) {
  const int row = row_of(type, reinterpret_cast<uint64_t>(handle));
  if (row < 0) return -1;
  const int number = front.handles[row].fortran;
  return number != backstay_absent ? number : 4096 + row;
}
static void* from_fortran(Class type, int number) {
  for (int row = 0; row < handles_count; ++row) {
    const uint64_t handle = predefined[row].type == type ? front_of_row(row) : 0;
    if (handle != 0 && to_fortran(type, reinterpret_cast<void*>(handle)) == number) {
      return reinterpret_cast<void*>(handle);
    }
  }
  return nullptr;
}
#define BACKSTAY_FORTRAN(name, class)                                             \
  int MPI_##name##_c2f(void* handle) { return to_fortran(Class::class, handle); } \
  void* MPI_##name##_f2c(int number) { return from_fortran(Class::class, number); }
#endif
BACKSTAY_FORTRAN(Comm, comm)
BACKSTAY_FORTRAN(Errhandler, errhandler)
BACKSTAY_FORTRAN(Group, group)
BACKSTAY_FORTRAN(Info, info)
BACKSTAY_FORTRAN(Message, message)
BACKSTAY_FORTRAN(Op, op)
BACKSTAY_FORTRAN(Request, request)
BACKSTAY_FORTRAN(Type, datatype)
BACKSTAY_FORTRAN(Win, win)

int MPI_File_c2f(void* file) { return call<int>(index_MPI_File_c2f, to_back<Class::file>(file)); }
void* MPI_File_f2c(int number) {
  return to_front<Class::file>(call<void*>(index_MPI_File_f2c, number));
}

// For Fortran a status has the same words as for C, in both ABIs.
int MPI_Status_c2f(const void* from, void* to) {
  memcpy(to, from, front.status_bytes);
  return 0;
}
int MPI_Status_f2c(const void* from, void* to) { return MPI_Status_c2f(from, to); }
int MPI_Status_c2f08(const void* from, void* to) { return MPI_Status_c2f(from, to); }
int MPI_Status_f082c(const void* from, void* to) { return MPI_Status_c2f(from, to); }

// --- attributes

int MPI_Comm_get_attr(Comm comm, int keyval, void* value, int* flag) {
  const int result = call<int>(index_MPI_Comm_get_attr, to_back<Class::comm>(comm),
                               to_back(set_keyval, keyval), value, flag);
  return get_attribute(result, keyval, value, flag);
}
int MPI_Attr_get(Comm comm, int keyval, void* value, int* flag) {
  return MPI_Comm_get_attr(comm, keyval, value, flag);
}
int MPI_Win_get_attr(Front<Class::win> win, int keyval, void* value, int* flag) {
  const int result = call<int>(index_MPI_Win_get_attr, to_back<Class::win>(win),
                               to_back(set_keyval, keyval), value, flag);
  return get_attribute(result, keyval, value, flag);
}

// --- the buffer

int MPI_Buffer_attach(void* given, int bytes) {
  const int room = room_for(bytes);
  void* own = malloc(static_cast<size_t>(room));
  if (own == nullptr) return front.numbers[number_ERR_NO_MEM];
  const int result = call<int>(index_MPI_Buffer_attach, own, room);
  if (result == 0) {
    buffer = {given, bytes, own};
  } else {
    free(own);
  }
  return error_to_front(result);
}

int MPI_Buffer_detach(void* to, int* bytes) {
  void* own = nullptr;
  int room = 0;
  const int result = call<int>(index_MPI_Buffer_detach, &own, &room);
  if (result != 0) return error_to_front(result);
  *static_cast<void**>(to) = buffer.given;
  *bytes = buffer.bytes;
  free(buffer.own);
  buffer = {};
  return 0;
}

// --- datatypes

int MPI_Type_create_darray(int size, int rank, int dimensions, void* sizes, int* distributions,
                           int* arguments, void* processes, int order, Front<Class::datatype> type,
                           void* made) {
  Room<int> distributions_(dimensions);
  Room<int> arguments_(dimensions);
  for (int i = 0; i < dimensions; ++i) {
    distributions_.all()[i] = to_back(set_distribution, distributions[i]);
    arguments_.all()[i] = to_back(set_distribution_argument, arguments[i]);
  }
  OutHandle<Class::datatype> made_(made);
  const int result =
      call<int>(index_MPI_Type_create_darray, size, rank, dimensions, sizes, distributions_.all(),
                arguments_.all(), processes, to_back(set_order, order),
                to_back<Class::datatype>(type), made_.place());
  made_.put();
  return error_to_front(result);
}

int MPI_Type_get_contents(Front<Class::datatype> type, int integers_max, int addresses_max,
                          int types_max, int* integers, void* addresses, void* types) {
  const Back<Class::datatype> of = to_back<Class::datatype>(type);
  int count = 0;
  int others = 0;
  int combiner = 0;
  OutHandles<Class::datatype> types_(types, types_max);
  const int result = call<int>(index_MPI_Type_get_contents, of, integers_max, addresses_max,
                               types_max, integers, addresses, types_.place());
  if (result != 0) return error_to_front(result);
  types_.put();
  call<int>(index_MPI_Type_get_envelope, of, &count, &others, &others, &combiner);
  if (combiner == back.numbers[number_COMBINER_SUBARRAY]) {
    int& order = integers[3 * integers[0] + 1];
    order = to_front(set_order, order);
  } else if (combiner == back.numbers[number_COMBINER_DARRAY]) {
    const int dimensions = integers[2];
    int* distributions = integers + 3 + dimensions;
    for (int i = 0; i < dimensions; ++i) {
      distributions[i] = to_front(set_distribution, distributions[i]);
      distributions[dimensions + i] =
          to_front(set_distribution_argument, distributions[dimensions + i]);
    }
    int& order = integers[4 * dimensions + 3];
    order = to_front(set_order, order);
  }
  return 0;
}

// --- collective calls with a datatype for each peer

#define BACKSTAY_BLOCKING(name, outgoing, incoming)                                              \
  int name(void* from, void* counts, void* places, void* types, void* to, void* to_counts,       \
           void* to_places, void* to_types, Comm comm) {                                         \
    const BackComm of = to_back<Class::comm>(comm);                                              \
    Types types_(sent(from, types), outgoing);                                                   \
    Types to_types_(to_types, incoming);                                                         \
    return error_to_front(call<int>(index_##name, buffer_to_back(from), counts, places,          \
                                    types_.place(), to, to_counts, to_places, to_types_.place(), \
                                    of));                                                        \
  }
BACKSTAY_BLOCKING(MPI_Alltoallw, peers_of(of), peers_of(of))
BACKSTAY_BLOCKING(MPI_Neighbor_alltoallw, degrees_of(of).out, degrees_of(of).in)

#define BACKSTAY_BEGUN(name, outgoing, incoming)                                                   \
  int name(void* from, void* counts, void* places, void* types, void* to, void* to_counts,         \
           void* to_places, void* to_types, Comm comm, void* request) {                            \
    const BackComm of = to_back<Class::comm>(comm);                                                \
    OutHandle<Class::request> request_(request);                                                   \
    const int result = call<int>(index_##name, buffer_to_back(from), counts, places,               \
                                 kept_types(sent(from, types), outgoing), to, to_counts,           \
                                 to_places, kept_types(to_types, incoming), of, request_.place()); \
    request_.put();                                                                                \
    return error_to_front(result);                                                                 \
  }
BACKSTAY_BEGUN(MPI_Ialltoallw, peers_of(of), peers_of(of))
BACKSTAY_BEGUN(MPI_Ineighbor_alltoallw, degrees_of(of).out, degrees_of(of).in)

#define BACKSTAY_PERSISTENT(name, outgoing, incoming)                                            \
  int name(void* from, void* counts, void* places, void* types, void* to, void* to_counts,       \
           void* to_places, void* to_types, Comm comm, Front<Class::info> info, void* request) { \
    const BackComm of = to_back<Class::comm>(comm);                                              \
    OutHandle<Class::request> request_(request);                                                 \
    const int result = call<int>(index_##name, buffer_to_back(from), counts, places,             \
                                 kept_types(sent(from, types), outgoing), to, to_counts,         \
                                 to_places, kept_types(to_types, incoming), of,                  \
                                 to_back<Class::info>(info), request_.place());                  \
    request_.put();                                                                              \
    return error_to_front(result);                                                               \
  }
BACKSTAY_PERSISTENT(MPI_Alltoallw_init, peers_of(of), peers_of(of))
BACKSTAY_PERSISTENT(MPI_Neighbor_alltoallw_init, degrees_of(of).out, degrees_of(of).in)

#pragma GCC visibility pop
}

}  // namespace backstay::adapter
