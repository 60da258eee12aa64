// A program that stands between two calls of MPI that belong together, until there is a file "go"
// in its working directory; it says so by a file at.RANK. Usage: between SCENARIO
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, ranks, left, right, raised;
static MPI_Comm own;  // of which nothing but this program's messages is
static int got[1000], words[1000];
static MPI_Request request[4];
static MPI_Message message[3];
static MPI_Status status[4];

static void check(int is_right, const char* what) {
  if (is_right) return;
  printf("rank %d: wrong: %s\n", rank, what);
  fflush(stdout);
  _exit(3);
}

static int class_of(int code) {
  int result = 0;
  MPI_Error_class(code, &result);
  return result;
}

static int count_of(const MPI_Status* of) {
  int count = -1;
  MPI_Get_count(of, MPI_INT, &count);
  return count;
}

static void send_all(void) {
  MPI_Isend(words, 1, MPI_INT, right, 1, own, &request[0]);
  MPI_Isend(words, 0, MPI_INT, right, 2, own, &request[1]);
  MPI_Isend(words, 1000, MPI_INT, right, 3, own, &request[2]);
  MPI_Isend(words, 3, MPI_INT, right, 4, own, &request[3]);
}

// --- matched, and not received

static void match(void) {
  int flag = 0;
  send_all();
  MPI_Mprobe(left, 3, own, &message[0], &status[0]);
  MPI_Mprobe(MPI_ANY_SOURCE, 1, own, &message[1], &status[1]);
  while (!flag) MPI_Improbe(left, 2, own, &flag, &message[2], &status[2]);
}

static void receive_matched(void) {
  MPI_Request late;
  MPI_Status of;
  MPI_Imrecv(got, 1000, MPI_INT, &message[0], &late);
  check(message[0] == MPI_MESSAGE_NULL, "handle of a message that is received");
  MPI_Wait(&late, &of);
  check(count_of(&of) == 1000 && of.MPI_SOURCE == left && of.MPI_TAG == 3, "MPI_Imrecv");
  check(got[999] == 1000 * left + 999, "what MPI_Imrecv received");
  MPI_Mrecv(got, 5, MPI_INT, &message[2], &of);
  check(count_of(&of) == 0 && of.MPI_TAG == 2, "MPI_Mrecv of nothing");
  MPI_Mrecv(got, 5, MPI_INT, &message[1], &of);
  check(count_of(&of) == 1 && got[0] == 1000 * left && got[1] == 1000 * left + 1, "MPI_Mrecv");
  MPI_Recv(got, 5, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, own, &of);
  check(of.MPI_TAG == 4 && count_of(&of) == 3, "the last message");
  MPI_Waitall(4, request, MPI_STATUSES_IGNORE);
}

// --- cancelled, and not waited for

static void cancel(void) {
  MPI_Irecv(got, 5, MPI_INT, left, 5, own, &request[0]);
  MPI_Recv_init(got + 10, 5, MPI_INT, left, 5, own, &request[1]);
  MPI_Start(&request[1]);
  MPI_Irecv(got + 20, 5, MPI_INT, left, 5, own, &request[2]);
  MPI_Cancel(&request[0]);
  MPI_Cancel(&request[1]);
}

static void wait_for_cancelled(void) {
  int flag = 0;
  MPI_Wait(&request[0], &status[0]);
  MPI_Test_cancelled(&status[0], &flag);
  check(flag && request[0] == MPI_REQUEST_NULL, "a cancelled receive");
  MPI_Wait(&request[1], &status[1]);
  MPI_Test_cancelled(&status[1], &flag);
  check(flag && request[1] != MPI_REQUEST_NULL, "a cancelled persistent receive");
  MPI_Start(&request[1]);
  MPI_Send(words, 2, MPI_INT, right, 5, own);
  MPI_Send(words + 2, 2, MPI_INT, right, 5, own);
  MPI_Wait(&request[2], &status[2]);
  MPI_Test_cancelled(&status[2], &flag);
  check(!flag && got[20] == 1000 * left, "a receive behind two cancelled ones");
  MPI_Wait(&request[1], &status[1]);
  MPI_Test_cancelled(&status[1], &flag);
  check(!flag && got[10] == 1000 * left + 2, "a persistent receive that was cancelled before");
  MPI_Request_free(&request[1]);
}

// --- failed, and not looked at

static void fail(void) {
  MPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Irecv(got, 1, MPI_INT, left, 6, own, &request[0]);
  MPI_Irecv(got + 10, 1, MPI_INT, left, 7, own, &request[1]);
  MPI_Irecv(got + 20, 3, MPI_INT, left, 8, own, &request[2]);
  MPI_Barrier(own);
  for (int tag = 6; tag < 10; ++tag) MPI_Send(words, 3, MPI_INT, right, tag, own);
}

static void see_failures(void) {
  memset(status, 0, sizeof status);
  check(class_of(MPI_Wait(&request[0], &status[0])) == MPI_ERR_TRUNCATE, "MPI_Wait");
  check(request[0] == MPI_REQUEST_NULL, "request of a failed receive");
  const int code = MPI_Waitall(2, request + 1, status + 1);
  check(class_of(code) == MPI_ERR_IN_STATUS, "MPI_Waitall");
  check(class_of(status[1].MPI_ERROR) == MPI_ERR_TRUNCATE, "status of a failed receive");
  // MPICH leaves requests behind a failed one as they are.
  if (class_of(status[2].MPI_ERROR) == MPI_ERR_PENDING) MPI_Wait(&request[2], MPI_STATUS_IGNORE);
  check(request[2] == MPI_REQUEST_NULL && got[22] == 1000 * left + 2, "the other receive");
  int flag = -1;
  memset(&status[0], 0x55, sizeof status[0]);
  got[0] = -1;
  check(class_of(MPI_Recv(got, 1, MPI_INT, left, 9, own, &status[0])) == MPI_ERR_TRUNCATE,
        "MPI_Recv");
  MPI_Test_cancelled(&status[0], &flag);
  const int count = count_of(&status[0]);  // Open MPI counts what was sent
  check(!flag && (count == 1 || count == 3) && got[0] == 1000 * left, "what of it fits");
}

// --- the handler that MPI_Recv calls is its communicator's

static void raise_it(MPI_Comm* of, int* code, ...) {
  int same = 0;
  MPI_Comm_compare(*of, own, &same);
  check(same == MPI_IDENT && class_of(*code) == MPI_ERR_TRUNCATE, "arguments of a handler");
  ++raised;
}

static void receive_too_much(int tag) {
  const int before = raised;
  MPI_Isend(words, 3, MPI_INT, right, tag, own, &request[0]);
  const int code = MPI_Recv(got, 1, MPI_INT, left, tag, own, MPI_STATUS_IGNORE);
  check(class_of(code) == MPI_ERR_TRUNCATE && raised == before + 1, "the handler of MPI_Recv");
  MPI_Wait(&request[0], MPI_STATUS_IGNORE);
}

static void handle(void) {
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(raise_it, &handler);
  MPI_Comm_set_errhandler(own, handler);
  MPI_Errhandler_free(&handler);
  receive_too_much(10);
  MPI_Isend(words, 3, MPI_INT, right, 11, own, &request[1]);  // a cut takes it into the store
}

static void handle_again(void) {
  check(MPI_Recv(got, 1, MPI_INT, left, 11, own, MPI_STATUS_IGNORE) != MPI_SUCCESS && raised == 2,
        "the handler for a message that was taken in");
  MPI_Wait(&request[1], MPI_STATUS_IGNORE);
  receive_too_much(12);
}

// --- more bytes than fit into 31 bits

enum { block_bytes = 1 << 20, blocks = 2200 };
static char* large;
static MPI_Datatype block;

static void send_large(void) {
  MPI_Type_contiguous(block_bytes, MPI_BYTE, &block);
  MPI_Type_commit(&block);
  large = calloc(blocks, block_bytes);
  check(large != NULL, "memory");
  if (rank != 0) return;
  for (size_t i = 0; i < blocks; ++i) large[i * block_bytes + 7] = (char)(i * 31);
  MPI_Isend(large, blocks, block, 1, 12, own, &request[0]);
}

static void receive_large(void) {
  if (rank == 0) {
    MPI_Wait(&request[0], MPI_STATUS_IGNORE);
  } else if (rank == 1) {
    int count = 0;
    MPI_Recv(large, blocks, block, 0, 12, own, &status[0]);
    MPI_Get_count(&status[0], block, &count);
    check(count == blocks, "count of a large message");
    for (size_t i = 0; i < blocks; ++i)
      check(large[i * block_bytes + 7] == (char)(i * 31), "bytes of a large message");
  }
  MPI_Type_free(&block);
}

// ---

static const struct {
  const char* name;
  void (*before)(void);
  void (*behind)(void);
} all[] = {{"matched", match, receive_matched},
           {"cancelled", cancel, wait_for_cancelled},
           {"failed", fail, see_failures},
           {"handled", handle, handle_again},
           {"large", send_large, receive_large}};

static void stand(MPI_Comm quiet) {
  char name[20];
  int flag = 0;
  snprintf(name, sizeof name, "at.%d", rank);
  close(open(name, O_CREAT | O_WRONLY, 0600));
  while (access("go", F_OK) != 0) {
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, quiet, &flag, MPI_STATUS_IGNORE);
    usleep(1000);
  }
}

int main(int argc, char** argv) {
  MPI_Comm quiet;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  left = (rank + ranks - 1) % ranks;
  right = (rank + 1) % ranks;
  for (int i = 0; i < 1000; ++i) words[i] = 1000 * rank + i;
  MPI_Comm_dup(MPI_COMM_WORLD, &own);
  MPI_Comm_dup(MPI_COMM_WORLD, &quiet);
  for (size_t i = 0; argc > 1 && i < sizeof all / sizeof all[0]; ++i) {
    if (strcmp(all[i].name, argv[1]) != 0) continue;
    all[i].before();
    stand(quiet);
    all[i].behind();
    printf("rank %d: right\n", rank);
    fflush(stdout);
  }
  MPI_Finalize();
  return 0;
}
