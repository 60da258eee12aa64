#include "capture/image/boot/lower_half.h"

#include <elf.h>
#include <linux/mman.h>

#include "capture/image/boot/channel.h"
#include "capture/image/boot/gate.h"
#include "capture/image/boot/maps.h"
#include "capture/image/boot/program.h"
#include "capture/image/boot/steer.h"
#include "capture/image/boot/thread.h"
#include "capture/image/format/layout.h"
#include "capture/lower/channel.h"
#include "capture/lower/table.h"

namespace backstay::image {

namespace {

constexpr uint64_t stack_bytes = 8 << 20;
constexpr uint64_t fs_base_instructions = 2;  // in AT_HWCAP2
constexpr const char* search_path = "LD_LIBRARY_PATH=";
constexpr const char* tunables = "GLIBC_TUNABLES=";
// No rseq area for a thread that has one of the program's libc, see the page.
constexpr const char* no_rseq = "glibc.pthread.rseq=0";

char folder[path_max];
uint64_t auxv[2 * 64];
uint64_t auxv_count = 0;
uint64_t entry_stack = 0;
uint64_t entry_address = 0;
const char* started = nullptr;  // the library for which it was started

uint64_t auxiliary(uint64_t key) {
  for (uint64_t i = 0; i < auxv_count; ++i) {
    if (auxv[2 * i] == key) return auxv[2 * i + 1];
  }
  return 0;
}

// --- its interpreter and libc
// ----------------------------------------------------------------------

// Changes the code of the library whose mapping holds this address.
const char* change_library(const void* inside) {
  const auto at = reinterpret_cast<uint64_t>(inside);
  Mapping code;
  Lines lines("/proc/self/maps");
  while (const char* line = lines.next()) {
    Mapping one;
    if (!read_mapping(line, one) || at < one.start || at >= one.end) continue;
    code = one;
    break;
  }
  if ((code.protection & PROT_EXEC) == 0) return "its code";
  return steer::change_calls(code.start, code.end, true);
}

const char* change_interpreter(const Elf& elf) {
  const auto* headers = reinterpret_cast<const Elf64_Phdr*>(elf.headers);
  for (uint64_t i = 0; i < elf.headers_count; ++i) {
    const Elf64_Phdr& one = headers[i];
    if (one.p_type != PT_LOAD || (one.p_flags & PF_X) == 0) continue;
    const uint64_t start = elf.base + (one.p_vaddr & ~(page_bytes - 1));
    return steer::change_calls(start, elf.base + one.p_vaddr + one.p_memsz, false);
  }
  return "its code";
}

// --- what it finds on its stack
// --------------------------------------------------------------------

struct Stack {
  uint64_t top = 0;
  void push(const char* text, uint64_t bytes) {
    top -= bytes + 1;
    memcpy(reinterpret_cast<void*>(top), text, bytes);
    reinterpret_cast<char*>(top)[bytes] = 0;
  }
  // Puts `text` in front of the string that begins at the top.
  void prepend(const char* text) {
    top -= strlen(text);
    memcpy(reinterpret_cast<void*>(top), text, strlen(text));
  }
};

// The program's variables, with these changes: our library is not found, no library of a tool is
// loaded a second time, and libc registers no rseq area. False: it has no such variable.
bool push_variable(Stack& stack, const char* variable) {
  if (begins_with(variable, "LD_PRELOAD=") || begins_with(variable, "LD_ORIGIN_PATH=") ||
      begins_with(variable, tunables)) {
    return false;
  }
  const char* value = variable;
  if (begins_with(variable, search_path)) {
    value += strlen(search_path);
    if (!begins_with(value, folder)) {
      stack.push(variable, strlen(variable));
      return true;
    }
    value += strlen(folder);
    if (*value == ':') ++value;
    if (*value == 0) return false;
    stack.push(value, strlen(value));
    stack.prepend(search_path);
    return true;
  }
  stack.push(value, strlen(value));
  return true;
}

void push_tunables(Stack& stack, char** environment) {
  stack.push(no_rseq, strlen(no_rseq));
  for (char** one = environment; *one != nullptr; ++one) {
    if (!begins_with(*one, tunables)) continue;
    stack.prepend(":");
    stack.prepend(*one + strlen(tunables));
    break;
  }
  stack.prepend(tunables);
}

uint64_t auxiliary_for(const Program& program, const Elf& interpreter, uint64_t path,
                       uint64_t random, uint64_t key, uint64_t value) {
  switch (key) {
    case AT_PHDR: return program.elf.headers;
    case AT_PHNUM: return program.elf.headers_count;
    case AT_ENTRY: return program.elf.entry;
    case AT_BASE: return interpreter.base;
    case AT_EXECFN: return path;
    case AT_RANDOM: return random;
    default: return value;
  }
}

// Returns where its stack ends for a start: count, argument, environment, auxiliary values.
uint64_t build_stack(uint64_t end, const Program& program, const Elf& interpreter,
                     char** environment) {
  Stack stack{end - 64};
  stack.top -= 16;
  const uint64_t random = stack.top;
  system_call(__NR_getrandom, static_cast<long>(random), 16, 0);
  stack.push(program.path, strlen(program.path));
  const uint64_t path = stack.top;
  uint64_t count = 0;
  while (environment[count] != nullptr) ++count;
  auto* out = static_cast<uint64_t*>(arena::take((count + 2 * auxv_count + 8) * 8));
  uint64_t* const first = out;
  *out++ = 1;
  *out++ = path;
  *out++ = 0;
  push_tunables(stack, environment);
  *out++ = stack.top;
  for (uint64_t i = 0; i < count; ++i) {
    if (push_variable(stack, environment[i])) *out++ = stack.top;
  }
  *out++ = 0;
  for (uint64_t i = 0; i < auxv_count; ++i) {
    *out++ = auxv[2 * i];
    *out++ = auxiliary_for(program, interpreter, path, random, auxv[2 * i], auxv[2 * i + 1]);
  }
  const auto bytes = static_cast<uint64_t>(out - first) * 8;
  stack.top = (stack.top - bytes) & ~15ULL;
  memcpy(reinterpret_cast<void*>(stack.top), first, bytes);
  return stack.top;
}

// --- the thread
// ------------------------------------------------------------------------------------

[[noreturn]] void enter(void*) {
  __asm__ volatile(
      "mov %0, %%rsp\n\t"
      "xor %%edx, %%edx\n\t"
      "xor %%ebp, %%ebp\n\t"
      "jmp *%1"
      :
      : "a"(entry_stack), "c"(entry_address)
      : "memory");
  __builtin_unreachable();
}

void map_table(const char* library, Trouble& trouble) {
  const long at = sys_map(lower::range_start, lower::table_bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE);
  if (at != static_cast<long>(lower::range_start)) {
    trouble << "the address range of the lower half is taken";
    return;
  }
  lower::Table& table = lower::table();
  table.version = lower::version;
  table.library = library;
  table.change_calls = change_library;
}

void map_program(Program& program, Elf& interpreter, Trouble& trouble) {
  Text path;
  path << folder << "/backstay-lower";
  open_program_at(path.c_str(), program, trouble);
  if (!trouble.empty()) return;
  map_elf(program.fd, program.path, steer::take_place(64 << 20), program.elf, trouble);
  sys_close(program.fd);
  const long fd = sys_open(program.elf.interpreter, O_RDONLY | O_CLOEXEC);
  if (fd < 0) trouble << program.elf.interpreter << " cannot be read (error " << -fd << ")";
  if (!trouble.empty()) return;
  map_elf(fd, program.elf.interpreter, steer::take_place(64 << 20), interpreter, trouble);
  sys_close(fd);
  if (!trouble.empty()) return;
  const char* missing = change_interpreter(interpreter);
  if (missing != nullptr) {
    trouble << program.elf.interpreter << " is not known: " << missing << " was not found in it";
  }
}

void run_thread(const Program& program, const Elf& interpreter, char** environment,
                Trouble& trouble) {
  const long room = steer::map(stack_bytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK);
  if (room < 0) {
    trouble << "no memory for a stack of the lower half (error " << -room << ")";
    return;
  }
  const uint64_t end = static_cast<uint64_t>(room) + stack_bytes;
  entry_stack = build_stack(end, program, interpreter, environment);
  entry_address = interpreter.entry;
  NewThread thread;
  thread.flags = clone_memory | clone_place | clone_descriptors | clone_handlers | clone_thread |
                 clone_semaphores;
  thread.stack = reinterpret_cast<void*>((entry_stack - 4096) & ~15ULL);
  thread.entry = enter;
  const long tid = start_thread(thread);
  if (tid < 0) trouble << "a thread cannot be started (error " << -tid << ")";
}

void start(const char* library, char** environment, Trouble& trouble) {
  static Program program;
  Elf interpreter;
  if (folder[0] == 0) {
    trouble << "this program uses MPI (" << library << "), and no folder was given by --mpi";
  } else if ((auxiliary(AT_HWCAP2) & fs_base_instructions) == 0) {
    trouble << "this processor or kernel does not let programs set the FS base (FSGSBASE, Linux "
            << "5.9): an MPI program cannot be saved here";
  }
  if (trouble.empty()) __atomic_store_n(&started, library, __ATOMIC_RELEASE);
  if (trouble.empty()) map_table(library, trouble);
  if (trouble.empty()) map_program(program, interpreter, trouble);
  arena::begin();
  if (trouble.empty()) run_thread(program, interpreter, environment, trouble);
  arena::end();
  if (!trouble.empty()) return;
  lower::Table& table = lower::table();
  wait_while(&table.state, static_cast<uint32_t>(lower::State::starting));
  if (table.state == static_cast<uint32_t>(lower::State::failed)) trouble << table.reason.text;
}

}  // namespace

void prepare_lower_half(const char* name, const Start& start) {
  copy_text(folder, sizeof folder, name);
  static Trouble trouble;
  map_channel(trouble);
  if (!trouble.empty()) give_up(trouble, 126);
  auxv_count = start.auxv_count < 64 ? start.auxv_count : 64;
  memcpy(auxv, start.auxv, auxv_count * 16);
}

const char* lower_folder() { return folder[0] != 0 ? folder : nullptr; }

bool in_lower_half() { return folder[0] != 0 && lower::channel().calls != 0; }

void refuse_lower_half(Trouble& trouble) {
  const char* library = __atomic_load_n(&started, __ATOMIC_ACQUIRE);
  if (library == nullptr) return;
  trouble << "the program uses MPI (" << library << "): such a program cannot be saved yet";
}

const char* start_lower_half(const char* library, char** environment) {
  static Trouble trouble;
  const uint64_t mask = set_mask(~0ULL);
  gate::begin_exec();
  trouble.clear();
  start(library, environment, trouble);
  gate::end_exec();
  set_mask(mask);
  return trouble.empty() ? nullptr : trouble.c_str();
}

}  // namespace backstay::image
