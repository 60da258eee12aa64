/* Saving as programs do that have no agent: the program waits until its bytes are on a server's
 * disk or on shared storage. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "program.h"

static const size_t piece = (size_t)4 << 20;

/* The server (server.py) answers one byte once all that came is on its disk. */
static void save_at_server(void) {
  char host[256];
  const char* colon = strrchr(options.target, ':');
  if (colon == NULL || (size_t)(colon - options.target) >= sizeof host) die("target=HOST:PORT");
  snprintf(host, sizeof host, "%.*s", (int)(colon - options.target), options.target);
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
  if (getaddrinfo(host, colon + 1, &hints, &found) != 0) die("the server's name");
  const int to = socket(found->ai_family, SOCK_STREAM, 0);
  if (to < 0 || connect(to, found->ai_addr, found->ai_addrlen) != 0) die("the server");
  freeaddrinfo(found);
  for (size_t sent = 0; sent < (size_t)options.mib << 20;) {
    const ssize_t count = send(to, memory + sent, piece, MSG_NOSIGNAL);
    if (count <= 0) die("the server");
    sent += (size_t)count;
  }
  char answer = 0;
  shutdown(to, SHUT_WR);
  if (recv(to, &answer, 1, 0) != 1) die("the server");
  close(to);
}

static void save_at_shared(void) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/rank-%d", options.target, rank);
  const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_DIRECT, 0600);
  if (file < 0) die(path);
  for (size_t at = 0; at < (size_t)options.mib << 20; at += piece) {
    if (write(file, memory + at, piece) != (ssize_t)piece) die(path);
  }
  if (fsync(file) != 0) die(path);
  close(file);
}

double save_waiting(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = now_s();
  if (strcmp(options.way, "server") == 0) {
    save_at_server();
  } else {
    save_at_shared();
  }
  return largest(now_s() - start);
}
