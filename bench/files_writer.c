// One process of bench/files: a program that writes a file, and knows nothing of Backstay.
//
//     files_writer FILE BYTES CHUNK
//
// Says "ready", waits for a byte, opens, writes and closes. Prints the seconds until all is
// written, and those of the close.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int main(int count, char** arguments) {
  if (count != 4) return 2;
  const long bytes = atol(arguments[2]);
  const long chunk = atol(arguments[3]);
  char* data = malloc((size_t)chunk);
  if (data == NULL) return 2;
  memset(data, 7, (size_t)chunk);
  char go = 0;
  if (write(1, "ready\n", 6) != 6 || read(0, &go, 1) != 1) return 2;
  const double began = now();
  const int fd = open(arguments[1], O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (fd < 0) return 3;
  for (long at = 0; at < bytes; at += chunk)
    if (write(fd, data, (size_t)chunk) != chunk) return 4;
  const double written = now();
  if (close(fd) != 0) return 5;
  char line[100];
  const int length = snprintf(line, sizeof(line), "%.9f %.9f\n", written - began, now() - written);
  return write(1, line, (size_t)length) == length ? 0 : 6;
}
