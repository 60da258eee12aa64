/* For programs of the tests: renews all handles where the MPI library can; natively nothing. With
 * STOP_AT the program stops there instead, in the folder STOPS, to be saved and brought back. What
 * a rank says are lines of a file of its own, so those of two runs can be compared. */
#pragma once

#include <dlfcn.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int rank, ranks, renewals, points;
static FILE* lines;

/* Behind MPI_Init, in the folder that the program is given. */
__attribute__((unused)) static void begin(const char* folder) {
  char path[4096];
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  snprintf(path, sizeof path, "%s/%d", folder, rank);
  lines = fopen(path, "w");
  if (lines == NULL) abort();
  setvbuf(lines, NULL, _IOLBF, 0);
}

__attribute__((format(printf, 1, 2), unused)) static void say(const char* format, ...) {
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  fprintf(lines, "%s\n", line);
}

/* Outside of MPI, until the file go.STOP is there; then perhaps in another process. */
__attribute__((unused)) static void stop_here(const char* folder) {
  char name[4096];
  struct stat status;
  snprintf(name, sizeof name, "%s/at.%d.%d", folder, rank, points);
  fclose(fopen(name, "w"));
  snprintf(name, sizeof name, "%s/go.%d", folder, points);
  while (stat(name, &status) != 0) usleep(1000);
}

/* Collective. `kept`: how many real handles may stay, as MPI caches them. */
__attribute__((unused)) static void renew(int kept) {
  const char *folder = getenv("STOPS"), *at = getenv("STOP_AT");
  ++points;
  if (at != NULL) {
    if (atoi(at) == points) stop_here(folder);
    return;
  }
  int (*now)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "backstay_test_renew");
  if (now == NULL) return;
  ++renewals;
  const int same = now();
  if (same > kept) say("%d real handles are what they were", same);
}

__attribute__((unused)) static int alive(void) {
  int (*count)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "backstay_test_alive");
  return count != NULL ? count() : 0;
}

/* Why a restart could not renew the handles: the same natively, where nothing can say it. */
__attribute__((unused)) static void say_why(const char* when) {
  const char* (*why)(void) = (const char* (*)(void))dlsym(RTLD_DEFAULT, "backstay_test_why");
  const char* said = why != NULL ? why() : NULL;
  const char* wanted = strcmp(when, "with a window") == 0 ? "an MPI window is open" : NULL;
  const int right =
      why == NULL || (said == NULL ? wanted == NULL : wanted != NULL && strcmp(said, wanted) == 0);
  say("%s: right %d", when, right);
}
