#include "capture/image/boot/origin.h"

#include <linux/mman.h>

#include "capture/image/boot/system.h"

namespace backstay::image::origin {

namespace {

constexpr uint64_t page = 4096;

// Where `text` of so many bytes stands in the parts of the file that nothing writes; 0: nowhere.
uint64_t find(const Elf& elf, const char* text, uint64_t bytes, uint64_t* protection) {
  const auto* headers = reinterpret_cast<const Elf64_Phdr*>(elf.headers);
  for (uint64_t i = 0; i < elf.headers_count; ++i) {
    const Elf64_Phdr& part = headers[i];
    const bool readable = (part.p_flags & PF_R) != 0 && (part.p_flags & PF_W) == 0;
    if (part.p_type != PT_LOAD || !readable || part.p_filesz < bytes) continue;
    const uint64_t start = elf.base + part.p_vaddr;
    for (uint64_t at = start; at <= start + part.p_filesz - bytes; ++at) {
      if (*reinterpret_cast<const char*>(at) != text[0]) continue;
      if (memcmp(reinterpret_cast<const void*>(at), text, bytes) != 0) continue;
      *protection = PROT_READ | ((part.p_flags & PF_X) != 0 ? PROT_EXEC : 0);
      return at;
    }
  }
  return 0;
}

bool names_origin(const Elf& program) {
  uint64_t unused = 0;
  return find(program, "$ORIGIN", 7, &unused) != 0 || find(program, "${ORIGIN}", 9, &unused) != 0;
}

}  // namespace

bool prepare(const Elf& program, const Elf& interpreter) {
  if (!names_origin(program)) return false;
  constexpr char link[] = "/proc/self/exe";
  uint64_t protection = 0;
  const uint64_t at = find(interpreter, link, sizeof link, &protection);
  if (at == 0) return false;  // another libc, which may not ask
  const uint64_t first = at & ~(page - 1);
  if (sys_protect(first, page, PROT_READ | PROT_WRITE) != 0) return false;
  *reinterpret_cast<char*>(at) = 0;  // no path at all: ENOENT
  sys_protect(first, page, static_cast<int>(protection));
  return true;
}

}  // namespace backstay::image::origin
