#include "capture/image/boot/vdso.h"

#include <elf.h>
#include <linux/mman.h>

#include "capture/image/boot/bring_back.h"
#include "capture/image/boot/maps.h"

namespace backstay::image {

namespace {

constexpr uint64_t place = vdso_place;                  // this process's own
constexpr uint64_t saved_place = place + (1ULL << 24);  // the image's, as bytes
constexpr uint64_t vdso_max = 1 << 20;
constexpr long move_flags = 3;  // MREMAP_MAYMOVE | MREMAP_FIXED

struct Part {
  uint64_t start = 0, bytes = 0;
  bool code = false;
};
Part own[8];
uint32_t own_count = 0;
bool saved_mapped = false;

long move(uint64_t from, uint64_t bytes, uint64_t to) {
  return system_call(__NR_mremap, static_cast<long>(from), static_cast<long>(bytes),
                     static_cast<long>(bytes), move_flags, static_cast<long>(to));
}

bool is_vdso(const Area& area) {
  return area.kind == static_cast<uint32_t>(AreaKind::vdso) ||
         area.kind == static_cast<uint32_t>(AreaKind::vdso_data);
}

// The same parts with the same sizes and the same distances, and the same code.
bool is_same(const Tables& tables, uint64_t first) {
  uint32_t part = 0;
  for (const Area& area : tables.areas) {
    if (!is_vdso(area)) continue;
    if (part == own_count || own[part].bytes != area.end - area.start ||
        own[part].start - own[0].start != area.start - first) {
      return false;
    }
    const bool code = area.kind == static_cast<uint32_t>(AreaKind::vdso);
    if (code && memcmp(reinterpret_cast<const void*>(own[part].start),
                       reinterpret_cast<const void*>(saved_place), own[part].bytes) != 0) {
      return false;
    }
    ++part;
  }
  return part == own_count;
}

struct Function {
  const char* name;
  uint32_t number;
};
constexpr Function functions[] = {{"__vdso_clock_gettime", __NR_clock_gettime},
                                  {"clock_gettime", __NR_clock_gettime},
                                  {"__vdso_gettimeofday", __NR_gettimeofday},
                                  {"gettimeofday", __NR_gettimeofday},
                                  {"__vdso_clock_getres", __NR_clock_getres},
                                  {"clock_getres", __NR_clock_getres},
                                  {"__vdso_time", __NR_time},
                                  {"time", __NR_time},
                                  {"__vdso_getcpu", __NR_getcpu},
                                  {"getcpu", __NR_getcpu}};

// mov $number, %eax; syscall; ret
void write_call(uint8_t* at, uint32_t number) {
  at[0] = 0xb8;
  memcpy(at + 1, &number, sizeof number);
  at[5] = 0x0f;
  at[6] = 0x05;
  at[7] = 0xc3;
}

uint32_t number_of(const char* name) {
  for (const Function& one : functions) {
    if (same_text(one.name, name)) return one.number;
  }
  return 0xffff;  // an unknown one says ENOSYS, and its caller takes the other way
}

void redirect(uint8_t* base, uint64_t bytes) {
  Elf64_Ehdr file;
  memcpy(&file, base, sizeof file);
  for (uint32_t i = 0; i < file.e_shnum; ++i) {
    const uint64_t at = file.e_shoff + i * sizeof(Elf64_Shdr);
    if (at + sizeof(Elf64_Shdr) > bytes) return;
    Elf64_Shdr section;
    memcpy(&section, base + at, sizeof section);
    if (section.sh_type != SHT_DYNSYM) continue;
    Elf64_Shdr names;
    memcpy(&names, base + file.e_shoff + section.sh_link * sizeof names, sizeof names);
    for (uint64_t k = 0; k < section.sh_size / sizeof(Elf64_Sym); ++k) {
      Elf64_Sym symbol;
      memcpy(&symbol, base + section.sh_offset + k * sizeof symbol, sizeof symbol);
      const bool function = (symbol.st_info & 0xf) == STT_FUNC && symbol.st_size >= 8;
      if (!function || symbol.st_value + 8 > bytes) continue;
      const auto* name = reinterpret_cast<const char*>(base + names.sh_offset + symbol.st_name);
      write_call(base + symbol.st_value, number_of(name));
    }
  }
}

void put_copy(const Area& area) {
  const uint64_t bytes = area.end - area.start;
  if (sys_map(area.start, bytes, PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE) != static_cast<long>(area.start)) {
    return;
  }
  auto* base = reinterpret_cast<uint8_t*>(area.start);
  memcpy(base, reinterpret_cast<const void*>(saved_place), bytes);
  redirect(base, bytes);
  sys_protect(area.start, bytes, PROT_READ | PROT_EXEC);
}

}  // namespace

void keep_vdso() {
  uint64_t to = place;
  each_mapping([&](const Mapping& mapping) {
    const bool code = same_text(mapping.name, "[vdso]");
    if (!code && !begins_with(mapping.name, "[vvar")) return;
    if (own_count < sizeof own / sizeof own[0]) {
      own[own_count++] = Part{mapping.start, mapping.end - mapping.start, code};
    }
  });
  const uint64_t first = own[0].start;
  for (uint32_t i = 0; i < own_count; ++i) {
    const uint64_t at = to + (own[i].start - first);
    if (move(own[i].start, own[i].bytes, at) == static_cast<long>(at)) own[i].start = at;
  }
}

void keep_room_for_vdso(const Area& area, Trouble& trouble) {
  if (area.end - area.start > vdso_max) {
    trouble << "the image's vdso is larger than any known one";
    return;
  }
  sys_map(saved_place, vdso_max, PROT_READ | PROT_WRITE,
          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE);
  saved_mapped = true;
}

uint8_t* room_for_vdso(uint64_t offset) { return reinterpret_cast<uint8_t*>(saved_place + offset); }

void place_vdso(const Tables& tables) {
  uint64_t first = 0;
  for (const Area& area : tables.areas) {
    if (is_vdso(area) && first == 0) first = area.start;
  }
  const bool same = first != 0 && saved_mapped && is_same(tables, first);
  uint32_t part = 0;
  for (const Area& area : tables.areas) {
    if (!is_vdso(area)) continue;
    if (same) {
      move(own[part].start, own[part].bytes, area.start);
      ++part;
    } else if (area.kind == static_cast<uint32_t>(AreaKind::vdso)) {
      put_copy(area);
    }
  }
  for (; part < own_count; ++part) sys_unmap(own[part].start, own[part].bytes);
  if (saved_mapped) sys_unmap(saved_place, vdso_max);
}

}  // namespace backstay::image
