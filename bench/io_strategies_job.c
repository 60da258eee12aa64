/* A program whose ranks save versions: for bench/io_strategies.
 *
 *     io_strategies_job save MIB VERSIONS EACH PAUSE_S   protects four fields of MIB, saves them;
 *                                                        computes until each is on storage, or,
 *                                                        where PAUSE_S > 0, for that time alone
 *     io_strategies_job restart MIB                      brings them back
 *     io_strategies_job send MIB TIMES EACH              ranks send MIB to the first of their EACH
 *
 * Rank 0 prints a JSON object a measurement; seconds are those of the slowest rank. Workers are the
 * ranks that are not the first of their EACH; with EACH = 1 all ranks. */
#include <backstay/backstay_mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { fields = 4 };
static int rank, ranks;

static double slowest(double mine) {
  double most = 0;
  MPI_Reduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  return most;
}

static void must(int code, const char* what) {
  if (code == BACKSTAY_OK) return;
  fprintf(stderr, "%s: %s\n", what, backstay_error_message());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void compute(double seconds) {
  for (const double end = MPI_Wtime() + seconds; MPI_Wtime() < end;) {
  }
}

static int is_safe(void) {
  backstay_level level;
  must(backstay_test(backstay_version(), &level), "test");
  return level >= BACKSTAY_LOCAL;
}

static void save(char* data, size_t bytes, int versions, int each, double pause_s) {
  for (int i = 0; i < versions; ++i) {
    for (size_t at = 0; at < bytes; at += 4096) data[at] = (char)(i + rank);
    MPI_Barrier(MPI_COMM_WORLD);
    const double began = MPI_Wtime();
    must(backstay_checkpoint(), "checkpoint");
    const double blocked = MPI_Wtime() - began;
    const double most = slowest(blocked);
    const double workers = slowest(each > 1 && rank % each == 0 ? 0 : blocked);
    compute(pause_s);
    while (pause_s == 0 && !is_safe()) compute(0.002);
    const double safe = slowest(MPI_Wtime() - began);
    if (rank == 0) {
      printf("{\"blocked_s\": %.6f, \"workers_s\": %.6f, \"safe_s\": %.6f}\n", most, workers, safe);
      fflush(stdout);
    }
  }
}

static void send_plainly(char* data, size_t bytes, int times, int each) {
  char* from = malloc(bytes * (size_t)each);
  memset(from, 0, bytes * (size_t)each);
  const int writer = rank / each * each;
  for (int i = 0; i < times; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double began = MPI_Wtime();
    if (rank == writer) {
      for (int other = writer + 1; other < writer + each && other < ranks; ++other)
        MPI_Recv(from + bytes * (size_t)(other - writer), (int)bytes, MPI_BYTE, other, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Send(data, (int)bytes, MPI_BYTE, writer, 0, MPI_COMM_WORLD);
    }
    const double sent = slowest(rank == writer ? 0 : MPI_Wtime() - began);
    if (rank == 0) printf("{\"send_s\": %.6f}\n", sent);
  }
  free(from);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc < 3) return 2;
  const size_t bytes = (size_t)(atof(argv[2]) * 1048576) / fields * fields;
  char* data = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  memset(data, rank + 1, bytes);
  if (strcmp(argv[1], "send") == 0) {
    send_plainly(data, bytes, atoi(argv[3]), atoi(argv[4]));
    MPI_Finalize();
    return 0;
  }
  must(backstay_init_mpi(MPI_COMM_WORLD, NULL), "init");
  for (int i = 0; i < fields; ++i) {
    const char name[2] = {(char)('a' + i), 0};
    must(backstay_protect(name, data + bytes / fields * (size_t)i, bytes / fields, BACKSTAY_BYTE),
         "protect");
  }
  if (strcmp(argv[1], "save") == 0) {
    save(data, bytes, atoi(argv[3]), atoi(argv[4]), atof(argv[5]));
  } else {
    const double began = MPI_Wtime();
    must(backstay_restart(NULL), "restart");
    const double took = slowest(MPI_Wtime() - began);
    if (rank == 0) printf("{\"restart_s\": %.6f}\n", took);
  }
  must(backstay_finalize(), "finalize");
  MPI_Finalize();
  return 0;
}
