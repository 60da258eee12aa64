// Descriptors: a file that is read, one that is written, one that is appended to, one without a
// name, a pipe of the program to itself, a duplicate, a folder, /dev/null; stdio on top.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>

#include "program.h"

static uint64_t read_back(const char* name) {
  FILE* file = fopen(name, "r");
  uint64_t sum = 1;
  need(file != NULL, "fopen");
  for (int c = getc(file); c != EOF; c = getc(file)) sum = mix(sum, (uint64_t)c);
  fclose(file);
  return sum;
}

int main(int count, char** arguments) {
  need(count > 1, "usage: files INPUT (in a folder of its own)");
  FILE* input = fopen(arguments[1], "r");
  FILE* output = fopen("output", "w");
  const int append = open("append", O_WRONLY | O_CREAT | O_APPEND, 0644);
  const int nameless = open("nameless", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  const int null = open("/dev/null", O_WRONLY);
  const int folder = open(".", O_RDONLY | O_DIRECTORY);
  int ends[2];
  need(input && output && append >= 0 && nameless >= 0 && null >= 0 && folder >= 0, "open");
  need(pipe(ends) == 0 && unlink("nameless") == 0, "pipe, unlink");
  const int same = dup(nameless);
  uint64_t sum = 1;
  for (int step = 0; step < STEPS; ++step) {
    char line[64] = {0};
    need(fread(line, 1, 40, input) == 40, "fread");
    sum = mix_bytes(sum, line, 40);
    fprintf(output, "%d %" PRIx64 "\n", step, sum);
    if (step % 2 == 0) fflush(output);
    need(write(append, line, 5) == 5, "append");
    need(write(nameless, line, 10) == 10 && lseek(same, 0, SEEK_CUR) == 10 * (step + 1), "dup");
    need(write(ends[1], line, 8) == 8 && write(null, line, 8) == 8, "write");
    if (step > 2) need(read(ends[0], line, 8) == 8, "read");
    sum = mix_bytes(sum, line, 8);
    step_done(step, sum);
    rest();
  }
  char content[10 * STEPS];
  need(pread(same, content, sizeof content, 0) == sizeof content, "pread");
  need((fcntl(nameless, F_GETFD) & FD_CLOEXEC) != 0, "close on exec");
  need(faccessat(folder, "output", R_OK, 0) == 0, "folder");
  fclose(output);
  printf("%016" PRIx64 " %016" PRIx64 " %016" PRIx64 "\n", mix_bytes(1, content, sizeof content),
         read_back("output"), read_back("append"));
  return 0;
}
