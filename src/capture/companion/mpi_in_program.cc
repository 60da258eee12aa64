#include "capture/companion/mpi_in_program.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <vector>

#include "capture/lower/table.h"

namespace backstay::image {
namespace {

constexpr std::uint64_t ours_start = 0x4a5e00000000;  // the boot program's; the lower half follows
constexpr std::uint64_t symbols_bytes_max = 64 << 20;

// A line of /proc/PID/maps.
struct Mapped {
  std::uint64_t start = 0;
  std::string rights, device, inode, file;
  bool is_of_program() const { return start < ours_start || start >= lower::range_end; }
  bool is_shared() const { return rights == "rw-s" || rights == "rwxs"; }
  bool is_same_memory(const Mapped& other) const {
    return device == other.device && inode == other.inode;
  }
};

std::vector<Mapped> mapped_by(const std::string& process) {
  std::vector<Mapped> all;
  std::ifstream maps("/proc/" + process + "/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    Mapped one;
    std::string range, offset;
    words >> range >> one.rights >> offset >> one.device >> one.inode >> std::ws;
    std::getline(words, one.file);
    std::from_chars(range.data(), range.data() + range.size(), one.start, 16);
    if (one.is_of_program() && one.inode != "0") all.push_back(one);
  }
  return all;
}

template <typename T>
std::vector<T> read(std::ifstream& from, std::uint64_t at, std::uint64_t bytes) {
  std::vector<T> all(bytes <= symbols_bytes_max ? bytes / sizeof(T) : 0);
  from.clear();
  from.seekg(static_cast<std::streamoff>(at));
  from.read(reinterpret_cast<char*>(all.data()),
            static_cast<std::streamsize>(all.size() * sizeof(T)));
  return from ? all : std::vector<T>();
}

bool defines(const std::string& file, const char* function) {
  std::ifstream in(file, std::ios::binary);
  const auto header = read<Elf64_Ehdr>(in, 0, sizeof(Elf64_Ehdr));
  if (header.empty() || !std::equal(ELFMAG, ELFMAG + SELFMAG, header[0].e_ident)) return false;
  const auto sections =
      read<Elf64_Shdr>(in, header[0].e_shoff, header[0].e_shnum * sizeof(Elf64_Shdr));
  for (const Elf64_Shdr& section : sections) {
    const bool has_symbols = section.sh_type == SHT_DYNSYM || section.sh_type == SHT_SYMTAB;
    if (!has_symbols || section.sh_link >= sections.size()) continue;
    const Elf64_Shdr& named = sections[section.sh_link];
    auto names = read<char>(in, named.sh_offset, named.sh_size);
    names.push_back(0);
    for (const auto& symbol : read<Elf64_Sym>(in, section.sh_offset, section.sh_size)) {
      if (symbol.st_shndx != SHN_UNDEF && symbol.st_name < names.size() &&
          std::string_view(&names[symbol.st_name]) == function) {
        return true;
      }
    }
  }
  return false;
}

struct SharedByOther {
  std::string process;
  Mapped memory;
};

// The memory of all other processes that is shared and may be written.
std::vector<SharedByOther> shared_by_others(pid_t process) {
  std::vector<SharedByOther> all;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (name == std::to_string(process)) continue;
    for (Mapped& one : mapped_by(name))
      if (one.is_shared()) all.push_back({name, std::move(one)});
  }
  return all;
}

}  // namespace

std::string mpi_library_of(pid_t process, const std::string& folder) {
  if (folder.empty()) return "";
  for (const Mapped& one : mapped_by(std::to_string(process))) {
    if (one.file.starts_with(folder + "/libmpi"))
      return std::filesystem::path(one.file).filename().string();
  }
  return "";
}

bool SharedState::is_mpi(const std::string& file) {
  const auto [known, fresh] = known_.try_emplace(file, false);
  const bool ours = !folder_.empty() && file.starts_with(folder_ + "/");
  if (fresh && !ours) known->second = defines(file, "PMPI_Init");
  return known->second;
}

std::string SharedState::why_not(pid_t process) {
  std::optional<std::vector<SharedByOther>> others;
  for (const Mapped& one : mapped_by(std::to_string(process))) {
    if (one.rights == "r-xp" && is_mpi(one.file))
      return fmt::format(
          "it uses the MPI library {}, which Backstay cannot save (docs/guide/"
          "transparent.md, \"Several processes\", lists those that it can)",
          one.file);
    if (!one.is_shared()) continue;
    if (!others) others = shared_by_others(process);
    const auto other = std::ranges::find_if(
        *others, [&](const SharedByOther& it) { return it.memory.is_same_memory(one); });
    if (other != others->end())
      return fmt::format("it has memory that process {} may write, too ({})", other->process,
                         one.file);
  }
  return "";
}

}  // namespace backstay::image
