#include "capture/image/boot/program.h"

#include <asm/stat.h>

#include "capture/image/boot/files.h"

namespace backstay::image {

namespace {

bool is_executable(const char* path) {
  FileStatus status;
  return file_status(path, status) && status.is_regular() &&
         system_call(__NR_faccessat, AT_FDCWD, address_of(path), 1 /* X_OK */) == 0;
}

// One folder of PATH after the other; an empty one is the working directory.
bool search(const char* folders, const char* name, char* path) {
  for (const char* at = folders;; ++at) {
    Text candidate;
    char folder[path_max] = {};
    size_t size = 0;
    while (*at != 0 && *at != ':' && size + 1 < sizeof folder) folder[size++] = *at++;
    if (size > 0) candidate << folder << "/";
    candidate << name;
    if (is_executable(candidate.c_str())) {
      copy_text(path, path_max, candidate.c_str());
      return true;
    }
    if (*at == 0) return false;
  }
}

// `#!interpreter [argument]` in the first line.
bool read_script(Program& program) {
  char line[256] = {};
  const long bytes = sys_pread(program.fd, line, sizeof line - 1, 0);
  if (bytes < 3 || line[0] != '#' || line[1] != '!') return false;
  copy_text(program.script, path_max, program.path);
  char* at = line + 2;
  const auto word = [&](char* to, size_t room, bool rest) {
    while (*at == ' ' || *at == '\t') ++at;
    char* first = at;
    while (*at != 0 && *at != '\n' && (rest || (*at != ' ' && *at != '\t'))) ++at;
    const char end = *at;
    *at = 0;
    copy_text(to, room, first);
    *at = end;
  };
  word(program.path, path_max, false);
  word(program.script_argument, sizeof program.script_argument, true);
  return true;
}

void refuse_privileged(const Program& program, Trouble& trouble) {
  FileStatus status;
  if (!descriptor_status(program.fd, status)) return;
  if ((status.mode & 06000) != 0) {
    trouble << program.path << " is a set-user-id or set-group-id program: it cannot be saved";
  } else if (system_call(__NR_fgetxattr, program.fd, address_of("security.capability"), 0, 0) > 0) {
    trouble << program.path << " has capabilities of its own (setcap): it cannot be saved";
  }
}

void open_program(Program& program, Trouble& trouble) {
  program.fd = sys_open(program.path, O_RDONLY | O_CLOEXEC);
  if (program.fd < 0) trouble << program.path << " cannot be read (error " << -program.fd << ")";
}

}  // namespace

void find_program(const char* name, const Start& start, Program& program, Trouble& trouble) {
  bool slash = false;
  for (const char* at = name; *at != 0; ++at) slash = slash || *at == '/';
  const char* folders = start.variable("PATH");
  static char path[path_max];
  if (slash) {
    copy_text(path, path_max, name);
  } else if (!search(folders != nullptr ? folders : "/bin:/usr/bin", name, path)) {
    trouble << name << ": command not found";
    program.missing = true;
    return;
  }
  open_program_at(path, program, trouble);
}

void open_program_at(const char* path, Program& program, Trouble& trouble) {
  copy_text(program.path, path_max, path);
  if (!is_executable(program.path)) {
    FileStatus status;
    program.missing = !file_status(program.path, status);
    trouble << program.path << (program.missing ? ": not found" : ": not executable");
    return;
  }
  open_program(program, trouble);
  if (trouble.empty() && read_script(program)) {
    sys_close(program.fd);
    open_program(program, trouble);
  }
  if (!trouble.empty()) return;
  refuse_privileged(program, trouble);
  if (trouble.empty()) read_elf(program.fd, program.path, program.elf, trouble);
  if (trouble.empty() && program.elf.interpreter[0] == 0) {
    trouble << program.path << " is linked statically: only dynamic programs can be saved";
  }
}

}  // namespace backstay::image
