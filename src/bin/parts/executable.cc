#include "bin/parts/executable.h"

#include <elf.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/program.h"
#include "base/program_name.h"
#include "bin/parts/needed_libraries.h"

namespace backstay::bin {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

constexpr std::size_t head_bytes = 64 * 1024;  // of a file: its headers and a script's first line
constexpr int scripts_max = 4;                 // the kernel follows as many

std::string head_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string head(head_bytes, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return head;
}

// The head of an ELF file of 64 bits. Fields are believed as far as the head reaches.
struct Elf {
  bool elf = false;      // of some kind
  bool other = false;    // of 32 bits, or of the other byte order
  unsigned machine = 0;  // EM_X86_64 ...
  std::string loader;    // "": static
};

template <typename T>
bool read_at(const std::string& head, std::uint64_t at, T& value) {
  if (at > head.size() || head.size() - at < sizeof value) return false;
  std::memcpy(&value, head.data() + at, sizeof value);
  return true;
}

Elf elf_of(const std::string& head) {
  Elf result;
  Elf64_Ehdr header{};
  result.elf = head.starts_with(ELFMAG);
  if (!result.elf || !read_at(head, 0, header)) return result;
  result.other = header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB;
  result.machine = header.e_machine;
  for (unsigned i = 0; i < header.e_phnum && !result.other; ++i) {
    Elf64_Phdr segment{};
    if (!read_at(head, header.e_phoff + std::uint64_t{i} * sizeof segment, segment)) break;
    if (segment.p_type == PT_INTERP && segment.p_offset < head.size())
      result.loader = head.c_str() + segment.p_offset;
  }
  return result;
}

const Elf& own_elf() {
  static const Elf own = elf_of(head_of("/proc/self/exe"));
  return own;
}

std::string machine_name(const Elf& elf) {
  if (elf.other) return "programs of 32 bits or of another byte order";
  switch (elf.machine) {
    case EM_X86_64: return "x86-64";
    case EM_AARCH64: return "aarch64";
    case EM_PPC64: return "ppc64";
    case EM_RISCV: return "riscv";
    default: return fmt::format("machine number {} of ELF", elf.machine);
  }
}

bool of_this_machine(const Elf& elf) { return !elf.other && elf.machine == own_elf().machine; }

std::string file_name(const std::string& path) { return fs::path(path).filename().string(); }

// The words of a script's first line behind "#!"; empty: it has none.
Words interpreter_of(const std::string& head) {
  if (!head.starts_with("#!")) return {};
  const std::string line = head.substr(2, head.find('\n') - 2);
  const std::size_t begin = std::min(line.find_first_not_of(" \t"), line.size());
  const std::size_t end = std::min(line.find_first_of(" \t\r", begin), line.size());
  Words words{line.substr(begin, end - begin)};
  const std::size_t rest = std::min(line.find_first_not_of(" \t\r", end), line.size());
  // The kernel takes the rest for one word; `env -S` cuts it.
  if (rest < line.size())
    words.push_back(line.substr(rest, line.find_last_not_of(" \t\r") + 1 - rest));
  return words;
}

// The program gets rights that its caller does not have, so the loader trusts no variable.
std::string extra_rights(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return "";
  if ((info.st_mode & S_ISUID) != 0 && info.st_uid != ::getuid())
    return "runs with the rights of its owner (set-user-id)";
  if ((info.st_mode & S_ISGID) != 0 && (info.st_mode & S_IXGRP) != 0 && info.st_gid != ::getgid())
    return "runs with the rights of its group (set-group-id)";
  if (::getuid() != 0 && ::getxattr(path.c_str(), "security.capability", nullptr, 0) > 0)
    return "has capabilities of its own (getcap shows them)";
  return "";
}

constexpr const char* other_ways =
    "What works with it: `backstay mount` in place of --capture-files (docs/guide/files.md)";

// Why the loader would load no library into the ELF file; "" if it would.
std::string why_not_loaded(const std::string& path, const Elf& elf) {
  if (!of_this_machine(elf))
    return fmt::format("is for {}, and the library that captures files is for {}. Build it for {}",
                       machine_name(elf), machine_name(own_elf()), machine_name(own_elf()));
  if (elf.loader.empty())
    return fmt::format(
        "is linked statically, so no library can be loaded into it. Link it "
        "dynamically (without -static). {}",
        other_ways);
  if (file_name(elf.loader) != file_name(own_elf().loader))
    return fmt::format(
        "is for another C library (its loader is {}), and the library that captures "
        "files is for {}. Build it for that one",
        elf.loader, own_elf().loader);
  const std::string rights = extra_rights(path);
  return rights.empty() ? ""
                        : fmt::format(
                              "{}, so the system loads no library into it that its caller "
                              "names. Run a copy without these rights. {}",
                              rights, other_ways);
}

// Its own check ends the program where another library comes before it.
std::string why_not_beside_sanitizer(const std::string& path) {
  for (const std::string& library : needed_libraries(path)) {
    if (!library.starts_with("libasan.") && !library.starts_with("libclang_rt.asan")) continue;
    return fmt::format(
        "was built with the address sanitizer ({}), which allows no library before its own. Build "
        "it without -fsanitize=address, or run it without --capture-files",
        library);
  }
  return "";
}

Error refused(const std::string& path, const std::string& why) {
  return {Code::permission, fmt::format("the files of {} cannot be captured: it {}", path, why)};
}

// A file, and what it is interpreted by.
Status check_file(const std::string& path, int scripts_left) {
  const std::string head = head_of(path);
  const Words interpreter = interpreter_of(head);
  if (interpreter.empty()) {
    const Elf elf = elf_of(head);
    if (!elf.elf) return check_file("/bin/sh", 0);  // which runs text without "#!"
    std::string why = why_not_loaded(path, elf);
    if (why.empty()) why = why_not_beside_sanitizer(path);
    return why.empty() ? Status() : refused(path, why);
  }
  const std::string& program = interpreter.front();
  if (!is_program(program)) return Error(Code::permission, why_not_executed(path, ENOENT));
  if (scripts_left == 0) return Error(Code::permission, why_not_executed(path, ELOOP));
  if (const Status status = check_file(program, scripts_left - 1); !status.ok())
    return status.error().context(path + " is a script");
  // "#!/usr/bin/env -S python3 -u"
  if (file_name(program) != "env" || interpreter.size() < 2) return {};
  std::string rest = interpreter[1];
  if (rest.starts_with("-S")) rest.erase(0, rest.find_first_not_of(" \t", 2));
  const std::string found = find_program(rest.substr(0, rest.find_first_of(" \t")));
  if (found.empty() || scripts_left == 0) return {};
  const Status status = check_file(found, scripts_left - 1);
  return status.ok() ? status : status.error().context(path + " is a script");
}

}  // namespace

Result<std::string> resolve_program(const std::string& name) {
  const std::string found = find_program(name);
  if (!found.empty()) return found;
  std::error_code unknown;
  if (name.find('/') == std::string::npos || !fs::exists(name, unknown))
    return Error(Code::not_found, name + (name.find('/') == std::string::npos
                                              ? " was not found; is it in PATH?"
                                              : " was not found; is its path right?"));
  return Error(Code::permission,
               fs::is_directory(name, unknown)
                   ? name + " is a folder; which program in it?"
                   : name + " cannot be executed; is it a program? `chmod +x` makes it one");
}

std::string why_not_executed(const std::string& path, int sys_errno) {
  const std::string head = head_of(path);
  const Words interpreter = interpreter_of(head);
  if (!interpreter.empty() && (sys_errno == ENOENT || sys_errno == EACCES))
    return fmt::format("{} is a script for {}, which {}; its first line names it", path,
                       interpreter.front(),
                       is_program(interpreter.front()) ? "cannot be executed" : "is missing here");
  const Elf elf = elf_of(head);
  if (elf.elf && !of_this_machine(elf))
    return fmt::format("{} is for {}, and this machine is {}; build it for this one", path,
                       machine_name(elf), machine_name(own_elf()));
  if (elf.elf && !elf.loader.empty() && ::access(elf.loader.c_str(), X_OK) != 0)
    return fmt::format("{} needs the loader {}, which is missing here; build it for this system",
                       path, elf.loader);
  return fmt::format("{} cannot be executed: {}", path, std::strerror(sys_errno));
}

Status check_takes_library(const Words& words) {
  BACKSTAY_TRY(check_file(words.front(), scripts_max));
  const ProgramOfLine behind =
      program_of_line(words, [](const std::string& word) { return !find_program(word).empty(); });
  const std::string file = find_program(behind.file);
  if (file.empty() || file == words.front()) return {};
  return check_file(file, scripts_max);
}

}  // namespace backstay::bin
