/* A parallel program without MPI: ranks are processes that one launcher forks and ends together, as
 * mpirun does. It prints the results of its calls; every restart is compared byte by byte with the
 * data of the step.
 *
 * crash_job RANKS STEPS EVERY [name=value ...]
 *   wait=1            waits for level local after each checkpoint
 *   fail=NAME@N       rank 1 is killed when it passes this point of the library the Nth time
 *   die_after=V       all ranks are killed as soon as version V is captured
 *   cells=N           doubles a rank (default 300000)
 *   spare_mib=N       private memory that a rank may take beyond what it has before init
 *   type=float        another element type; name=NAME: another region (both differ from what was
 *                     saved)
 *   file_kib=N            each rank routes a file of N KiB, which it writes before each checkpoint
 *   ask=V             also asks for version V by test(), wait() and read_region()
 *   helper=FILE       each rank forks a helper that outlives it and holds what it inherited; its
 *                     pid in FILE.<rank>
 *   regions=SEED      more regions of random names, types and sizes (random_regions.h)
 *   lie=1             spoils a byte after a restart, so that a test can see that it is found
 *   gate=FILE gate_step=S   waits after step S until FILE exists, having made FILE.reached
 */
#define _GNU_SOURCE /* _Fork */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backstay/backstay.h"
#include "random_regions.h"

enum { ranks_max = 64, piece_max = 4096 };

typedef struct {
  int kind; /* 0: minimum, 1: broadcast */
  int root;
  size_t bytes;
  int64_t value;
  char data[piece_max];
} packet;

static int argument_count;
static char** arguments;
static int rank, ranks;

static const char* option(const char* name) {
  const size_t length = strlen(name);
  for (int i = 4; i < argument_count; ++i) {
    if (strncmp(arguments[i], name, length) == 0 && arguments[i][length] == '=') {
      return arguments[i] + length + 1;
    }
  }
  return NULL;
}

static long number(const char* name, long otherwise) {
  const char* text = option(name);
  return text == NULL ? otherwise : atol(text);
}

/* --- the launcher: relays what ranks agree on, and ends all when one has died ----------------- */

static int take(int from, packet* out) {
  return recv(from, out, sizeof *out, MSG_WAITALL) == (ssize_t)sizeof *out;
}

static void answer(const int* links, packet* asked) {
  packet out = asked[0];
  for (int r = 0; r < ranks; ++r) {
    if (asked[r].value < out.value) out.value = asked[r].value;
  }
  if (asked[0].kind == 1) memcpy(out.data, asked[asked[0].root].data, sizeof out.data);
  for (int r = 0; r < ranks; ++r) (void)!send(links[r], &out, sizeof out, MSG_NOSIGNAL);
}

static int finish(const pid_t* children) {
  int worst = 0;
  for (int r = 0; r < ranks; ++r) {
    int status = 0;
    while (waitpid(children[r], &status, 0) < 0 && errno == EINTR) {
    }
    if (status != 0) worst = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  return worst;
}

static int relay(const int* links, const pid_t* children) {
  static packet asked[ranks_max];
  for (int lost = 0; !lost;) {
    for (int r = 0; r < ranks; ++r) {
      if (!take(links[r], &asked[r])) lost = 1; /* it has ended, well or not: then all do */
      if (lost) break;
    }
    if (!lost) answer(links, asked);
  }
  /* A rank that ends well does so after the last exchange of all: give the others the time. */
  int status = 0;
  const pid_t first = wait(&status);
  if (status != 0) {
    for (int r = 0; r < ranks; ++r) {
      if (children[r] != first) kill(children[r], SIGKILL);
    }
  }
  int worst = status == 0 ? 0 : WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  const int rest = finish(children);
  return worst != 0 ? worst : rest;
}

/* --- a rank ----------------------------------------------------------------------------------- */

static int link_to_launcher;

static int exchange(packet* p) {
  if (send(link_to_launcher, p, sizeof *p, MSG_NOSIGNAL) != (ssize_t)sizeof *p) return 1;
  return take(link_to_launcher, p) ? 0 : 1;
}

static int minimum(void* context, int64_t* value) {
  packet p = {0};
  (void)context;
  p.value = *value;
  if (exchange(&p) != 0) return 1;
  *value = p.value;
  return 0;
}

static int broadcast(void* context, void* data, size_t bytes, int root) {
  (void)context;
  for (size_t at = 0; at < bytes; at += piece_max) {
    packet p = {0};
    p.kind = 1;
    p.root = root;
    p.bytes = bytes - at < piece_max ? bytes - at : piece_max;
    memcpy(p.data, (char*)data + at, p.bytes);
    if (exchange(&p) != 0) return 1;
    memcpy((char*)data + at, p.data, p.bytes);
  }
  return 0;
}

static void say(const char* what, int code, uint64_t version, long step) {
  if (rank != 0) return;
  printf("%s code=%d version=%llu step=%ld message=%s\n", what, code, (unsigned long long)version,
         step, code == BACKSTAY_OK ? "" : backstay_error_message());
  fflush(stdout);
}

static double value_at(long step, long cell) {
  return (double)step * 1e6 + (double)rank * 1e3 + (double)(cell % 997) + (double)cell * 1e-7;
}

static void compute(double* u, long cells, long step) {
  for (long i = 0; i < cells; ++i) u[i] = value_at(step, i);
  random_regions_compute(step);
}

static int exact(const double* u, long cells, long step) {
  for (long i = 0; i < cells; ++i) {
    const double want = value_at(step, i);
    if (memcmp(&u[i], &want, sizeof want) != 0) return 0;
  }
  return 1;
}

/* Exit 5: wrong bytes, the one thing that must never happen. */
static void check(const double* u, long cells, long step, const char* when) {
  if (exact(u, cells, step) && random_regions_exact(step)) return;
  printf("WRONG BYTES rank=%d step=%ld %s %s\n", rank, step, when, random_regions_wrong());
  fflush(stdout);
  _exit(5);
}

/* --- the routed file: N KiB of the step's number ---------------------------------------------- */

static char file_path[4096];

static void write_file(long step) {
  FILE* out = file_path[0] ? fopen(file_path, "w") : NULL;
  if (out == NULL) return;
  for (long i = 0; i < number("file_kib", 0) * 64; ++i) fprintf(out, "%015ld\n", step);
  fclose(out);
}

static void check_file(long step) {
  FILE* in = file_path[0] ? fopen(file_path, "r") : NULL;
  long lines = 0, one = 0;
  if (!file_path[0]) return;
  while (in != NULL && fscanf(in, "%ld", &one) == 1 && one == step) ++lines;
  if (in != NULL) fclose(in);
  if (lines == number("file_kib", 0) * 64) return;
  printf("WRONG BYTES rank=%d step=%ld in %s\n", rank, step, file_path);
  fflush(stdout);
  _exit(5);
}

static int route_file(void) {
  char name[32];
  if (!option("file_kib")) return BACKSTAY_OK;
  snprintf(name, sizeof name, "file.%d", rank);
  return backstay_route_file(name, file_path, sizeof file_path);
}

static long restart(double* u, long cells, int64_t* step) {
  uint64_t version = 0;
  int code = BACKSTAY_EAGENT;
  for (int tries = 0; tries < 3 && code == BACKSTAY_EAGENT; ++tries) {
    code = backstay_restart(&version);
    say("restart", code, version, (long)*step);
    if (code != BACKSTAY_OK && code != BACKSTAY_EIO)
      check(u, cells, 0, "after a restart that failed");
  }
  if (code == BACKSTAY_OK && option("lie") && rank == 0) u[cells / 2] += 1;
  if (code == BACKSTAY_OK) check(u, cells, (long)*step, "after a restart");
  if (code == BACKSTAY_OK) check_file((long)*step);
  return code;
}

static void ask(uint64_t version, const char* name) {
  backstay_level level = 0;
  double region[4] = {0};
  say("test", backstay_test(version, &level), version, (long)level);
  say("wait", backstay_wait(version, BACKSTAY_LOCAL, 1), version, 0);
  say("read_region", backstay_read_region(version, name, region, sizeof region), version, 0);
}

static void wait_at_gate(const char* gate) {
  char reached[4096];
  struct stat info;
  int64_t all = 0;
  snprintf(reached, sizeof reached, "%s.reached", gate);
  if (rank == 0) fclose(fopen(reached, "w"));
  for (int tries = 0; tries < 3000 && stat(gate, &info) != 0; ++tries) usleep(10000);
  minimum(NULL, &all);
}

static void fork_helper(const char* file) {
  char path[4096];
  snprintf(path, sizeof path, "%s.%d", file, rank);
  /* Without the fork handlers of libraries, ours among them: the connection stays open in the
   * helper. */
  const pid_t helper = _Fork();
  if (helper == 0) {
    close(link_to_launcher); /* so the launcher and the test see that the rank has ended */
    for (int fd = 0; fd <= 2; ++fd) close(fd);
    for (;;) pause();
  }
  FILE* out = fopen(path, "w");
  fprintf(out, "%d", (int)helper);
  fclose(out);
}

/* Memory that is shared with the agent does not count here. */
static void limit_private_memory(rlim_t spare) {
  char line[200];
  unsigned long used_kib = 0;
  FILE* status = fopen("/proc/self/status", "r");
  while (fgets(line, sizeof line, status) && sscanf(line, "VmData: %lu", &used_kib) != 1) {
  }
  fclose(status);
  const struct rlimit limit = {((rlim_t)used_kib << 10) + spare, RLIM_INFINITY};
  if (setrlimit(RLIMIT_DATA, &limit) != 0) _exit(7);
}

static int run(void) {
  const long steps = atol(arguments[2]), every = atol(arguments[3]);
  const long cells = number("cells", 300000);
  const char* name = option("name") ? option("name") : "u";
  const int type = option("type") ? BACKSTAY_FLOAT : BACKSTAY_DOUBLE;
  double* u = malloc((size_t)cells * sizeof *u);
  int64_t step = 0;
  if (option("spare_mib")) limit_private_memory((rlim_t)number("spare_mib", 0) << 20);
  const backstay_group group = {NULL, rank, ranks, rank, ranks, 0, 1, broadcast, minimum, NULL};
  const int code = backstay_init_group(&group, NULL);
  say("init", code, 0, 0);
  if (code != BACKSTAY_OK) return 2;
  if (option("helper")) fork_helper(option("helper"));
  const uint64_t count = (uint64_t)cells * (type == BACKSTAY_FLOAT ? 2 : 1);
  if (option("regions") &&
      random_regions_protect((unsigned long)number("regions", 0), rank) != BACKSTAY_OK)
    return 3;
  compute(u, cells, 0);
  if (backstay_protect(name, u, count, type) != BACKSTAY_OK ||
      backstay_protect("step", &step, 1, BACKSTAY_INT64) != BACKSTAY_OK ||
      route_file() != BACKSTAY_OK) {
    return 3;
  }
  const long restarted = restart(u, cells, &step);
  if (restarted != BACKSTAY_OK && restarted != BACKSTAY_ENONE) return 4;
  if (number("ask", 0) != 0) ask((uint64_t)number("ask", 0), name);
  while (step < steps) {
    compute(u, cells, (long)++step);
    if (step == number("gate_step", -1)) wait_at_gate(option("gate"));
    if (step % every != 0) continue;
    write_file(step);
    const int taken = backstay_checkpoint();
    const uint64_t version = backstay_version();
    say("captured", taken, version, (long)step);
    if (taken == BACKSTAY_OK && number("die_after", -1) == (long)version) {
      int64_t all = 0;
      minimum(NULL, &all); /* all have the message */
      kill(getpid(), SIGKILL);
    }
    if (number("wait", 0) == 1 && taken == BACKSTAY_OK) {
      say("local", backstay_wait(version, BACKSTAY_LOCAL, 60), version, (long)step);
    }
  }
  const int ended = backstay_finalize();
  say("finalize", ended, 0, (long)step);
  return ended == BACKSTAY_OK ? 0 : 6;
}

int main(int argc, char** argv) {
  static int links[ranks_max];
  static pid_t children[ranks_max];
  argument_count = argc;
  arguments = argv;
  ranks = atoi(argv[1]);
  for (rank = 0; rank < ranks; ++rank) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return 1;
    fflush(stdout);
    children[rank] = fork();
    if (children[rank] == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (int r = 0; r < rank; ++r) close(links[r]);
      close(pair[0]);
      link_to_launcher = pair[1];
      if (rank == 1 && option("fail")) {
        char spec[200];
        const char* at = strchr(option("fail"), '@');
        const int length = at ? (int)(at - option("fail")) : (int)strlen(option("fail"));
        snprintf(spec, sizeof spec, "%.*s=kill%s", length, option("fail"), at ? at : "");
        setenv("BACKSTAY_FAILPOINT", spec, 1);
      }
      _exit(run());
    }
    close(pair[1]);
    links[rank] = pair[0];
  }
  return relay(links, children);
}
