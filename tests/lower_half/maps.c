// Every rank writes its map behind MPI's start and some messages to argv[1] and its number.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char** argv) {
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int bytes = 4 << 20;
  char *from = calloc(1, bytes), *to = calloc(1, bytes);
  MPI_Sendrecv(from, bytes, MPI_CHAR, (rank + 1) % ranks, 1, to, bytes, MPI_CHAR,
               (rank + ranks - 1) % ranks, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  char path[4096];
  snprintf(path, sizeof path, "%s%d", argv[1], rank);
  FILE* out = fopen(path, "w");
  FILE* maps = fopen("/proc/self/maps", "r");
  for (char line[8192]; fgets(line, sizeof line, maps);) fprintf(out, "map %d %s", rank, line);
  fclose(maps);
  FILE* status = fopen("/proc/self/status", "r");
  for (char line[256]; fgets(line, sizeof line, status);) {
    if (strncmp(line, "SigCgt:", 7) == 0) fprintf(out, "handlers %d %s", rank, line + 8);
  }
  fclose(status);
  fprintf(out, "break %d %p main %p\n", rank, sbrk(0), (void*)main);
  fclose(out);
  MPI_Finalize();
  return 0;
}
