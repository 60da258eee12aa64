// What calls cost, the least of many: nanoseconds of calls that are counted and of one that is not,
// latency and bandwidth between two ranks; and the memory of rank 0 and of its parent.
// Usage: calls_cost [threads | start], on two ranks. threads: it asks for MPI_THREAD_MULTIPLE.
// start: it begins and ends, no more, on any number of ranks.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { times = 61 };
static int rank;

// The machine has other work; what is added by that is not what is asked for.
enum best { least, largest };

static double best_of(const double* all, enum best which) {
  double found = all[0];
  for (int i = 1; i < times; ++i) {
    if (which == largest ? all[i] > found : all[i] < found) found = all[i];
  }
  return found;
}

static void print(const char* what, const double* all, enum best which, double scale) {
  if (rank == 0) printf("%-34s %10.2f\n", what, best_of(all, which) * scale);
}

static void no_message(void) {
  double all[times];
  for (int i = 0; i < times; ++i) {
    const double begin = MPI_Wtime();
    int number = 0;
    for (int k = 0; k < 10000; ++k) MPI_Comm_rank(MPI_COMM_WORLD, &number);
    all[i] = (MPI_Wtime() - begin) / 10000;
  }
  print("Comm_rank, ns", all, least, 1e9);
}

static void to_itself(void) {
  double all[times];
  char from = 0, to = 0;
  for (int i = 0; i < times; ++i) {
    const double begin = MPI_Wtime();
    for (int k = 0; k < 1000; ++k) {
      MPI_Request request[2];
      MPI_Irecv(&to, 1, MPI_CHAR, 0, 1, MPI_COMM_SELF, &request[0]);
      MPI_Isend(&from, 1, MPI_CHAR, 0, 1, MPI_COMM_SELF, &request[1]);
      MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
    }
    all[i] = (MPI_Wtime() - begin) / 1000;
  }
  print("Irecv, Isend, Waitall to itself, ns", all, least, 1e9);
}

// The latency, or the bytes a second.
static void ping_pong(int bytes, int turns, const char* what, enum best which) {
  double all[times];
  char* buffer = calloc(1, (size_t)bytes + 1);
  for (int i = 0; i < times; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    for (int k = 0; k < turns; ++k) {
      if (rank == 0) {
        MPI_Send(buffer, bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
        MPI_Recv(buffer, bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      } else {
        MPI_Recv(buffer, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(buffer, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
      }
    }
    all[i] = (MPI_Wtime() - begin) / turns / 2;
    if (which == largest) all[i] = bytes / all[i];
  }
  print(what, all, which, which == largest ? 1e-9 : 1e9);
  free(buffer);
}

static void barrier(void) {
  double all[times];
  for (int i = 0; i < times; ++i) {
    const double begin = MPI_Wtime();
    for (int k = 0; k < 100; ++k) MPI_Barrier(MPI_COMM_WORLD);
    all[i] = (MPI_Wtime() - begin) / 100;
  }
  print("Barrier, ns", all, least, 1e9);
}

// What the process alone has in memory: nobody else pays for that. The parent of this one is its
// companion, if it has one.
static void memory(const char* what, int process) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/smaps_rollup", process);
  FILE* file = fopen(path, "r");
  char line[256];
  long kib = 0, found = 0;
  while (file && fgets(line, sizeof line, file)) {
    if (sscanf(line, "Private_%*[CD]%*[a-z]: %ld", &found) == 1) kib += found;
  }
  if (file) fclose(file);
  if (rank == 0) printf("%-34s %10.2f\n", what, (double)kib / 1024);
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "";
  int level = 0;
  MPI_Init_thread(&argc, &argv, strcmp(how, "threads") ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE,
                  &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (!strcmp(how, "start")) return MPI_Finalize();
  no_message();
  to_itself();
  barrier();
  ping_pong(1, 200, "latency of 1 byte, ns", least);
  ping_pong(1024, 200, "latency of 1 KiB, ns", least);
  ping_pong(65536, 20, "64 KiB, GB/s", largest);
  ping_pong(4 << 20, 2, "4 MiB, GB/s", largest);
  memory("memory, MiB", getpid());
  memory("of its parent, MiB", getppid());
  MPI_Finalize();
  return 0;
}
