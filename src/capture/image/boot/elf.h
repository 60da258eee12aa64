// ELF files: what kind of program it is, mapping it as the kernel would, its build id. Blocks on
// the file only. One thread.
#pragma once

#include <elf.h>

#include "capture/image/boot/window.h"

namespace backstay::image {

struct Elf {
  char interpreter[256] = {};   // empty: static
  uint64_t base = 0;            // added to the file's addresses
  uint64_t start = 0, end = 0;  // whole range
  uint64_t entry = 0;
  uint64_t headers = 0;  // address of the program headers in memory
  uint64_t headers_count = 0;
  bool anywhere = false;  // position-independent
};

// Reads the headers of an open file. Trouble: not an ELF file of this machine.
void read_elf(long fd, const char* path, Elf& elf, Trouble& trouble);

// Maps its segments, at `hint` where it is position-independent (0: where the kernel likes).
void map_elf(long fd, const char* path, uint64_t hint, Elf& elf, Trouble& trouble);

// The build id of an open file; 0 bytes where it has none or is no ELF file.
uint32_t read_build_id(long fd, uint8_t* id, uint32_t room);

// A name in the dynamic section of an open library: the first one of this kind (DT_SONAME,
// DT_NEEDED) that begins so. False where there is none, or the file is no library of this machine.
bool read_name(long fd, int64_t kind, const char* beginning, char* to, size_t room);

// The first part of a mapped ELF file that is code. False: it has none.
bool code_of(const Elf& elf, uint64_t& start, uint64_t& end);

// The address of a data symbol of a mapped ELF file, 0 where it has none of that name.
uint64_t find_symbol(long fd, const Elf& elf, const char* name);

}  // namespace backstay::image
