/* Memory of a chunk and a page below all else: the page behind the chunk is the first that an image
   writes anew. Reads lines, and prints a sum of it at each one. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { chunk_bytes = 256 << 10, page_bytes = 4096, all_bytes = chunk_bytes + page_bytes };

int main(void) {
  unsigned char* low = mmap((void*)0x100000, all_bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (low == MAP_FAILED) return 1;
  for (int i = 0; i < all_bytes; ++i) low[i] = (unsigned char)(i * 31 + i / page_bytes);
  char line[64];
  while (fgets(line, sizeof line, stdin) != NULL) {
    if (strcmp(line, "one\n") == 0) ++low[chunk_bytes];
    unsigned long sum = 0;
    for (int i = 0; i < all_bytes; ++i) sum = sum * 131 + low[i];
    printf("%lu\n", sum);
    fflush(stdout);
  }
  return 0;
}
