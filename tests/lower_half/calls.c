// What the halo does not use: callbacks, attributes, error handlers, arrays of handles in each
// direction. Each rank prints "right" or where it differs.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks, failed;
static void check(int good, const char* what, int line) {
  if (good) return;
  ++failed;
  printf("rank %d: wrong in line %d: %s\n", rank, line, what);
}
#define CHECK(what) check((what), #what, __LINE__)

static int copies, deletes;
static MPI_Comm seen_comm;
static int copy_attribute(MPI_Comm comm, int key, void* extra, void* in, void* out, int* flag) {
  (void)key;
  seen_comm = comm;
  copies += *(int*)extra;
  *(void**)out = in;
  *flag = 1;
  return MPI_SUCCESS;
}
static int delete_attribute(MPI_Comm comm, int key, void* value, void* extra) {
  (void)comm, (void)key, (void)value;
  deletes += *(int*)extra;
  return MPI_SUCCESS;
}

static void attributes(void) {
  int key, flag, step = 1, value = 42;
  void* got = NULL;
  MPI_Comm other;
  MPI_Comm_create_keyval(copy_attribute, delete_attribute, &key, &step);
  MPI_Comm_set_attr(MPI_COMM_WORLD, key, &value);
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  CHECK(copies == 1 && seen_comm == MPI_COMM_WORLD);
  MPI_Comm_get_attr(other, key, &got, &flag);
  CHECK(flag && got == &value);
  MPI_Comm_free(&other);
  CHECK(deletes == 1 && other == MPI_COMM_NULL);
  MPI_Comm_delete_attr(MPI_COMM_WORLD, key);
  MPI_Comm_free_keyval(&key);
  CHECK(deletes == 2);
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &got, &flag);
  CHECK(flag && *(int*)got >= 32767);
}

static int errors;
static void on_error(MPI_Comm* comm, int* code, ...) {
  int class = 0;
  MPI_Error_class(*code, &class);
  errors += *comm == MPI_COMM_WORLD && class == MPI_ERR_RANK;
}

static void error_handlers(void) {
  MPI_Errhandler handler, got;
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &got);
  CHECK(got == MPI_ERRORS_ARE_FATAL);
  MPI_Comm_create_errhandler(on_error, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  MPI_Send(&rank, 1, MPI_INT, ranks + 7, 0, MPI_COMM_WORLD);
  CHECK(errors == 1);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Errhandler_free(&handler);
  CHECK(handler == MPI_ERRHANDLER_NULL);
}

static void datatypes(void) {
  struct {
    int a;
    double b[2];
  } mine = {rank, {1.5, 2.5}}, theirs;
  int lengths[2] = {1, 2}, integers[3], counts[4];
  MPI_Aint places[2] = {0, (char*)mine.b - (char*)&mine}, addresses[2];
  MPI_Datatype parts[2] = {MPI_INT, MPI_DOUBLE}, whole, got[2];
  MPI_Type_create_struct(2, lengths, places, parts, &whole);
  MPI_Type_commit(&whole);
  MPI_Type_get_envelope(whole, &counts[0], &counts[1], &counts[2], &counts[3]);
  CHECK(counts[2] == 2 && counts[3] == MPI_COMBINER_STRUCT);
  MPI_Type_get_contents(whole, 3, 2, 2, integers, addresses, got);
  CHECK(got[0] == MPI_INT && got[1] == MPI_DOUBLE);
  MPI_Sendrecv(&mine, 1, whole, (rank + 1) % ranks, 1, &theirs, 1, whole,
               (rank + ranks - 1) % ranks, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK(theirs.a == (rank + ranks - 1) % ranks && theirs.b[1] == 2.5);
  MPI_Type_free(&whole);
}

// More requests than a call keeps on its stack.
enum { many = 200 };
static void requests(void) {
  MPI_Request request[2 * many];
  int in[many], out[many], done = 0;
  for (int i = 0; i < many; ++i) {
    out[i] = rank * many + i;
    MPI_Irecv(&in[i], 1, MPI_INT, (rank + 1) % ranks, i, MPI_COMM_WORLD, &request[i]);
    MPI_Isend(&out[i], 1, MPI_INT, (rank + ranks - 1) % ranks, i, MPI_COMM_WORLD,
              &request[many + i]);
  }
  while (done < 2 * many) {
    int count = 0, indices[2 * many];
    MPI_Status statuses[2 * many];
    MPI_Waitsome(2 * many, request, &count, indices, statuses);
    for (int i = 0; i < count; ++i) CHECK(request[indices[i]] == MPI_REQUEST_NULL);
    done += count;
  }
  for (int i = 0; i < many; ++i) CHECK(in[i] == (rank + 1) % ranks * many + i);
  MPI_Message message;
  MPI_Status status;
  MPI_Isend(&rank, 1, MPI_INT, (rank + 1) % ranks, 5, MPI_COMM_WORLD, &request[0]);
  MPI_Mprobe(MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &message, &status);
  MPI_Mrecv(&in[0], 1, MPI_INT, &message, &status);
  CHECK(in[0] == status.MPI_SOURCE && message == MPI_MESSAGE_NULL);
  MPI_Wait(&request[0], MPI_STATUS_IGNORE);
}

static void all_to_all_with_types(void) {
  int counts[64], places[64], in[64], out[64];
  MPI_Datatype types[64];
  for (int i = 0; i < ranks; ++i) {
    counts[i] = 1;
    places[i] = i * (int)sizeof(int);
    types[i] = i % 2 ? MPI_INT : MPI_UNSIGNED;
    out[i] = rank * 100 + i;
  }
  for (int i = 0; i < ranks; ++i) types[i] = MPI_INT;
  MPI_Alltoallw(out, counts, places, types, in, counts, places, types, MPI_COMM_WORLD);
  for (int i = 0; i < ranks; ++i) CHECK(in[i] == i * 100 + rank);
  MPI_Request request;
  memset(in, 0, sizeof in);
  MPI_Ialltoallw(out, counts, places, types, in, counts, places, types, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int i = 0; i < ranks; ++i) CHECK(in[i] == i * 100 + rank);
}

static void groups_and_info(void) {
  MPI_Group world, none, one;
  MPI_Comm alone, shared, parent;
  MPI_Info info;
  char value[16];
  int flag = 0, size = -1;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, 1, &rank, &one);
  MPI_Group_difference(one, one, &none);
  MPI_Group_size(none, &size);
  CHECK(size == 0);
  MPI_Comm_create_group(MPI_COMM_WORLD, one, 0, &alone);
  MPI_Comm_size(alone, &size);
  CHECK(size == 1);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &shared);
  MPI_Comm_size(shared, &size);
  CHECK(size == ranks);
  MPI_Comm_get_parent(&parent);
  CHECK(parent == MPI_COMM_NULL);
  MPI_Comm_split(MPI_COMM_WORLD, MPI_UNDEFINED, 0, &parent);
  CHECK(parent == MPI_COMM_NULL);
  MPI_Info_create(&info);
  MPI_Info_set(info, "key", "value");
  MPI_Info_get(info, "key", sizeof value - 1, value, &flag);
  CHECK(flag && strcmp(value, "value") == 0);
  MPI_Info_free(&info);
  MPI_Comm_free(&alone);
  MPI_Comm_free(&shared);
  MPI_Group_free(&one);
  MPI_Group_free(&world);
}

int main(int argc, char** argv) {
  int level = -1;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  CHECK(level == MPI_THREAD_FUNNELED || level == MPI_THREAD_SERIALIZED);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  attributes();
  error_handlers();
  datatypes();
  requests();
  all_to_all_with_types();
  groups_and_info();
  for (int turn = 0; turn < ranks; ++turn) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (turn == rank && failed == 0) printf("right\n");
    fflush(stdout);
  }
  MPI_Finalize();
  return failed == 0 ? 0 : 1;
}
