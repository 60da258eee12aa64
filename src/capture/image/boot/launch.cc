#include "capture/image/boot/launch.h"

#include <elf.h>
#include <linux/prctl.h>

#include "capture/image/boot/companion.h"
#include "capture/image/boot/control.h"
#include "capture/image/boot/doors.h"
#include "capture/image/boot/files.h"
#include "capture/image/boot/lower_half.h"
#include "capture/image/boot/mpi_files.h"
#include "capture/image/boot/origin.h"
#include "capture/image/boot/personality.h"
#include "capture/image/boot/process.h"
#include "capture/image/boot/program.h"

namespace backstay::image {

namespace {

constexpr uint64_t brk_gap = 1 << 20;
constexpr uint64_t not_random = 0x0040000;  // ADDR_NO_RANDOMIZE
Program program;

uint64_t page_up(uint64_t at) { return (at + page_bytes - 1) & ~(page_bytes - 1); }

// A program may ask for addresses that are not random. Lisps that load the memory that they once
// had (GCL) do, and expect the heap behind the program then, as the kernel puts it.
bool is_random() { return (personality::own() & not_random) == 0; }

// Where kernels put position-independent programs, at random as they do.
uint64_t program_hint(const Start& start) {
  uint64_t random = 0;
  const auto* bytes = reinterpret_cast<const void*>(start.auxiliary(AT_RANDOM));
  if (bytes != nullptr && is_random()) memcpy(&random, bytes, sizeof random);
  return 0x555555554000ULL + (random & 0xfffffff) * page_bytes;
}

// Pushes bytes below the stack's data; all that the program sees must lie in memory of its own.
const char* push(uint64_t& top, const char* text) {
  const size_t size = strlen(text) + 1;
  top -= size;
  memcpy(reinterpret_cast<void*>(top), text, size);
  return reinterpret_cast<const char*>(top);
}

// NAME=folder of the program's file, whatever links led to it.
const char* push_origin(uint64_t& top) {
  Text link;
  link << "/proc/self/fd/" << program.fd;
  char path[path_max] = {};
  if (!read_link(link.c_str(), path, sizeof path)) return nullptr;
  char* last = const_cast<char*>(last_part(path));
  last[last == path + 1 ? 0 : -1] = 0;  // "/" stays
  push(top, path);
  // What push() ends with is the end of the whole.
  const uint64_t name = strlen(origin::variable);
  top -= name + 1;
  auto* out = reinterpret_cast<char*>(top);
  memcpy(out, origin::variable, name);
  out[name] = '=';
  return out;
}

uint64_t auxiliary_for(const Elf& elf, const Elf& interpreter, const char* path, uint64_t key,
                       uint64_t value) {
  switch (key) {
    case AT_PHDR: return elf.headers;
    case AT_PHNUM: return elf.headers_count;
    case AT_ENTRY: return elf.entry;
    case AT_BASE: return interpreter.base;
    case AT_EXECFN: return static_cast<uint64_t>(address_of(path));
    default: return value;
  }
}

// Count, arguments, environment, auxiliary values: what the System V ABI says a new program finds.
struct Stack {
  uint64_t top;  // the new stack pointer
  uint64_t* auxv;
};

Stack build_stack(const Options& options, const Start& start, const Elf& interpreter) {
  uint64_t top = static_cast<uint64_t>(address_of(start.arguments)) - 512;
  const char* folder = origin::prepare(program.elf, interpreter) ? push_origin(top) : nullptr;
  const char* path = push(top, program.path);
  top -= sizeof program.elf.entry;  // doors.h
  memcpy(reinterpret_cast<void*>(top), &program.elf.entry, sizeof program.elf.entry);
  const char* first[3] = {};
  uint64_t extra = 0;
  uint64_t skip = options.first;
  if (program.script[0] != 0) {
    first[extra++] = path;
    if (program.script_argument[0] != 0) first[extra++] = push(top, program.script_argument);
    first[extra++] = push(top, program.script);
    ++skip;
  }
  const uint64_t count = extra + start.count - skip;
  const uint64_t words = 1 + count + 1 + start.environment_count + 3 + 2 * start.auxv_count;
  auto* out = reinterpret_cast<uint64_t*>((top - words * 8) & ~15ULL);
  Stack stack{static_cast<uint64_t>(address_of(out)), nullptr};
  *out++ = count;
  for (uint64_t i = 0; i < extra; ++i) *out++ = static_cast<uint64_t>(address_of(first[i]));
  for (uint64_t i = skip; i < start.count; ++i) {
    *out++ = static_cast<uint64_t>(address_of(start.arguments[i]));
  }
  *out++ = 0;
  for (uint64_t i = 0; i < start.environment_count; ++i) {
    const char* variable = start.environment[i];
    const size_t name = strlen(origin::variable);
    const bool is_origin = begins_with(variable, origin::variable) && variable[name] == '=';
    if (folder == nullptr || !is_origin) *out++ = static_cast<uint64_t>(address_of(variable));
  }
  if (folder != nullptr) *out++ = static_cast<uint64_t>(address_of(folder));
  *out++ = 0;
  stack.auxv = out;
  for (uint64_t i = 0; i < start.auxv_count; ++i) {
    const uint64_t key = start.auxv[2 * i];
    *out++ = key == AT_SYSINFO_EHDR && options.kernel_clock ? AT_IGNORE : key;
    *out++ = auxiliary_for(program.elf, interpreter, path, key, start.auxv[2 * i + 1]);
  }
  return stack;
}

uint64_t heap_start() { return page_up(program.elf.end) + (is_random() ? brk_gap : 0); }

void remember_own_file() {
  Text link;
  link << "/proc/self/fd/" << program.fd;
  FileStatus status;
  if (!read_link(link.c_str(), process.own_file, sizeof process.own_file) ||
      !descriptor_status(program.fd, status)) {
    process.own_file[0] = 0;
  }
  process.own_device = status.device;
  process.own_inode = status.inode;
}

void describe(const Options& options, const Start& start, const Stack& stack) {
  Identity& layout = process.layout;
  const uint64_t brk = heap_start();
  layout.code_start = program.elf.start;
  layout.code_end = program.elf.end;
  layout.data_start = program.elf.start;
  layout.data_end = program.elf.end - 1;  // kernels before 5.15 want the heap behind it
  layout.brk_start = brk;
  layout.brk_end = brk;
  layout.stack_start = stack.top;
  const char* last = start.arguments[start.count - 1];
  layout.arg_start = static_cast<uint64_t>(address_of(start.arguments[options.first]));
  layout.arg_end = static_cast<uint64_t>(address_of(last)) + strlen(last) + 1;
  layout.env_start = layout.env_end = layout.arg_end;
  if (start.environment_count > 0) {
    last = start.environment[start.environment_count - 1];
    layout.env_start = static_cast<uint64_t>(address_of(start.environment[0]));
    layout.env_end = static_cast<uint64_t>(address_of(last)) + strlen(last) + 1;
  }
  layout.auxv_start = static_cast<uint64_t>(address_of(stack.auxv));
  layout.auxv_bytes = start.auxv_count * 16;
  copy_text(process.program, sizeof process.program, program.path);
  remember_own_file();
  copy_text(process.interpreter, sizeof process.interpreter, program.elf.interpreter);
}

// Where libc keeps each thread's rseq area: restartable sequences are registered again after a
// restart.
void note_rseq(long fd, const Elf& interpreter) {
  process.rseq_offset_at = find_symbol(fd, interpreter, "__rseq_offset");
  process.rseq_bytes_at = find_symbol(fd, interpreter, "__rseq_size");
}

[[noreturn]] void enter(uint64_t stack, uint64_t entry) {
  __asm__ volatile(
      "mov %0, %%rsp\n\t"
      "xor %%edx, %%edx\n\t"
      "xor %%ebp, %%ebp\n\t"
      "jmp *%1"
      :
      : "a"(stack), "c"(entry)  // neither rdx nor rbp, which the program finds zeroed
      : "memory");
  __builtin_unreachable();
}

// The interpreter goes to the door, which goes to the program. The kernel was told the true entry.
void enter_by_door(const Stack& stack) {
  for (uint64_t* pair = stack.auxv; *pair != AT_NULL; pair += 2) {
    if (*pair == AT_ENTRY) pair[1] = doors::entry;
  }
}

// A companion says why, in its own words.
void check(const Options& options, const Trouble& trouble, int code) {
  if (trouble.empty()) return;
  if (!options.companion) give_up(trouble, code);
  companion::refuse(options.control, trouble, Refused::ends, code);
}

}  // namespace

void launch(const Options& options, const Start& start) {
  Trouble trouble;
  if (options.program != nullptr) {
    open_program_at(options.program, program, trouble);
  } else {
    find_program(start.arguments[options.first], start, program, trouble);
  }
  check(options, trouble, program.missing ? 127 : 126);  // as a shell
  map_elf(program.fd, program.path, program_hint(start), program.elf, trouble);
  check(options, trouble, 126);
  Elf interpreter;
  const long fd = sys_open(program.elf.interpreter, O_RDONLY | O_CLOEXEC);
  if (fd < 0) trouble << program.elf.interpreter << " cannot be read (error " << -fd << ")";
  if (trouble.empty()) map_elf(fd, program.elf.interpreter, 0, interpreter, trouble);
  check(options, trouble, 126);
  const Stack stack = build_stack(options, start, interpreter);
  describe(options, start, stack);
  note_rseq(fd, interpreter);
  const long refused = set_layout(process.layout, stack.auxv, start.auxv_count * 16);
  if (refused != 0) {
    trouble << "this kernel does not let a program set its memory layout (PR_SET_MM_MAP, error "
            << -refused << "): its heap could not be brought back";
  }
  if (options.mpi != nullptr) prepare_lower_half(options, start);
  if (options.control >= 0 || options.mpi != nullptr) doors::build(trouble);
  doors::choose(options.control >= 0, options.mpi != nullptr);
  if (options.control >= 0 || options.mpi != nullptr) enter_by_door(stack);
  if (trouble.empty() && options.mpi != nullptr) mpi_files::watch_loader(interpreter);
  check(options, trouble, 126);
  sys_close(fd);
  sys_close(program.fd);
  const char* name = program.script[0] != 0 ? program.script : program.path;
  system_call(__NR_prctl, PR_SET_NAME, address_of(last_part(name)));
  start_control(options);
  open_control();
  if (options.masked) set_mask(options.mask);
  enter(stack.top, interpreter.entry);
}

}  // namespace backstay::image
