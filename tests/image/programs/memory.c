// Kinds of memory: brk by hand, anonymous, shared, private pages of a file, protections, a hole, a
// deep stack.
#include <fcntl.h>
#include <sys/mman.h>

#include "program.h"

enum { PAGE = 4096, PAGES = 16 };

static char* map(int protection, int flags, int fd) {
  char* at = mmap(NULL, PAGES * PAGE, protection, flags, fd, 0);
  need(at != MAP_FAILED, "mmap");
  return at;
}

static uint64_t deep(int depth, uint64_t sum) {
  char room[2000];
  memset(room, depth, sizeof room);
  if (depth > 0) sum = deep(depth - 1, mix(sum, (uint64_t)depth));
  return mix_bytes(sum, room, 4);
}

int main(int count, char** arguments) {
  need(count > 1, "usage: memory FILE");
  const int fd = open(arguments[1], O_RDONLY);
  need(fd >= 0, "open");
  char* file = map(PROT_READ | PROT_WRITE, MAP_PRIVATE, fd);
  close(fd);
  char* shared = map(PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
  char* plain = map(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  char* hidden = map(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  const int own = open("own", O_RDWR | O_CREAT | O_TRUNC, 0644);
  need(own >= 0 && ftruncate(own, 3 * PAGE + 100) == 0, "own file");
  char* written = map(PROT_READ | PROT_WRITE, MAP_SHARED, own);
  close(own);
  char* heap = sbrk(PAGE * 3);
  memset(hidden, 5, PAGE);
  mprotect(hidden, PAGE, PROT_NONE);
  munmap(plain + 4 * PAGE, PAGE);
  mprotect(plain + 6 * PAGE, PAGE, PROT_READ);
  uint64_t sum = 1;
  for (int step = 0; step < STEPS; ++step) {
    const size_t at = (size_t)(step % 3) * PAGE + (size_t)step;
    file[at]++;
    shared[at + 8 * PAGE] = (char)step;
    plain[at]++;
    written[at]++;                // twice, if a restart did not undo what was written after the cut
    written[2 * PAGE + 50] ^= 1;  // a page that is zeros again
    heap[at] = (char)(step + 1);
    char* more = sbrk(PAGE);
    need((intptr_t)more != -1, "sbrk");
    more[7] = (char)step;
    sum = mix_bytes(sum, file, PAGES * PAGE);
    sum = mix_bytes(sum, shared, PAGES * PAGE);
    sum = mix_bytes(sum, plain, 4 * PAGE);
    sum = mix_bytes(sum, written, 4 * PAGE);
    sum = mix_bytes(sum, heap, PAGE * (size_t)(4 + step));
    sum = deep(20 * step, sum);  // the stack grows, before and after a restart
    step_done(step, sum);
    rest();
  }
  mprotect(hidden, PAGE, PROT_READ);
  printf("hidden %016" PRIx64 "\n", mix_bytes(1, hidden, PAGE));
  return 0;
}
