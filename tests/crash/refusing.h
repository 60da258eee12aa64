/* What the launchers here share: a program to which the kernel refuses a system call, as seccomp
 * filters do. */
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Becomes the program of argv[1] with these rules; comes back only where that fails, with an exit
 * status. */
static int run_under(struct sock_fprog rules, int argc, char** argv) {
  if (argc < 2 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &rules) != 0) {
    perror(argv[0]);
    return 126;
  }
  execv(argv[1], argv + 1);
  perror(argv[1]);
  return 127;
}
