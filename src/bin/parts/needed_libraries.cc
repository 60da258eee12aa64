#include "bin/parts/needed_libraries.h"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <optional>

namespace backstay::bin {
namespace {

// Numbers of a file are believed as far as the file reaches, and no further than these.
constexpr std::uint64_t dynamic_entries_max = 10'000;
constexpr std::size_t name_bytes_max = 4096;

class ElfFile {
 public:
  explicit ElfFile(const std::string& path) : file_(path, std::ios::binary) {
    Elf64_Ehdr header{};
    if (!read(0, header) || !std::equal(ELFMAG, ELFMAG + SELFMAG, header.e_ident)) return;
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB) return;
    for (unsigned i = 0; i < header.e_phnum; ++i) {
      Elf64_Phdr segment{};
      if (!read(header.e_phoff + std::uint64_t{i} * sizeof segment, segment)) return;
      segments_.push_back(segment);
    }
  }

  std::vector<std::string> needed() {
    std::vector<std::uint64_t> names;
    std::optional<std::uint64_t> strings;
    for (const Elf64_Dyn& entry : dynamic()) {
      if (entry.d_tag == DT_NEEDED) names.push_back(entry.d_un.d_val);
      if (entry.d_tag == DT_STRTAB) strings = in_file(entry.d_un.d_ptr);
    }
    std::vector<std::string> all;
    if (!strings) return all;
    for (const std::uint64_t name : names) all.push_back(text(*strings + name));
    return all;
  }

 private:
  template <typename T>
  bool read(std::uint64_t at, T& value) {
    file_.clear();
    file_.seekg(static_cast<std::streamoff>(at));
    return static_cast<bool>(file_.read(reinterpret_cast<char*>(&value), sizeof value));
  }

  std::vector<Elf64_Dyn> dynamic() {
    std::vector<Elf64_Dyn> all;
    for (const Elf64_Phdr& segment : segments_) {
      if (segment.p_type != PT_DYNAMIC) continue;
      const std::uint64_t entries =
          std::min<std::uint64_t>(segment.p_filesz / sizeof(Elf64_Dyn), dynamic_entries_max);
      for (std::uint64_t i = 0; i < entries; ++i) {
        Elf64_Dyn entry{};
        if (!read(segment.p_offset + i * sizeof entry, entry) || entry.d_tag == DT_NULL) break;
        all.push_back(entry);
      }
    }
    return all;
  }

  std::optional<std::uint64_t> in_file(std::uint64_t address) const {
    for (const Elf64_Phdr& segment : segments_) {
      if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
          address - segment.p_vaddr < segment.p_filesz)
        return segment.p_offset + (address - segment.p_vaddr);
    }
    return std::nullopt;
  }

  std::string text(std::uint64_t at) {
    std::string found(name_bytes_max, '\0');
    file_.clear();
    file_.seekg(static_cast<std::streamoff>(at));
    file_.read(found.data(), static_cast<std::streamsize>(found.size()));
    return found.c_str();
  }

  std::ifstream file_;
  std::vector<Elf64_Phdr> segments_;
};

}  // namespace

std::vector<std::string> needed_libraries(const std::string& path) {
  return ElfFile(path).needed();
}

}  // namespace backstay::bin
