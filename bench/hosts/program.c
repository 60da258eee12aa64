/* bench_hosts_program [name=value ...], started by mpirun over the hosts.
 *
 *   do=rounds    rounds= of: steps= undisturbed ones; a checkpoint; steps until it has level= and
 *                steps= are done again. With pair=K another checkpoint follows K steps later, while
 *                the first is still being protected. With steps=0 there is no loop: the ranks wait
 *                for local, then for level.
 *   do=restart   backstay_restart() of what round= saved, compared byte by byte; nothing is saved.
 *   mib=         of memory a rank          level=     2 local, 3 protected, 4 durable
 *   work_us=, idle_us=, halo_kib=          one step   way=backstay|server|shared, target=   who
 *   saves, and where
 */
#include "program.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backstay/backstay.h"
#include "backstay/backstay_mpi.h"

Options options;
int rank, ranks;
static int words;
static char** texts;

double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double largest(double value) {
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return value;
}

double mean(double value) {
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return value / ranks;
}

long smallest(long value) {
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_LONG, MPI_MIN, MPI_COMM_WORLD);
  return value;
}

static void end_badly(const char* what, const char* why) {
  fprintf(stderr, "rank %d: %s: %s\n", rank, what, why);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

void die(const char* what) { end_badly(what, strerror(errno)); }

void must(int code, const char* what) {
  if (code != BACKSTAY_OK) end_badly(what, backstay_error_message());
}

static const char* option(const char* name, const char* otherwise) {
  const size_t length = strlen(name);
  for (int i = 1; i < words; ++i) {
    if (strncmp(texts[i], name, length) == 0 && texts[i][length] == '=')
      return texts[i] + length + 1;
  }
  return otherwise;
}

static long number(const char* name, long otherwise) {
  const char* text = option(name, NULL);
  return text == NULL ? otherwise : atol(text);
}

static int uses_backstay(void) { return strcmp(options.way, "backstay") == 0; }

/* --- a checkpoint and what follows ------------------------------------------------------------ */

/* What this host has sent over its checkpoint network, from /proc/net/dev; 0 where no device= was
 * named. */
static double sent_bytes(void) {
  const char* device = option("device", "");
  char line[512];
  double sent = 0;
  FILE* table = device[0] == '\0' ? NULL : fopen("/proc/net/dev", "r");
  while (table != NULL && fgets(line, sizeof line, table) != NULL) {
    char* name = line + strspn(line, " ");
    const size_t length = strlen(device);
    if (strncmp(name, device, length) == 0 && name[length] == ':')
      sscanf(name + length + 1, "%*s %*s %*s %*s %*s %*s %*s %*s %lf", &sent);
  }
  if (table != NULL) fclose(table);
  return sent;
}

static double checkpoint(void) {
  if (!uses_backstay()) return save_waiting();
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = now_s();
  must(backstay_checkpoint(), "checkpoint");
  return largest(now_s() - start);
}

static long level_everywhere(void) {
  backstay_level level = (backstay_level)options.level;
  if (uses_backstay() && backstay_version() > 0)
    must(backstay_test(backstay_version(), &level), "test");
  return smallest((long)level);
}

/* A step, and a look at how safe the newest version is: every step has both, so that those of a
 * copy compare with others. */
static double step_and_look(long* level) {
  const double start = now_s();
  step_once();
  *level = level_everywhere();
  return now_s() - start;
}

static void waiting_round(void) {
  const double blocked = checkpoint(), start = now_s(), sent_at_start = sent_bytes();
  must(backstay_wait(backstay_version(), BACKSTAY_LOCAL, 120), "wait for local");
  const double local = largest(now_s() - start), sent_at_local = sent_bytes();
  must(backstay_wait(backstay_version(), (backstay_level)options.level, 120), "wait for the level");
  const double level = largest(now_s() - start);
  const double early = mean(sent_at_local - sent_at_start),
               late = mean(sent_bytes() - sent_at_local);
  if (rank == 0)
    printf(
        "round {\"blocked_s\": %.6f, \"local_s\": %.6f, \"level_s\": %.6f, \"sent_early_bytes\": "
        "%.0f, "
        "\"sent_late_bytes\": %.0f}\n",
        blocked, local, level, early, late);
}

/* One number over all ranks: what the program's own small messages take at this moment. A
 * checkpoint has two of these. */
static double reduction(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = now_s();
  smallest(1);
  return largest(now_s() - start);
}

static void computing_round(void) {
  double base = 0, with = 0, during = 0, again = 0, local = 0, level_at = 0, reduced_again = 0;
  long steps_with = 0, steps_during = 0, level = 0;
  for (long i = 0; i < options.steps; ++i) base += step_and_look(&level);
  const double reduced = reduction(), blocked = checkpoint(), start = now_s();
  while (steps_with < options.steps || level_at == 0) {
    const double seconds = step_and_look(&level);
    ++steps_with;
    with += seconds;
    if (level_at == 0) during += seconds, ++steps_during;
    if (steps_with == options.pair) reduced_again = reduction(), again = checkpoint();
    if (steps_with <= options.pair) continue; /* the version that counts is not there yet */
    if (local == 0 && level >= BACKSTAY_LOCAL) local = now_s() - start;
    if (level_at == 0 && level >= options.level) level_at = now_s() - start;
  }
  if (rank == 0)
    printf(
        "round {\"blocked_s\": %.6f, \"blocked_again_s\": %.6f, \"local_s\": %.6f, \"level_s\": "
        "%.6f, "
        "\"base_s\": %.6f, \"base_steps\": %ld, \"with_s\": %.6f, \"with_steps\": %ld, "
        "\"during_s\": %.6f, "
        "\"during_steps\": %ld, \"reduced_s\": %.6f, \"reduced_again_s\": %.6f}\n",
        blocked, again, local, level_at, base, options.steps, with, steps_with, during,
        steps_during, reduced, reduced_again);
}

static void all_rounds(void) {
  for (int i = 0; i < 5 && options.steps > 0; ++i) step_once();
  for (long round = 0; round < options.rounds; ++round) {
    if (options.steps == 0) {
      fill((uint64_t)round);
      waiting_round();
    } else {
      computing_round();
    }
    fflush(stdout);
  }
}

static void restart_once(void) {
  uint64_t version = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = now_s();
  must(backstay_restart(&version), "restart");
  const double seconds = largest(now_s() - start);
  const long good = smallest(is_filled((uint64_t)number("round", 0)));
  if (!good) end_badly("restart", "other bytes than were saved");
  if (rank == 0)
    printf("round {\"restart_s\": %.6f, \"version\": %llu}\n", seconds,
           (unsigned long long)version);
}

int main(int argc, char** argv) {
  words = argc;
  texts = argv;
  options = (Options){.mib = number("mib", 64),
                      .rounds = number("rounds", 1),
                      .steps = number("steps", 0),
                      .pair = number("pair", 0),
                      .level = number("level", BACKSTAY_LOCAL),
                      .work_us = number("work_us", 5000),
                      .idle_us = number("idle_us", 0),
                      .halo_kib = number("halo_kib", 64),
                      .way = option("way", "backstay"),
                      .target = option("target", "")};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  make_state();
  if (options.steps > 0) calibrate();
  if (uses_backstay()) {
    must(backstay_init_mpi(MPI_COMM_WORLD, NULL), "init");
    must(backstay_protect("memory", memory, (size_t)options.mib << 20, BACKSTAY_UINT8), "protect");
  }
  if (strcmp(option("do", "rounds"), "restart") == 0) {
    memset(memory, 0, (size_t)options.mib << 20);
    restart_once();
  } else {
    all_rounds();
  }
  fflush(stdout); /* MPI_Finalize can hang over TCP */
  if (uses_backstay()) must(backstay_finalize(), "finalize");
  MPI_Finalize();
  return 0;
}
