// Functions of which the prototype does not say enough.

#include "capture/mpi_library/again.h"
#include "capture/mpi_library/attributes.h"
#include "capture/mpi_library/degrees.h"
#include "capture/mpi_library/names.h"
#include "capture/mpi_library/requests.h"

extern "C" char** environ;

namespace backstay::mpi {

namespace {

// MPI may look into the environment at its start; the program may have changed its own by then.
// Behind a restart the program's is that of another launcher, also where it opens MPI only then.
void give_environment() {
  if (is_asked()) {
    enter();
    leave();
  }
  if (!lower::table().is_behind_restart)
    lower::table().do_job(lower::table().take_environment, environ);
}

int started(int result, int level) {
  if (result == 0) note_start(level);
  return result;
}

uint64_t word(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

using Comm = abi::Handle<Class::comm>;

using Types = InArray<Class::datatype>;

// Of a call that does not block, MPI may look at the array until the call is complete. Nothing
// frees these copies yet (docs/protocol/lower-half.md, "Not yet").
void* kept_types(const void* first, int64_t count) {
  auto* types = static_cast<const abi::Handle<Class::datatype>*>(first);
  auto* all = static_cast<abi::RealElement*>(
      malloc(static_cast<size_t>(count + 1) * sizeof(abi::RealElement)));
  if (all == nullptr) abort();
  for (int64_t i = 0; types != nullptr && i < count; ++i) {
    all[i] = static_cast<abi::RealElement>(abi::real<Class::datatype>(types[i]));
  }
  return all;
}

Comm predefined_world() { return abi::predefined<Class::comm>(abi::world()); }

int begun(int result) {
  const InCall in_call;
  if (result == 0) begin_counting();
  return result;
}

// The arguments that all calls of MPI_Alltoallw have, and between how many ranks it goes.
#define BACKSTAY_ALLTOALLW                                                                    \
  void *from, void *send_counts, void *send_places, void *send_types, void *to, void *counts, \
      void *places, void *types, Comm comm
#define BACKSTAY_ALL_OF(neighbours)                                                         \
  const AllToAll all {                                                                      \
    from, send_counts, send_places, send_types, to, counts, places, types, comm, neighbours \
  }
struct AllToAll {
  void *from, *send_counts, *send_places, *send_types, *to, *counts, *places, *types;
  Comm comm;
  bool neighbours;
  Degrees degrees = neighbours ? degrees_of(comm) : peers_of(comm);

  int run(uint32_t index) const {
    Types sending(send_types, sent(from, degrees.out));
    Types receiving(types, degrees.in);
    return beside(index, from, send_counts, send_places, sending.place(), to, counts, places,
                  receiving.place(), abi::real<Class::comm>(comm));
  }
  template <typename... More>
  int begin(uint32_t index, void* request, More... more) const {
    Out<Class::request> made(request);
    const int result =
        inside(index, from, send_counts, send_places,
               kept_types(send_types, sent(from, degrees.out)), to, counts, places,
               kept_types(types, degrees.in), abi::real<Class::comm>(comm), more..., made.place());
    made.put();
    return result;
  }
};

}  // namespace

extern "C" {

// MPI 5.0, 20.2.
int PMPI_Abi_get_version(int* major, int* minor) {
  *major = abi::version_major;
  *minor = abi::version_minor;
  return 0;
}
BACKSTAY_MPI_NAME(MPI_Abi_get_version)

int PMPI_Init(int* argc, char*** argv) {
  const InCall in_call;
  give_environment();
  const int result = call_as_job(index_MPI_Init, word(argc), word(argv));
  return begun(started(result, 0));
}
BACKSTAY_MPI_NAME(MPI_Init)

// A program that asks for less than MPI_THREAD_MULTIPLE is not given it, and pays for no lock.
int PMPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const InCall in_call;
  give_environment();
  int level = 0;
  const int result = call_as_job(index_MPI_Init_thread, word(argc), word(argv),
                                 static_cast<uint64_t>(required), word(&level));
  if (provided != nullptr) *provided = level;
  const int counted = begun(started(result, level));
  if (counted == 0 && level >= abi::thread_multiple) begin_sharing();
  return counted;
}
BACKSTAY_MPI_NAME(MPI_Init_thread)

// No rank is in front of it and another one behind it at a cut: it is a collective call.
int PMPI_Finalize() {
  const Collective ending(predefined_world());
  if (!has_ended_before()) delete_own_attributes();
  const int result = job(index_MPI_Finalize);
  if (result == 0) note_end();
  end_counting();
  return result;
}
BACKSTAY_MPI_NAME(MPI_Finalize)

int PMPI_Initialized(void* flag) {
  const int result = call<int>(index_MPI_Initialized, flag);
  if (has_ended_before()) *static_cast<int*>(flag) = 1;
  return result;
}
BACKSTAY_MPI_NAME(MPI_Initialized)

int PMPI_Finalized(void* flag) {
  const int result = call<int>(index_MPI_Finalized, flag);
  if (has_ended_before()) *static_cast<int*>(flag) = 1;
  return result;
}
BACKSTAY_MPI_NAME(MPI_Finalized)

// To the real MPI all threads are one: the lower half's.
int PMPI_Is_thread_main(void* flag) {
  const int result = call<int>(index_MPI_Is_thread_main, flag);
  if (result == 0) *static_cast<int*>(flag) = is_main_thread() ? 1 : 0;
  return result;
}
BACKSTAY_MPI_NAME(MPI_Is_thread_main)

double PMPI_Wtime() {
  if (const uint64_t fs = callback_fs()) {
    return program_time(call_with<double>(fs, index_MPI_Wtime));
  }
  const InCall in_call;
  return program_time(beside<double>(index_MPI_Wtime));
}
BACKSTAY_MPI_NAME(MPI_Wtime)

// It is there for tools; MPI itself does nothing.
int PMPI_Pcontrol(const int, ...) { return 0; }
BACKSTAY_MPI_NAME(MPI_Pcontrol)

#define BACKSTAY_CALLS_OF_ALLTOALLW(name, i_name, neighbours)                                \
  int PMPI_##name(BACKSTAY_ALLTOALLW) {                                                      \
    const Collective begun(comm);                                                            \
    BACKSTAY_ALL_OF(neighbours);                                                             \
    return all.run(index_MPI_##name);                                                        \
  }                                                                                          \
  BACKSTAY_MPI_NAME(MPI_##name)                                                              \
  int PMPI_##i_name(BACKSTAY_ALLTOALLW, void* request) {                                     \
    const Collective begun(comm);                                                            \
    BACKSTAY_ALL_OF(neighbours);                                                             \
    const int result = all.begin(index_MPI_##i_name, request);                               \
    if (result == 0) note_request(made_request(request), Request::Kind::collective);         \
    return result;                                                                           \
  }                                                                                          \
  BACKSTAY_MPI_NAME(MPI_##i_name)                                                            \
  int PMPI_##name##_init(BACKSTAY_ALLTOALLW, abi::Handle<Class::info> info, void* request) { \
    const InCall in_call;                                                                    \
    refuse("it has made a persistent collective operation");                                 \
    BACKSTAY_ALL_OF(neighbours);                                                             \
    return all.begin(index_MPI_##name##_init, request, abi::real<Class::info>(info));        \
  }                                                                                          \
  BACKSTAY_MPI_NAME(MPI_##name##_init)
BACKSTAY_CALLS_OF_ALLTOALLW(Alltoallw, Ialltoallw, false)
BACKSTAY_CALLS_OF_ALLTOALLW(Neighbor_alltoallw, Ineighbor_alltoallw, true)

}  // extern "C"

}  // namespace backstay::mpi
