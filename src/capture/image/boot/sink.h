// The two seams: where the bytes of an image go, and where they come from. Each is a context and
// one or two functions, as the boot program has no virtual tables to relocate and no allocator.
#pragma once

#include "capture/image/boot/text.h"

namespace backstay::image {

// Bytes in order, front to back. Pages come straight from the program's memory: one copy at most.
struct Sink {
  void* context;
  // False, with the reason in `trouble`, where it cannot take them.
  bool (*write)(void* context, const void* bytes, uint64_t size, Trouble& trouble);
};

// Bytes at any place.
struct Source {
  void* context;
  uint64_t bytes;
  bool (*read)(void* context, void* to, uint64_t size, uint64_t at, Trouble& trouble);
};

// A file that takes the name `path` when it is complete. Used by tests and by hand.
struct FileSink {
  const char* path = nullptr;
  long fd = -1;
  Text temporary;

  bool begin(const char* name, Trouble& trouble);
  Sink sink();
  bool finish(Trouble& trouble);
  void abandon();
};

struct FileSource {
  long fd = -1;
  bool begin(const char* path, Trouble& trouble);
  Source source();
  uint64_t bytes = 0;
};

}  // namespace backstay::image
