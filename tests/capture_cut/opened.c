// Programs that make communicators in rarer ways, and those that have something open for a while
// with which no rank can be saved: they are saved when it is closed.
#include <string.h>
#include <unistd.h>

#include "pattern.h"

static uint64_t sum_over(MPI_Comm comm, uint64_t word) {
  uint64_t sum = 0;
  MPI_Allreduce(&word, &sum, 1, MPI_UINT64_T, MPI_BXOR, comm);
  return mix(sum, word);
}

// --- communicators

static uint64_t duplicates(int step) {
  if (step % 40 != 0) return sum_over(MPI_COMM_WORLD, own[0]);
  MPI_Comm one = MPI_COMM_NULL, other = MPI_COMM_NULL, of_one = MPI_COMM_NULL;
  MPI_Request request[2];
  MPI_Comm_idup(MPI_COMM_WORLD, &one, &request[0]);
  MPI_Comm_idup(MPI_COMM_WORLD, &other, &request[1]);
  work(step);
  MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
  MPI_Comm_idup(one, &of_one, &request[0]);
  const uint64_t sum = sum_over(other, own[0]);
  MPI_Wait(&request[0], MPI_STATUS_IGNORE);
  const uint64_t more = mix(sum_over(of_one, own[1]), sum_over(one, own[2]));
  MPI_Comm_free(&other);
  MPI_Comm_free(&one);
  MPI_Comm_free(&of_one);
  return mix(sum, more);
}

// --- what is open for a while

static uint64_t file(int step) {
  if (step % 500 != 0) return sum_over(MPI_COMM_WORLD, own[0]);
  static const char* name = NULL;
  if (name == NULL) name = getenv("PATTERN_FILE");
  MPI_File all;
  MPI_Status status;
  if (name == NULL || MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR,
                                    MPI_INFO_NULL, &all) != MPI_SUCCESS) {
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
  const int bytes = words * (int)sizeof own[0];
  MPI_File_write_at_all(all, (MPI_Offset)rank * bytes, own, words, MPI_UINT64_T, &status);
  MPI_File_sync(all);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File_sync(all);
  MPI_File_read_at_all(all, (MPI_Offset)right * bytes, got, words, MPI_UINT64_T, &status);
  MPI_File_close(&all);
  return sum_of(got, words);
}

static uint64_t window(int step) {
  if (step % 50 != 0) return sum_over(MPI_COMM_WORLD, own[0]);
  MPI_Win win;
  MPI_Win_create(got, sizeof got, sizeof got[0], MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Win_fence(0, win);
  MPI_Put(own, words, MPI_UINT64_T, right, 0, words, MPI_UINT64_T, win);
  MPI_Win_fence(0, win);
  MPI_Win_free(&win);
  return sum_of(got, words);
}

static int query(void* extra, MPI_Status* status) {
  (void)extra;
  MPI_Status_set_elements(status, MPI_INT, 1);
  MPI_Status_set_cancelled(status, 0);
  status->MPI_SOURCE = rank;
  status->MPI_TAG = 1;
  return MPI_SUCCESS;
}
static int done(void* extra) {
  ++*(uint64_t*)extra;
  return MPI_SUCCESS;
}
static int cancel(void* extra, int complete) {
  (void)extra;
  (void)complete;
  return MPI_SUCCESS;
}
static uint64_t own_request(int step) {
  static uint64_t ended = 0;
  MPI_Request request;
  MPI_Grequest_start(query, done, cancel, &ended, &request);
  uint64_t sum = own[step % words];
  MPI_Grequest_complete(request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int i = 0; i < 20; ++i) sum = sum_over(MPI_COMM_WORLD, sum);
  return mix(sum, ended);
}

// --- the buffer of MPI_Bsend, which may stay

static uint64_t buffered(int step) {
  static char buffer[4 * (words * 8 + MPI_BSEND_OVERHEAD)];
  if (step == 0) MPI_Buffer_attach(buffer, sizeof buffer);
  MPI_Bsend(own, words, MPI_UINT64_T, right, 6, MPI_COMM_WORLD);
  MPI_Bsend(own + 7, words / 2, MPI_UINT64_T, left, 7, MPI_COMM_WORLD);
  work(step);
  MPI_Recv(got, words, MPI_UINT64_T, left, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Recv(other, words, MPI_UINT64_T, right, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  own[step % words] ^= got[3];
  if (step % 40 == 39) {
    void* from = NULL;
    int bytes = 0;
    MPI_Buffer_detach(&from, &bytes);
    MPI_Buffer_attach(from, bytes);
  }
  return mix(sum_of(got, words), sum_of(other, words / 2));
}

static const struct Pattern all[] = {{"duplicates", duplicates},
                                     {"file", file},
                                     {"window", window},
                                     {"own_request", own_request},
                                     {"buffered", buffered}};

int main(int argc, char** argv) { return play(argc, argv, all, sizeof all / sizeof all[0]); }
