/* Runs a program to which the kernel refuses io_uring, as many containers do: without_io_uring
 * PROGRAM [ARGUMENT ...] */
#include <errno.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "refusing.h"

int main(int argc, char** argv) {
  struct sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_setup, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
  return run_under(program, argc, argv);
}
