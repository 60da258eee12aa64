// Programs as users have them, one way to pass messages each.
#include "pattern.h"

// --- messages
// ---------------------------------------------------------------------------------

static uint64_t halo(int step) {
  MPI_Request request[4];
  const int size = size_of(step);
  MPI_Irecv(got, size, MPI_UINT64_T, left, 1, MPI_COMM_WORLD, &request[0]);
  MPI_Irecv(other, size, MPI_UINT64_T, right, 2, MPI_COMM_WORLD, &request[1]);
  MPI_Isend(own, size, MPI_UINT64_T, right, 1, MPI_COMM_WORLD, &request[2]);
  MPI_Isend(own, size, MPI_UINT64_T, left, 2, MPI_COMM_WORLD, &request[3]);
  MPI_Waitall(4, request, MPI_STATUSES_IGNORE);
  own[step % words] ^= mix(got[step % words], other[3]);
  return mix(sum_of(got, size), sum_of(other, size));
}

// The first and the last rank have no neighbour on one side.
static uint64_t edges(int step) {
  MPI_Request request[4];
  const int size = size_of(step);
  const int before = rank > 0 ? rank - 1 : MPI_PROC_NULL;
  const int behind = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;
  MPI_Irecv(got, size, MPI_UINT64_T, before, 26, MPI_COMM_WORLD, &request[0]);
  MPI_Irecv(other, size, MPI_UINT64_T, behind, 27, MPI_COMM_WORLD, &request[1]);
  MPI_Isend(own, size, MPI_UINT64_T, behind, 26, MPI_COMM_WORLD, &request[2]);
  MPI_Isend(own, size, MPI_UINT64_T, before, 27, MPI_COMM_WORLD, &request[3]);
  MPI_Waitall(4, request, MPI_STATUSES_IGNORE);
  own[step % words] ^= mix(got[step % words], other[3]);
  return mix(sum_of(got, size), sum_of(other, size));
}

static uint64_t ring(int step) {
  uint64_t token = (uint64_t)step;
  MPI_Status status;
  if (rank > 0) MPI_Recv(&token, 1, MPI_UINT64_T, left, 3, MPI_COMM_WORLD, &status);
  token = mix(token, sum_of(own, 10));
  MPI_Send(&token, 1, MPI_UINT64_T, right, 3, MPI_COMM_WORLD);
  if (rank == 0) MPI_Recv(&token, 1, MPI_UINT64_T, left, 3, MPI_COMM_WORLD, &status);
  return token;
}

// Ranks run ahead of others: messages pile up.
static uint64_t wavefront(int step) {
  const int size = size_of(step);
  memset(got, 0, sizeof got);
  if (rank > 0)
    MPI_Recv(got, size, MPI_UINT64_T, left, step % 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int i = 0; i < size; ++i) own[i] = mix(own[i], got[i] + (uint64_t)i);
  if (rank + 1 < ranks) MPI_Send(own, size, MPI_UINT64_T, right, step % 3, MPI_COMM_WORLD);
  return sum_of(own, size);
}

static uint64_t exchange(int step) {
  const int size = size_of(step);
  MPI_Sendrecv(own, size, MPI_UINT64_T, right, 4, got, size, MPI_UINT64_T, left, 4, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  MPI_Sendrecv_replace(own, words, MPI_UINT64_T, left, 5, right, 5, MPI_COMM_WORLD,
                       MPI_STATUS_IGNORE);
  return mix(sum_of(got, size), sum_of(own, words));
}

// Each rank waits for any; what it got is summed so that the order does not matter.
static uint64_t any_source(int step) {
  uint64_t sum = 0;
  for (int to = 0; to < ranks; ++to) {
    uint64_t word = mix((uint64_t)step, (uint64_t)(rank * 100 + to));
    if (to != rank) MPI_Send(&word, 1, MPI_UINT64_T, to, 6 + step % 2, MPI_COMM_WORLD);
  }
  for (int i = 1; i < ranks; ++i) {
    uint64_t word = 0;
    MPI_Status status;
    MPI_Recv(&word, 1, MPI_UINT64_T, MPI_ANY_SOURCE, 6 + step % 2, MPI_COMM_WORLD, &status);
    sum += mix(word, (uint64_t)status.MPI_SOURCE);
  }
  return sum;
}

static void work_for(int task, uint64_t* answer) {
  answer[0] = (uint64_t)task;
  answer[1] = mix(7, (uint64_t)task);
  for (int i = 0; i < 200 + task % 7 * 50; ++i) answer[1] = mix(answer[1], (uint64_t)i);
}

static uint64_t serve(int tasks) {
  uint64_t sum = 0;
  int next = 0, open = ranks - 1;
  while (open > 0) {
    uint64_t answer[2];
    MPI_Status status;
    MPI_Recv(answer, 2, MPI_UINT64_T, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    if (status.MPI_TAG == 8) sum += mix(answer[0], answer[1]);
    int task = next < tasks ? next++ : -1;
    if (task < 0) --open;
    MPI_Send(&task, 1, MPI_INT, status.MPI_SOURCE, 9, MPI_COMM_WORLD);
  }
  return sum;
}

static uint64_t master(int step) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) return serve(20 + step % 3);
  uint64_t answer[2] = {0, 0};
  MPI_Send(answer, 2, MPI_UINT64_T, 0, 7, MPI_COMM_WORLD);
  for (;;) {
    int task = 0;
    MPI_Recv(&task, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (task < 0) return 0;
    work_for(task, answer);
    MPI_Send(answer, 2, MPI_UINT64_T, 0, 8, MPI_COMM_WORLD);
  }
}

static uint64_t synchronous(int step) {
  MPI_Request request;
  MPI_Issend(own, words, MPI_UINT64_T, right, 10, MPI_COMM_WORLD, &request);
  MPI_Recv(got, words, MPI_UINT64_T, left, 10, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  uint64_t word = mix((uint64_t)step, 3);
  if (rank % 2 == 0 && rank + 1 < ranks)
    MPI_Ssend(&word, 1, MPI_UINT64_T, right, 11, MPI_COMM_WORLD);
  if (rank % 2 == 1) MPI_Recv(&word, 1, MPI_UINT64_T, left, 11, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return mix(sum_of(got, words), word);
}

// Types with gaps, sent as one and received as another; fewer elements than there is room for.
static uint64_t derived(int step) {
  static MPI_Datatype column, pairs;
  if (step == 0) {
    MPI_Type_vector(20, 1, 3, MPI_UINT64_T, &column);
    MPI_Type_commit(&column);
    int lengths[2] = {1, 2};
    MPI_Aint places[2] = {0, 24};
    MPI_Datatype types[2] = {MPI_UINT64_T, MPI_UINT64_T};
    MPI_Type_create_struct(2, lengths, places, types, &pairs);
    MPI_Type_commit(&pairs);
  }
  memset(got, 0, sizeof got);
  MPI_Status status;
  int elements = 0, count = 0;
  MPI_Send(own, 1, column, right, 12, MPI_COMM_WORLD);
  MPI_Send(own + 7, 20, MPI_UINT64_T, right, 12, MPI_COMM_WORLD);
  work(step);
  MPI_Recv(got, 30, pairs, left, 12, MPI_COMM_WORLD, &status);
  MPI_Get_elements(&status, pairs, &elements);
  MPI_Get_count(&status, pairs, &count);
  MPI_Recv(got + 200, 1, column, left, 12, MPI_COMM_WORLD, &status);
  return mix(sum_of(got, 300), (uint64_t)(elements * 1000) + (uint64_t)(unsigned)count % 1000);
}

static uint64_t persistent(int step) {
  static MPI_Request kept[4];
  if (step == 0) {
    MPI_Recv_init(got, words, MPI_UINT64_T, left, 13, MPI_COMM_WORLD, &kept[0]);
    MPI_Recv_init(other, words, MPI_UINT64_T, right, 14, MPI_COMM_WORLD, &kept[1]);
    MPI_Send_init(own, words, MPI_UINT64_T, right, 13, MPI_COMM_WORLD, &kept[2]);
    MPI_Ssend_init(own, words, MPI_UINT64_T, left, 14, MPI_COMM_WORLD, &kept[3]);
  }
  MPI_Startall(4, kept);
  for (int done = 0; done < 4;) {
    int count = 0, indices[4];
    MPI_Status status[4];
    MPI_Waitsome(4, kept, &count, indices, status);
    done += count;
  }
  return mix(sum_of(got, words), sum_of(other, words));
}

static uint64_t probing(int step) {
  uint64_t sum = 0;
  const int least =
      (step + rank) % (words / 4);  // sends of larger messages may wait for each other
  MPI_Send(own, 1 + least, MPI_UINT64_T, right, 15, MPI_COMM_WORLD);
  MPI_Send(own, 2 + least, MPI_UINT64_T, right, 16, MPI_COMM_WORLD);
  MPI_Send(own, 3 + least, MPI_UINT64_T, right, 17, MPI_COMM_WORLD);
  MPI_Status status;
  MPI_Message message;
  int count = 0, flag = 0;
  MPI_Probe(left, 16, MPI_COMM_WORLD, &status);
  MPI_Get_count(&status, MPI_UINT64_T, &count);
  MPI_Recv(got, count, MPI_UINT64_T, left, 16, MPI_COMM_WORLD, &status);
  sum = mix(sum_of(got, count), (uint64_t)count);
  MPI_Mprobe(MPI_ANY_SOURCE, 15, MPI_COMM_WORLD, &message, &status);
  MPI_Get_count(&status, MPI_UINT64_T, &count);
  work(step);
  MPI_Mrecv(got, count, MPI_UINT64_T, &message, &status);
  sum = mix(sum, mix(sum_of(got, count), (uint64_t)count));
  while (!flag) MPI_Iprobe(left, 17, MPI_COMM_WORLD, &flag, &status);
  MPI_Get_count(&status, MPI_UINT64_T, &count);
  MPI_Recv(got, count, MPI_UINT64_T, MPI_ANY_SOURCE, 17, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return mix(sum, mix(sum_of(got, count), (uint64_t)count));
}

// Looks in a loop in place of waiting, and in between at what is not there.
static uint64_t polling(int step) {
  MPI_Request request[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Irecv(got, large, MPI_UINT64_T, MPI_ANY_SOURCE, 18, MPI_COMM_WORLD, &request[0]);
  MPI_Irecv(other, words, MPI_UINT64_T, left, 19, MPI_COMM_WORLD, &request[2]);
  MPI_Send(own, size_of(step), MPI_UINT64_T, right, 18, MPI_COMM_WORLD);
  MPI_Isend(own, words, MPI_UINT64_T, right, 19, MPI_COMM_WORLD, &request[1]);
  int flag = 0, index = 0;
  MPI_Status status;
  while (!flag) MPI_Test(&request[0], &flag, &status);
  flag = 0;
  while (!flag) MPI_Testall(3, request, &flag, MPI_STATUSES_IGNORE);
  MPI_Testany(3, request, &index, &flag, &status);
  return mix(mix(sum_of(got, size_of(step)), sum_of(other, words)), (uint64_t)(unsigned)index);
}

// --- collective calls
// ------------------------------------------------------------------------

static uint64_t transpose(int step) {
  const int part = words / 8;
  (void)step;
  MPI_Alltoall(own, part, MPI_UINT64_T, got, part, MPI_UINT64_T, MPI_COMM_WORLD);
  uint64_t mine = sum_of(got, part * ranks), all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_UINT64_T, MPI_BXOR, MPI_COMM_WORLD);
  own[step % words] ^= all;
  return all;
}

static uint64_t rows(int step) {
  static MPI_Comm half;
  MPI_Comm pair;
  if (step % 10 == 0) {
    if (step > 0) MPI_Comm_free(&half);
    MPI_Comm_split(MPI_COMM_WORLD, (rank + step / 10) % 2, rank, &half);
  }
  uint64_t mine = own[step % words], sum = 0, all = 0;
  MPI_Allreduce(&mine, &sum, 1, MPI_UINT64_T, MPI_SUM, half);
  work(step);
  MPI_Bcast(&sum, 1, MPI_UINT64_T, 0, half);
  MPI_Comm_dup(half, &pair);
  int size = 0, number = 0;
  MPI_Comm_size(pair, &size);
  MPI_Comm_rank(pair, &number);
  MPI_Sendrecv(&sum, 1, MPI_UINT64_T, (number + 1) % size, 20, &all, 1, MPI_UINT64_T,
               (number + size - 1) % size, 20, pair, MPI_STATUS_IGNORE);
  MPI_Comm_free(&pair);
  if (step % 4 == 0) MPI_Barrier(MPI_COMM_WORLD);
  return mix(sum, all);
}

static uint64_t nonblocking(int step) {
  uint64_t mine = own[step % words], sum = 0, root = mine;
  MPI_Request request[3];
  MPI_Iallreduce(&mine, &sum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD, &request[0]);
  work(step);
  MPI_Ibcast(&root, 1, MPI_UINT64_T, step % ranks, MPI_COMM_WORLD, &request[1]);
  MPI_Ibarrier(MPI_COMM_WORLD, &request[2]);
  work(step + 1);
  uint64_t token = 0;
  MPI_Sendrecv(&mine, 1, MPI_UINT64_T, right, 21, &token, 1, MPI_UINT64_T, left, 21, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  int index = 0;
  MPI_Waitany(3, request, &index, MPI_STATUS_IGNORE);
  MPI_Waitall(3, request, MPI_STATUSES_IGNORE);
  return mix(mix(sum, root), token);
}

// One is in a collective call that others come to much later, behind messages of each other.
static uint64_t mixed(int step) {
  uint64_t word = mix((uint64_t)step, 5), sum = 0;
  if (rank == step % ranks) {
    for (int i = 0; i < 4; ++i) work(step);
    for (int to = 0; to < ranks; ++to) {
      if (to != rank) MPI_Send(&word, 1, MPI_UINT64_T, to, 22, MPI_COMM_WORLD);
    }
  } else {
    MPI_Recv(&word, 1, MPI_UINT64_T, step % ranks, 22, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Reduce(&word, &sum, 1, MPI_UINT64_T, MPI_SUM, (step + 1) % ranks, MPI_COMM_WORLD);
  return mix(word, sum);
}

static const struct Pattern all[] = {{"halo", halo},
                                     {"edges", edges},
                                     {"ring", ring},
                                     {"wavefront", wavefront},
                                     {"exchange", exchange},
                                     {"any_source", any_source},
                                     {"master", master},
                                     {"synchronous", synchronous},
                                     {"derived", derived},
                                     {"persistent", persistent},
                                     {"probing", probing},
                                     {"polling", polling},
                                     {"transpose", transpose},
                                     {"rows", rows},
                                     {"nonblocking", nonblocking},
                                     {"mixed", mixed}};

int main(int argc, char** argv) { return play(argc, argv, all, sizeof all / sizeof all[0]); }
