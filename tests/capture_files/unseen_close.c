/* Closes files by the kernel's call alone, as Go does, and by syscall(), as libuv does; the numbers
 * are then given to other things. Prints what came of it: the same with and without capture. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static long raw_close(int fd) {
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "a"(SYS_close), "D"(fd) : "rcx", "r11", "memory");
  return result;
}

static int written(const char* name, const char* text) {
  const int fd = open(name, O_CREAT | O_TRUNC | O_WRONLY, 0644);
  if (write(fd, text, strlen(text)) < 0) perror(name);
  return fd;
}

static void fork_once(void) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, NULL, 0);
}

/* The number leads to a socket: its messages arrive, and the file keeps its bytes. */
static void reused_by_a_socket(void) {
  raw_close(written("out", "hello"));
  int ends[2];
  socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
  fork_once();
  const ssize_t sent = write(ends[0], "message", 7);
  struct pollfd arrives = {ends[1], POLLIN, 0};
  struct stat facts;
  fstat(ends[0], &facts);
  printf("socket %zd %d %d\n", sent, poll(&arrives, 1, 1000), S_ISSOCK(facts.st_mode));
  close(ends[0]);
  close(ends[1]);
}

static void reused_by_a_pipe(void) {
  raw_close(written("more", "of the pipe"));
  int ends[2];
  if (pipe(ends) != 0) perror("pipe");
  sync();
  char text[8] = "";
  const ssize_t sent = write(ends[1], "water", 5);
  printf("pipe %zd %zd\n", sent, read(ends[0], text, 5));
  close(ends[0]);
  close(ends[1]);
}

static void reused_by_the_same_file(void) {
  raw_close(written("again", "a long first text"));
  const int fd = open("again", O_WRONLY | O_APPEND);
  printf("again %zd\n", write(fd, "+", 1));
  close(fd);
}

static void reused_by_another_file(void) {
  raw_close(written("first", "1"));
  const int fd = written("second", "22");
  printf("closed twice %ld %ld\n", raw_close(fd), raw_close(fd));
}

static void seen_at_once(void) {
  const int fd = written("seen", "seven..");
  struct stat facts;
  printf("syscall %ld %ld", syscall(SYS_fsync, fd), syscall(SYS_close, fd));
  stat("seen", &facts);
  printf(" %ld %ld\n", (long)facts.st_size, syscall(SYS_getpid) - getpid());
}

/* All but the first three, as daemons do, and with a table of descriptors of its own. */
static void many_at_once(void) {
  const int first = written("one", "one of many"), second = written("two", "two of many");
  const long closed = syscall(SYS_close_range, first, ~0U, 0);
  const int gone = fcntl(second, F_GETFD);
  const int third = written("three", "three of many");
  printf("many %ld %d %d\n", closed, gone, close_range(third, ~0U, CLOSE_RANGE_UNSHARE));
}

int main(void) {
  reused_by_a_socket();
  reused_by_a_pipe();
  reused_by_the_same_file();
  reused_by_another_file();
  seen_at_once();
  many_at_once();
  return 0;
}
