// One process of bench/files: a program that writes a file, and knows nothing of Backstay.
//
//     files_writer FILE BYTES CHUNK [sync]
//
// Says "ready", waits for a byte, opens, writes and closes; then reads the file back at once, and
// copies as many bytes in memory. Prints the seconds until all is written, and those of the fsync
// (with `sync`: before the close), of the close, of opening it again, of reading, of copying.
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

// Seconds; less than 0: it failed, or other bytes came.
static double read_back(int fd, long bytes, char* data, long chunk) {
  const double began = now();
  for (long at = 0; at < bytes; at += chunk)
    if (read(fd, data, (size_t)chunk) != chunk || data[chunk - 1] != 7) return -1;
  return now() - began;
}

static double copy_in_memory(long bytes, char* data, long chunk) {
  char* all = malloc((size_t)bytes);
  if (all == NULL) return -1;
  memset(all, 7, (size_t)bytes);
  const double began = now();
  for (long at = 0; at < bytes; at += chunk) {
    memcpy(data, all + at, (size_t)chunk);
    __asm__ volatile("" : : "r"(data) : "memory");
  }
  const double took = now() - began;
  free(all);
  return took;
}

int main(int count, char** arguments) {
  if (count != 4 && count != 5) return 2;
  const long bytes = atol(arguments[2]);
  const long chunk = atol(arguments[3]);
  char* data = malloc((size_t)chunk);
  if (data == NULL) return 2;
  memset(data, 7, (size_t)chunk);
  char go = 0;
  if (write(1, "ready\n", 6) != 6 || read(0, &go, 1) != 1) return 2;
  const double began = now();
  int fd = open(arguments[1], O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (fd < 0) return 3;
  for (long at = 0; at < bytes; at += chunk)
    if (write(fd, data, (size_t)chunk) != chunk) return 4;
  const double written = now();
  if (count == 5 && fsync(fd) != 0) return 7;
  const double synced = now();
  if (close(fd) != 0) return 5;
  const double closed = now();
  fd = open(arguments[1], O_RDONLY);
  const double opened = now();
  if (fd < 0) return 3;
  const double reading = read_back(fd, bytes, data, chunk);
  const double copying = copy_in_memory(bytes, data, chunk);
  close(fd);
  if (reading < 0 || copying < 0) return 8;
  char line[200];
  const int length =
      snprintf(line, sizeof(line), "%.9f %.9f %.9f %.9f %.9f %.9f\n", written - began,
               synced - written, closed - synced, opened - closed, reading, copying);
  return write(1, line, (size_t)length) == length ? 0 : 6;
}
