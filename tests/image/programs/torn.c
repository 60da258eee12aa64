/* Threads that write numbers into memory of their own, over and over, and check what they find
 * there: a process whose memory is not that of one moment says so. At each line that it reads, the
 * program says that all is well. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { threads = 3, words = 1 << 19 };

static volatile uint64_t* start_block(void) {
  volatile uint64_t* block = malloc(words * sizeof *block);
  for (int i = 0; i < words; ++i) block[i] = 1;
  return block;
}

static void* write_over(void* memory) {
  volatile uint64_t* block = memory;
  for (uint64_t step = 2;; ++step) {
    for (int i = 0; i < words; ++i) {
      if (block[i] != step - 1) {
        printf("word %d is torn\n", i);
        fflush(stdout);
        _Exit(1);
      }
      block[i] = step;
    }
  }
  return NULL;
}

int main(void) {
  for (int i = 0; i < threads; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, write_over, (void*)start_block()) != 0) return 2;
  }
  char line[16];
  while (fgets(line, sizeof line, stdin) != NULL) {
    printf("well\n");
    fflush(stdout);
  }
  return 0;
}
