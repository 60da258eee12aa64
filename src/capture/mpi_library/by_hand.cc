// Functions of which the prototype does not say enough.
#include <stdarg.h>

#include "capture/mpi_library/again.h"
#include "capture/mpi_library/attributes.h"
#include "capture/mpi_library/names.h"
#include "capture/mpi_library/requests.h"

extern "C" char** environ;

namespace backstay::mpi {

namespace {

constexpr int thread_multiple = 3;  // in both ABIs

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

// How many there are on the other side of a collective call.
int64_t peers_of(Comm comm) {
  int inter = 0;
  int size = 0;
  inside(index_MPI_Comm_test_inter, abi::real<Class::comm>(comm), &inter);
  const uint32_t index = inter != 0 ? index_MPI_Comm_remote_size : index_MPI_Comm_size;
  inside(index, abi::real<Class::comm>(comm), &size);
  return size;
}

struct Degrees {
  int in = 0, out = 0;
};

// Of a communicator with a topology. Without one MPI refuses the call itself.
Degrees degrees_of(Comm comm) {
  constexpr int cartesian = abi::handles_are_pointers ? 1 : 2;
  constexpr int graph = abi::handles_are_pointers ? 2 : 1;
  constexpr int distributed = 3;
  const uint64_t real = abi::real<Class::comm>(comm);
  Degrees degrees;
  int kind = -1;
  int own = 0;
  int weighted = 0;
  inside(index_MPI_Topo_test, real, &kind);
  if (kind == distributed) {
    inside(index_MPI_Dist_graph_neighbors_count, real, &degrees.in, &degrees.out, &weighted);
  } else if (kind == graph) {
    inside(index_MPI_Comm_rank, real, &own);
    inside(index_MPI_Graph_neighbors_count, real, own, &degrees.in);
    degrees.out = degrees.in;
  } else if (kind == cartesian) {
    inside(index_MPI_Cartdim_get, real, &degrees.in);
    degrees.out = degrees.in *= 2;
  }
  return degrees;
}

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

// With MPI_IN_PLACE the types to be sent are not looked at.
constexpr uint64_t in_place = abi::handles_are_pointers ? 1 : ~0ULL;
int64_t sent(const void* buffer, int64_t count) { return word(buffer) == in_place ? 0 : count; }

Comm predefined_world() { return abi::predefined<Class::comm>(abi::known(abi::Known::world)); }

int begun(int result) {
  const InCall in_call;
  if (result == 0) begin_counting();
  return result;
}

}  // namespace

extern "C" {

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
  if (counted == 0 && level >= thread_multiple) begin_sharing();
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

int PMPI_Alltoallw(void* from, void* send_counts, void* send_places, void* send_types, void* to,
                   void* counts, void* places, void* types, Comm comm) {
  const Collective begun(comm);
  const int64_t peers = peers_of(comm);
  Types sending(send_types, sent(from, peers));
  Types receiving(types, peers);
  return beside(index_MPI_Alltoallw, from, send_counts, send_places, sending.place(), to, counts,
                places, receiving.place(), abi::real<Class::comm>(comm));
}
BACKSTAY_MPI_NAME(MPI_Alltoallw)

int PMPI_Neighbor_alltoallw(void* from, void* send_counts, void* send_places, void* send_types,
                            void* to, void* counts, void* places, void* types, Comm comm) {
  const Collective begun(comm);
  const Degrees degrees = degrees_of(comm);
  Types sending(send_types, degrees.out);
  Types receiving(types, degrees.in);
  return beside(index_MPI_Neighbor_alltoallw, from, send_counts, send_places, sending.place(), to,
                counts, places, receiving.place(), abi::real<Class::comm>(comm));
}
BACKSTAY_MPI_NAME(MPI_Neighbor_alltoallw)

int PMPI_Ialltoallw(void* from, void* send_counts, void* send_places, void* send_types, void* to,
                    void* counts, void* places, void* types, Comm comm, void* request) {
  const Collective begun(comm);
  const int64_t peers = peers_of(comm);
  Out<Class::request> made(request);
  const int result = inside(index_MPI_Ialltoallw, from, send_counts, send_places,
                            kept_types(send_types, sent(from, peers)), to, counts, places,
                            kept_types(types, peers), abi::real<Class::comm>(comm), made.place());
  made.put();
  if (result == 0) note_request(made_request(request), Request::Kind::collective);
  return result;
}
BACKSTAY_MPI_NAME(MPI_Ialltoallw)

int PMPI_Alltoallw_init(void* from, void* send_counts, void* send_places, void* send_types,
                        void* to, void* counts, void* places, void* types, Comm comm,
                        abi::Handle<Class::info> info, void* request) {
  const InCall in_call;
  refuse("it has made a persistent collective operation");
  const int64_t peers = peers_of(comm);
  Out<Class::request> made(request);
  const int result = inside(index_MPI_Alltoallw_init, from, send_counts, send_places,
                            kept_types(send_types, sent(from, peers)), to, counts, places,
                            kept_types(types, peers), abi::real<Class::comm>(comm),
                            abi::real<Class::info>(info), made.place());
  made.put();
  return result;
}
BACKSTAY_MPI_NAME(MPI_Alltoallw_init)

int PMPI_Ineighbor_alltoallw(void* from, void* send_counts, void* send_places, void* send_types,
                             void* to, void* counts, void* places, void* types, Comm comm,
                             void* request) {
  const Collective begun(comm);
  const Degrees degrees = degrees_of(comm);
  Out<Class::request> made(request);
  const int result =
      inside(index_MPI_Ineighbor_alltoallw, from, send_counts, send_places,
             kept_types(send_types, sent(from, degrees.out)), to, counts, places,
             kept_types(types, degrees.in), abi::real<Class::comm>(comm), made.place());
  made.put();
  if (result == 0) note_request(made_request(request), Request::Kind::collective);
  return result;
}
BACKSTAY_MPI_NAME(MPI_Ineighbor_alltoallw)

int PMPI_Neighbor_alltoallw_init(void* from, void* send_counts, void* send_places, void* send_types,
                                 void* to, void* counts, void* places, void* types, Comm comm,
                                 abi::Handle<Class::info> info, void* request) {
  const InCall in_call;
  refuse("it has made a persistent collective operation");
  const Degrees degrees = degrees_of(comm);
  Out<Class::request> made(request);
  const int result = inside(index_MPI_Neighbor_alltoallw_init, from, send_counts, send_places,
                            kept_types(send_types, sent(from, degrees.out)), to, counts, places,
                            kept_types(types, degrees.in), abi::real<Class::comm>(comm),
                            abi::real<Class::info>(info), made.place());
  made.put();
  return result;
}
BACKSTAY_MPI_NAME(MPI_Neighbor_alltoallw_init)

}  // extern "C"

}  // namespace backstay::mpi
