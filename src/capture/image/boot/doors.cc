#include "capture/image/boot/doors.h"

#include <elf.h>
#include <linux/mman.h>

#include "capture/image/boot/asyncio.h"
#include "capture/image/boot/call_sites.h"
#include "capture/image/boot/exe_link.h"
#include "capture/image/boot/exec.h"
#include "capture/image/boot/handlers.h"
#include "capture/image/boot/lower_half.h"
#include "capture/image/boot/mpi_files.h"
#include "capture/image/boot/options.h"

namespace backstay::image::doors {

BACKSTAY_CALL_SITE_FUNCTION(backstay_execve, backstay_replace, 59, -4095)
BACKSTAY_CALL_SITE_FUNCTION(backstay_execve_inline, backstay_replace, 59, -4096)
BACKSTAY_CALL_SITE_FUNCTION(backstay_execveat, backstay_replace, 322, -4095)
BACKSTAY_CALL_SITE_FUNCTION(backstay_execveat_inline, backstay_replace, 322, -4096)

BACKSTAY_CALL_SITE_FUNCTION(backstay_sigaction, backstay_change_handler, 13, -4095)
BACKSTAY_CALL_SITE_FUNCTION(backstay_sigaction_inline, backstay_change_handler, 13, -4096)

BACKSTAY_CALL_SITE_FUNCTION(backstay_readlink, backstay_read_link, 89, -4095)
BACKSTAY_CALL_SITE_FUNCTION(backstay_readlink_inline, backstay_read_link, 89, -4096)
BACKSTAY_CALL_SITE_FUNCTION(backstay_readlinkat, backstay_read_link, 267, -4095)
BACKSTAY_CALL_SITE_FUNCTION(backstay_readlinkat_inline, backstay_read_link, 267, -4096)

extern "C" [[gnu::naked, gnu::used]] void backstay_enter() {
  __asm__ volatile(
      "mov %rsp, %rdi\n\tpush %rdx\n\tpush %rdx\n\t"
      "call backstay_first_instruction\n\t"
      "pop %rdx\n\tpop %rdx\n\tjmp *%rax");
}

extern "C" [[gnu::used]] long backstay_replace(const Call* call) { return replace_program(*call); }
extern "C" [[gnu::used]] long backstay_change_handler(const Call* call) {
  return handlers::change(*call);
}
extern "C" [[gnu::used]] long backstay_read_link(const Call* call) { return exe_link::read(*call); }

namespace {

using Function = void (*)();

// A call of the program's libc that goes through a door: which, and what it enters there.
enum class When { exec, handlers, always };
struct LibcDoor {
  uint64_t door;
  Function function;
  uint32_t number;
  int32_t errors;
  When when;
};
constexpr LibcDoor libc_doors[] = {{1, backstay_execve, 59, -4095, When::exec},
                                   {2, backstay_execve_inline, 59, -4096, When::exec},
                                   {3, backstay_execveat, 322, -4095, When::exec},
                                   {4, backstay_execveat_inline, 322, -4096, When::exec},
                                   {6, backstay_sigaction, 13, -4095, When::handlers},
                                   {7, backstay_sigaction_inline, 13, -4096, When::handlers},
                                   {9, backstay_readlink, 89, -4095, When::always},
                                   {10, backstay_readlink_inline, 89, -4096, When::always},
                                   {11, backstay_readlinkat, 267, -4095, When::always},
                                   {12, backstay_readlinkat_inline, 267, -4096, When::always}};
constexpr uint64_t libc_doors_count = sizeof libc_doors / sizeof libc_doors[0];

bool changes_exec = true;
bool changes_handlers = false;

bool is_wanted(const LibcDoor& one) {
  return one.when == When::always || (one.when == When::exec ? changes_exec : changes_handlers);
}

// `endbr64; movabs $function, %r11; jmp *%r11`: a system call may change r11 too.
void write_door(uint64_t number, void (*function)()) {
  auto* out = reinterpret_cast<uint8_t*>(place + number * size);
  const auto to = reinterpret_cast<uint64_t>(function);
  constexpr uint8_t start[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x49, 0xbb};
  constexpr uint8_t end[] = {0x41, 0xff, 0xe3};
  memcpy(out, start, sizeof start);
  memcpy(out + sizeof start, &to, sizeof to);
  memcpy(out + sizeof start + sizeof to, end, sizeof end);
}

void change_libc() {
  struct Range {
    uint64_t start, end;
  };
  Range ranges[8] = {};
  uint64_t count = 0;  // the map must not change while it is read
  each_mapping([&](const Mapping& one) {
    if (is_libc(one) && count < 8) ranges[count++] = Range{one.start, one.end};
  });
  CallSite sites[libc_doors_count] = {};
  uint64_t wanted = 0;
  for (const LibcDoor& one : libc_doors) {
    if (is_wanted(one)) sites[wanted++] = {place + one.door * size, one.number, one.errors};
  }
  for (uint64_t i = 0; i < count; ++i) {
    change_sites(ranges[i].start, ranges[i].end, sites, wanted);
  }
}

}  // namespace

bool is_libc(const Mapping& one) {
  return one.is_path() && !one.shared && (one.protection & PROT_EXEC) != 0 &&
         (begins_with(last_part(one.name), "libc.so") || begins_with(last_part(one.name), "libc-"));
}

extern "C" [[gnu::used]] uint64_t backstay_first_instruction(uint64_t* stack) {
  const uint64_t mask = set_mask(~0ULL);
  const Start start = read_start(stack);
  uint64_t first = 0;
  memcpy(&first, reinterpret_cast<const void*>(start.auxiliary(AT_EXECFN) - sizeof first),
         sizeof first);
  for (uint64_t i = 0; i < start.auxv_count; ++i) {
    if (start.auxv[2 * i] == AT_ENTRY) start.auxv[2 * i + 1] = first;
  }
  change_libc();
  set_mask(mask);
  return first;
}

void choose(bool exec, bool handlers) {
  changes_exec = exec;
  changes_handlers = handlers;
}

void build(Trouble& trouble) {
  const long at = sys_map(place, 4096, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE);
  if (at != static_cast<long>(place)) {
    trouble << "the address range of the boot program is taken";
    return;
  }
  write_door(0, backstay_enter);
  for (const LibcDoor& one : libc_doors) write_door(one.door, one.function);
  write_door(lower_door, reinterpret_cast<Function>(start_lower_half));
  write_door(open_door, mpi_files::backstay_open_file);
  write_door(asyncio_door, reinterpret_cast<Function>(asyncio::answer));
  sys_protect(place, 4096, PROT_READ | PROT_EXEC);
}

}  // namespace backstay::image::doors
