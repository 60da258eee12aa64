// Replaces files in a folder as programs do, and says of each whether every call succeeded.
//
//     replace_files FOLDER
//
// a: truncated and written; b: a new file, synced and renamed; c: a stream; d: a new file, renamed
// while it is open.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { bytes = 20000 };

static void say(const char* name, int failed) {
  char line[100];
  const int length = snprintf(line, sizeof(line), "%s %s\n", name, failed ? strerror(errno) : "ok");
  if (write(STDOUT_FILENO, line, (size_t)length) < 0) _exit(3);
}

static int write_new(int fd) {
  static char text[bytes];
  memset(text, 'n', sizeof(text));
  for (int piece = 0; piece < 4; ++piece) {
    if (write(fd, text + piece * (bytes / 4), bytes / 4) != bytes / 4) return 1;
  }
  return 0;
}

static int truncate_and_write(const char* name) {
  const int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (fd < 0) return 1;
  const int failed = write_new(fd);
  return close(fd) != 0 || failed;
}

static int replace(const char* name, int while_open) {
  char fresh[100];
  snprintf(fresh, sizeof(fresh), "%s.new", name);
  const int fd = open(fresh, O_RDWR | O_CREAT | O_TRUNC, 0644);
  if (fd < 0) return 1;
  int failed = write_new(fd);
  if (!while_open) failed = failed || fsync(fd) != 0 || close(fd) != 0;
  failed = failed || rename(fresh, name) != 0;
  if (while_open) failed = close(fd) != 0 || failed;
  return failed;
}

static int write_stream(const char* name) {
  FILE* stream = fopen(name, "w");
  if (stream == NULL) return 1;
  int failed = 0;
  for (int number = 0; number < bytes / 10; ++number) {
    failed = failed || fprintf(stream, "%s", "nnnnnnnnnn") < 0;
  }
  return fclose(stream) != 0 || failed;
}

int main(int count, char** arguments) {
  if (count != 2 || chdir(arguments[1]) != 0) return 2;
  say("a", truncate_and_write("a"));
  say("b", replace("b", 0));
  say("c", write_stream("c"));
  say("d", replace("d", 1));
  return 0;
}
