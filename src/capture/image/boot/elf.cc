#include "capture/image/boot/elf.h"

#include <linux/mman.h>

#include "capture/image/format/layout.h"

namespace backstay::image {

namespace {

constexpr int headers_max = 64;
struct Headers {
  Elf64_Ehdr file;
  Elf64_Phdr segment[headers_max];
};

uint64_t down(uint64_t at) { return at & ~(page_bytes - 1); }
uint64_t up(uint64_t at) { return down(at + page_bytes - 1); }

bool read_headers(long fd, Headers& headers) {
  Elf64_Ehdr& file = headers.file;
  if (sys_pread(fd, &file, sizeof file, 0) != sizeof file) return false;
  if (memcmp(file.e_ident, ELFMAG, SELFMAG) != 0 || file.e_ident[EI_CLASS] != ELFCLASS64 ||
      file.e_machine != EM_X86_64 || (file.e_type != ET_EXEC && file.e_type != ET_DYN) ||
      file.e_phentsize != sizeof(Elf64_Phdr) || file.e_phnum == 0 || file.e_phnum > headers_max) {
    return false;
  }
  const size_t bytes = file.e_phnum * sizeof(Elf64_Phdr);
  return sys_pread(fd, headers.segment, bytes, file.e_phoff) == static_cast<long>(bytes);
}

int protection_of(uint32_t flags) {
  return ((flags & PF_R) != 0 ? PROT_READ : 0) | ((flags & PF_W) != 0 ? PROT_WRITE : 0) |
         ((flags & PF_X) != 0 ? PROT_EXEC : 0);
}

// What lies behind the file's part of a segment: the rest of its last page, then whole pages.
bool map_zeros(uint64_t base, const Elf64_Phdr& segment) {
  const uint64_t file_end = base + segment.p_vaddr + segment.p_filesz;
  const uint64_t pages = segment.p_filesz > 0 ? up(file_end) : down(file_end);
  const uint64_t end = up(base + segment.p_vaddr + segment.p_memsz);
  const int protection = protection_of(segment.p_flags);
  if ((protection & PROT_WRITE) != 0 && segment.p_filesz > 0) {
    memset(reinterpret_cast<void*>(file_end), 0, pages - file_end);
  }
  return end <= pages ||
         sys_map(pages, end - pages, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED) ==
             static_cast<long>(pages);
}

bool map_segment(long fd, uint64_t base, const Elf64_Phdr& segment) {
  const uint64_t shift = segment.p_vaddr % page_bytes;
  const uint64_t at = base + segment.p_vaddr - shift;
  if (segment.p_filesz > 0 &&
      sys_map(at, segment.p_filesz + shift, protection_of(segment.p_flags), MAP_PRIVATE | MAP_FIXED,
              fd, segment.p_offset - shift) != static_cast<long>(at)) {
    return false;
  }
  return segment.p_memsz <= segment.p_filesz || map_zeros(base, segment);
}

// Reserves the whole range, so that nothing else is mapped between the segments.
bool reserve(Elf& elf, uint64_t low, uint64_t high, uint64_t hint) {
  const uint64_t bytes = high - low;
  const uint64_t wanted = elf.anywhere ? hint : low;
  const int fixed = wanted != 0 ? MAP_FIXED_NOREPLACE : 0;
  long at = sys_map(wanted, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | fixed);
  if (at < 0 && elf.anywhere) at = sys_map(0, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS);
  if (at < 0) return false;
  elf.base = static_cast<uint64_t>(at) - low;
  elf.start = static_cast<uint64_t>(at);
  elf.end = elf.start + bytes;
  return elf.anywhere || elf.start == low;
}

// The notes of one segment; true where they hold a build id.
uint32_t build_id_of(long fd, const Elf64_Phdr& segment, uint8_t* id, uint32_t room) {
  uint8_t bytes[1024];
  const uint64_t size = segment.p_filesz < sizeof bytes ? segment.p_filesz : sizeof bytes;
  if (sys_pread(fd, bytes, size, segment.p_offset) != static_cast<long>(size)) return 0;
  for (uint64_t at = 0; at + sizeof(Elf64_Nhdr) <= size;) {
    Elf64_Nhdr note;
    memcpy(&note, bytes + at, sizeof note);
    const uint64_t body = at + sizeof note + (note.n_namesz + 3U) / 4 * 4;
    const uint64_t next = body + (note.n_descsz + 3U) / 4 * 4;
    if (body > size || next > size || next <= at) return 0;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && note.n_descsz <= room &&
        memcmp(bytes + at + sizeof note, "GNU", 4) == 0) {
      memcpy(id, bytes + body, note.n_descsz);
      return note.n_descsz;
    }
    at = next;
  }
  return 0;
}

}  // namespace

void read_elf(long fd, const char* path, Elf& elf, Trouble& trouble) {
  Headers headers{};
  if (!read_headers(fd, headers)) {
    trouble << path << " is not a program for this machine (ELF, x86-64)";
    return;
  }
  elf.anywhere = headers.file.e_type == ET_DYN;
  for (int i = 0; i < headers.file.e_phnum; ++i) {
    const Elf64_Phdr& segment = headers.segment[i];
    if (segment.p_type != PT_INTERP || segment.p_filesz >= sizeof elf.interpreter) continue;
    sys_pread(fd, elf.interpreter, segment.p_filesz, segment.p_offset);
  }
}

void map_elf(long fd, const char* path, uint64_t hint, Elf& elf, Trouble& trouble) {
  Headers headers{};
  if (!read_headers(fd, headers)) {
    trouble << path << " changed while it was read";
    return;
  }
  elf.anywhere = headers.file.e_type == ET_DYN;
  uint64_t low = ~0ULL;
  uint64_t high = 0;
  for (int i = 0; i < headers.file.e_phnum; ++i) {
    const Elf64_Phdr& one = headers.segment[i];
    if (one.p_type != PT_LOAD) continue;
    if (down(one.p_vaddr) < low) low = down(one.p_vaddr);
    if (up(one.p_vaddr + one.p_memsz) > high) high = up(one.p_vaddr + one.p_memsz);
  }
  if (high <= low || !reserve(elf, low, high, hint)) {
    trouble << path << " cannot be mapped: its address range is taken";
    return;
  }
  for (int i = 0; i < headers.file.e_phnum; ++i) {
    const Elf64_Phdr& one = headers.segment[i];
    if (one.p_type != PT_LOAD) continue;
    if (!map_segment(fd, elf.base, one)) trouble << path << ": a segment cannot be mapped";
    const uint64_t at = headers.file.e_phoff;
    if (at >= one.p_offset && at < one.p_offset + one.p_filesz) {
      elf.headers = elf.base + one.p_vaddr + (at - one.p_offset);
    }
  }
  elf.headers_count = headers.file.e_phnum;
  elf.entry = elf.base + headers.file.e_entry;
}

uint32_t read_build_id(long fd, uint8_t* id, uint32_t room) {
  Headers headers{};
  if (!read_headers(fd, headers)) return 0;
  for (int i = 0; i < headers.file.e_phnum; ++i) {
    if (headers.segment[i].p_type != PT_NOTE) continue;
    const uint32_t bytes = build_id_of(fd, headers.segment[i], id, room);
    if (bytes > 0) return bytes;
  }
  return 0;
}

bool read_name(long fd, int64_t kind, const char* beginning, char* to, size_t room) {
  Headers headers{};
  if (!read_headers(fd, headers)) return false;
  const auto* end = headers.segment + headers.file.e_phnum;
  const Elf64_Phdr* dynamic = headers.segment;
  while (dynamic != end && dynamic->p_type != PT_DYNAMIC) ++dynamic;
  if (dynamic == end) return false;
  const auto entry = [&](uint64_t at) {
    Elf64_Dyn one{};
    sys_pread(fd, &one, sizeof one, dynamic->p_offset + at);
    return one;
  };
  uint64_t texts = 0;
  for (uint64_t at = 0; at < dynamic->p_filesz; at += sizeof(Elf64_Dyn)) {
    if (entry(at).d_tag == DT_STRTAB) texts = entry(at).d_un.d_ptr;
  }
  const Elf64_Phdr* holder = headers.segment;
  while (holder != end &&
         (holder->p_type != PT_LOAD || texts - holder->p_vaddr >= holder->p_filesz)) {
    ++holder;
  }
  if (holder == end) return false;
  texts += holder->p_offset - holder->p_vaddr;
  for (uint64_t at = 0; at < dynamic->p_filesz; at += sizeof(Elf64_Dyn)) {
    const Elf64_Dyn one = entry(at);
    if (one.d_tag != kind) continue;
    memset(to, 0, room);
    sys_pread(fd, to, room - 1, texts + one.d_un.d_val);
    if (to[0] != 0 && begins_with(to, beginning)) return true;
  }
  return false;
}

bool code_of(const Elf& elf, uint64_t& start, uint64_t& end) {
  const auto* headers = reinterpret_cast<const Elf64_Phdr*>(elf.headers);
  for (uint64_t i = 0; i < elf.headers_count; ++i) {
    const Elf64_Phdr& one = headers[i];
    if (one.p_type != PT_LOAD || (one.p_flags & PF_X) == 0) continue;
    start = elf.base + (one.p_vaddr & ~uint64_t{4095});
    end = elf.base + one.p_vaddr + one.p_memsz;
    return true;
  }
  return false;
}

uint64_t find_symbol(long fd, const Elf& elf, const char* name) {
  Elf64_Ehdr file{};
  if (sys_pread(fd, &file, sizeof file, 0) != sizeof file) return 0;
  for (uint64_t i = 0; i < file.e_shnum; ++i) {
    Elf64_Shdr section{};
    Elf64_Shdr names{};
    const uint64_t at = file.e_shoff + i * sizeof section;
    if (sys_pread(fd, &section, sizeof section, at) != sizeof section) return 0;
    if (section.sh_type != SHT_DYNSYM) continue;
    sys_pread(fd, &names, sizeof names, file.e_shoff + section.sh_link * sizeof names);
    for (uint64_t k = 0; k < section.sh_size / sizeof(Elf64_Sym); ++k) {
      Elf64_Sym symbol{};
      char text[64] = {};
      sys_pread(fd, &symbol, sizeof symbol, section.sh_offset + k * sizeof symbol);
      if (symbol.st_shndx == SHN_UNDEF) continue;
      sys_pread(fd, text, sizeof text - 1, names.sh_offset + symbol.st_name);
      if (same_text(text, name)) return elf.base + symbol.st_value;
    }
  }
  return 0;
}

}  // namespace backstay::image
