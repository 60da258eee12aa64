// backstay_init_mpi: an MPI communicator as the group of a session.
//
// Compiled once for each MPI of the machine; with transport.cc all of Backstay that calls MPI. Ours
// is a duplicate of the caller's communicator, so that our messages never meet the program's, and
// returns errors instead of ending the program.
#include <climits>
#include <memory>
#include <new>

#include "backstay/backstay_mpi.h"
#include "capture/mpi/context.h"
#include "client/launcher.h"

namespace {

using backstay::mpi::Context;

int broadcast(void* context, void* data, size_t bytes, int root) {
  if (bytes > INT_MAX) return MPI_ERR_COUNT;
  return MPI_Bcast(data, static_cast<int>(bytes), MPI_BYTE, root,
                   static_cast<Context*>(context)->comm);
}

int minimum(void* context, int64_t* value) {
  return MPI_Allreduce(MPI_IN_PLACE, value, 1, MPI_INT64_T, MPI_MIN,
                       static_cast<Context*>(context)->comm);
}

void release(void* context) {
  auto* mine = static_cast<Context*>(context);
  int finalized = 0;
  if (MPI_Finalized(&finalized) == MPI_SUCCESS && finalized == 0) {
    if (mine->file_comm != MPI_COMM_NULL) MPI_Comm_free(&mine->file_comm);
    if (mine->block != MPI_DATATYPE_NULL) MPI_Type_free(&mine->block);
    MPI_Comm_free(&mine->comm);
  }
  delete mine;
}

// Finds the ranks that share this node, and the number of nodes. Collective.
int find_place(MPI_Comm comm, backstay_group& group) {
  MPI_Comm local = MPI_COMM_NULL;
  int rc = MPI_Comm_rank(comm, &group.rank);
  if (rc == MPI_SUCCESS) rc = MPI_Comm_size(comm, &group.ranks);
  if (rc == MPI_SUCCESS) {
    rc = MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, group.rank, MPI_INFO_NULL, &local);
  }
  if (rc != MPI_SUCCESS) return rc;
  MPI_Comm_rank(local, &group.local_rank);
  MPI_Comm_size(local, &group.local_ranks);
  // The first rank of each node counts it; the nodes are numbered in the order of these ranks.
  const int first = group.local_rank == 0 ? 1 : 0;
  int up_to_me = 0;
  rc = MPI_Allreduce(&first, &group.nodes, 1, MPI_INT, MPI_SUM, comm);
  if (rc == MPI_SUCCESS) rc = MPI_Scan(&first, &up_to_me, 1, MPI_INT, MPI_SUM, comm);
  group.node = up_to_me - 1;
  if (rc == MPI_SUCCESS) rc = MPI_Bcast(&group.node, 1, MPI_INT, 0, local);
  MPI_Comm_free(&local);
  return rc;
}

bool mpi_runs() {
  int initialized = 0;
  int finalized = 0;
  return MPI_Initialized(&initialized) == MPI_SUCCESS && initialized != 0 &&
         MPI_Finalized(&finalized) == MPI_SUCCESS && finalized == 0;
}

}  // namespace

extern "C" int backstay_init_mpi(MPI_Comm comm, const char* config) {
  if (!mpi_runs()) {
    return backstay_launcher_failed(BACKSTAY_ESTATE,
                                    "call backstay_init_mpi between MPI_Init and MPI_Finalize");
  }
  if (comm == MPI_COMM_NULL) {
    return backstay_launcher_failed(BACKSTAY_ENULL, "the communicator is MPI_COMM_NULL");
  }
  std::unique_ptr<Context> context(new (std::nothrow) Context);
  if (context == nullptr || MPI_Comm_dup(comm, &context->comm) != MPI_SUCCESS) {
    return backstay_launcher_failed(BACKSTAY_EINTERNAL, "the communicator cannot be duplicated");
  }
  MPI_Comm_set_errhandler(context->comm, MPI_ERRORS_RETURN);
  backstay_group group{};
  group.context = context.get();
  group.broadcast = broadcast;
  group.minimum = minimum;
  group.release = release;
  int code = BACKSTAY_OK;
  if (find_place(context->comm, group) != MPI_SUCCESS) {
    code =
        backstay_launcher_failed(BACKSTAY_EINTERNAL, "MPI does not know which ranks share a node");
  } else {
    code = backstay_launcher_init(&group, &backstay::mpi::transport, config);
  }
  if (code != BACKSTAY_OK) {
    MPI_Comm_free(&context->comm);
    return code;
  }
  (void)context.release();  // the session's now, until finalize calls release()
  return BACKSTAY_OK;
}
