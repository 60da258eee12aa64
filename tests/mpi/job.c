/* A parallel program with a result that depends on every step of every rank: if a restart lost,
 * repeated or mixed anything, the last line differs.
 *
 * job STEPS EVERY [name=value ...]
 *   kill_step=S kill_rank=R  that rank kills itself (SIGKILL) after step S, once a restart is
 *                            possible
 *   gate_step=S gate=FILE    all ranks wait after step S until FILE exists (rank 0 creates
 *                            FILE.reached)
 *   safe_step=S              all ranks wait after step S until the newest version is on other nodes
 *                            too
 *   wait_level=L             at the end all ranks wait until the newest version has that level
 *   after_restart=N          after a restart N steps are done, in place of STEPS
 *   step_ms=N                each step takes so long at least
 *   until_stop=1             ignores EVERY; checkpoints when due, ends when asked to stop
 *   streams=N                each checkpoint also has N streams of each rank; a restart reads them
 */
#include <mpi.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backstay/backstay.h"
#include "backstay/backstay_mpi.h"
#include "backstay/backstay_streams.h"

enum { cells = 300000 };
static double u[cells];
static int64_t step;
static int rank, ranks;
static long streams; /* of each rank and version; none: 0 or less */

static const char* option(int argc, char** argv, const char* name) {
  const size_t length = strlen(name);
  for (int i = 3; i < argc; ++i) {
    if (strncmp(argv[i], name, length) == 0 && argv[i][length] == '=') return argv[i] + length + 1;
  }
  return NULL;
}

static long number(int argc, char** argv, const char* name) {
  const char* text = option(argc, argv, name);
  return text == NULL ? -1 : atol(text);
}

static void must(int code, const char* what) {
  if (code == BACKSTAY_OK) return;
  printf("rank %d: %s: %s: %s\n", rank, what, backstay_strerror(code), backstay_error_message());
  fflush(stdout);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

static void compute(void) {
  double edge = u[cells - 1], from_left = 0;
  MPI_Sendrecv(&edge, 1, MPI_DOUBLE, (rank + 1) % ranks, 0, &from_left, 1, MPI_DOUBLE,
               (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int i = 0; i < cells; ++i) {
    const double next = 0.7 * u[i] + 0.3 * from_left + 1e-3 * (double)(i % 7);
    from_left = u[i];
    u[i] = next;
  }
  ++step;
}

/* Added up in the order of the ranks, wherever they run. */
static void print_result(void) {
  double sum = 0, all = 0, *sums = calloc((size_t)ranks, sizeof *sums);
  for (int i = 0; i < cells; ++i) sum += u[i] * (double)(1 + i % 3);
  MPI_Gather(&sum, 1, MPI_DOUBLE, sums, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  for (int i = 0; i < ranks; ++i) all += sums[i];
  if (rank == 0) printf("result step=%lld sum=%a\n", (long long)step, all);
  free(sums);
}

/* Stream i of a rank, as it is saved in this step: its bytes follow from all three. */
static size_t fill_stream(char* data, int i) {
  const size_t bytes = (size_t)(1000 * i + 7 * rank);
  for (size_t at = 0; at < bytes; ++at) data[at] = (char)(at * 31 + (size_t)(step + 3 * rank + i));
  return bytes;
}

enum { stream_max = 100000 };

static int save(void) {
  static char data[stream_max];
  for (int i = 0; i < streams; ++i) {
    char name[32];
    backstay_stream stream = 0;
    snprintf(name, sizeof name, "stream %d", i);
    must(backstay_stream_open(name, &stream), "open a stream");
    must(backstay_stream_write(stream, data, fill_stream(data, i)), "write a stream");
    must(backstay_stream_close(stream), "close a stream");
  }
  return backstay_checkpoint();
}

static void check_streams(uint64_t version) {
  static char wanted[stream_max], found[stream_max];
  uint64_t count = 0;
  if (streams <= 0) return;
  must(backstay_stream_count(version, &count), "count the streams");
  int good = count == (uint64_t)streams;
  for (int i = 0; i < streams && good; ++i) {
    char name[32];
    const size_t bytes = fill_stream(wanted, i);
    snprintf(name, sizeof name, "stream %d", i);
    must(backstay_stream_read(version, name, 0, found, bytes), "read a stream");
    good = memcmp(wanted, found, bytes) == 0;
  }
  MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (rank == 0) printf("streams %s\n", good ? "as they were written" : "differ");
}

static void check(uint64_t version) { /* it exists, on whichever nodes it is */
  backstay_level level = BACKSTAY_CAPTURED;
  const int known = backstay_test(version, &level);
  if (known == BACKSTAY_ENOTFOUND) must(known, "test of the version restarted from");
  check_streams(version);
}

static void wait_at_gate(const char* gate) {
  char reached[4096];
  struct stat info;
  snprintf(reached, sizeof reached, "%s.reached", gate);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) fclose(fopen(reached, "w"));
  for (int tries = 0; tries < 18000 && stat(gate, &info) != 0; ++tries) usleep(10000);
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  long steps = atol(argv[1]);
  const long every = atol(argv[2]);
  uint64_t version = 0;
  streams = number(argc, argv, "streams");
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  must(backstay_init_mpi(MPI_COMM_WORLD, NULL), "init");
  must(backstay_protect("u", u, cells, BACKSTAY_DOUBLE), "protect u");
  must(backstay_protect("step", &step, 1, BACKSTAY_INT64), "protect step");
  for (int i = 0; i < cells; ++i) u[i] = (double)((i + rank) % 13);

  const int restarted = backstay_restart(&version);
  if (restarted == BACKSTAY_OK && rank == 0) {
    printf("restarted version=%llu step=%lld\n", (unsigned long long)version, (long long)step);
  }
  const long more_steps = number(argc, argv, "after_restart");
  if (restarted == BACKSTAY_OK && more_steps > 0) steps = (long)step + more_steps;
  if (restarted != BACKSTAY_ENONE) must(restarted, "restart");
  if (restarted == BACKSTAY_OK) check(version);

  const long step_ms = number(argc, argv, "step_ms");
  const int until_stop = number(argc, argv, "until_stop") == 1;
  while (step < steps) {
    compute();
    if (step_ms > 0) usleep((unsigned)step_ms * 1000);
    const int due = backstay_due();
    if (until_stop ? due : step % every == 0) {
      const int code = save();
      if (rank == 0) {
        printf("checkpoint step=%lld code=%d version=%llu\n", (long long)step, code,
               (unsigned long long)backstay_version());
        fflush(stdout);
      }
    }
    if (until_stop && backstay_stop_requested()) break;
    if (step == number(argc, argv, "gate_step")) wait_at_gate(option(argc, argv, "gate"));
    if (step == number(argc, argv, "safe_step")) {
      must(backstay_wait(backstay_version(), BACKSTAY_PROTECTED, 60), "wait for level protected");
      if (rank == 0) printf("protected step=%lld\n", (long long)step);
      fflush(stdout);
    }
    if (step == number(argc, argv, "kill_step") && rank == number(argc, argv, "kill_rank")) {
      kill(getpid(), SIGKILL);
    }
  }
  const long level = number(argc, argv, "wait_level");
  if (level > 0) {
    const int code = backstay_wait(backstay_version(), (backstay_level)level, 30);
    if (rank == 0)
      printf("waited level=%ld code=%d %s\n", level, code,
             code == BACKSTAY_OK ? "" : backstay_error_message());
  }
  print_result();
  fflush(stdout); /* MPI_Finalize can hang over TCP */
  must(backstay_finalize(), "finalize");
  MPI_Finalize();
  return 0;
}
