#include "capture/image/boot/doors.h"

#include <elf.h>
#include <linux/mman.h>

#include "capture/image/boot/asyncio.h"
#include "capture/image/boot/call_sites.h"
#include "capture/image/boot/exec.h"
#include "capture/image/boot/handlers.h"
#include "capture/image/boot/lower_half.h"
#include "capture/image/boot/options.h"

namespace backstay::image::doors {

BACKSTAY_CALL_SITE_FUNCTION(backstay_execve, backstay_replace, 59, -4095)
BACKSTAY_CALL_SITE_FUNCTION(backstay_execve_inline, backstay_replace, 59, -4096)
BACKSTAY_CALL_SITE_FUNCTION(backstay_execveat, backstay_replace, 322, -4095)
BACKSTAY_CALL_SITE_FUNCTION(backstay_execveat_inline, backstay_replace, 322, -4096)

BACKSTAY_CALL_SITE_FUNCTION(backstay_sigaction, backstay_change_handler, 13, -4095)
BACKSTAY_CALL_SITE_FUNCTION(backstay_sigaction_inline, backstay_change_handler, 13, -4096)

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

namespace {

using Function = void (*)();
constexpr Function functions[] = {backstay_execve, backstay_execve_inline, backstay_execveat,
                                  backstay_execveat_inline};
constexpr CallSite sites[] = {{place + 1 * size, 59, -4095},
                              {place + 2 * size, 59, -4096},
                              {place + 3 * size, 322, -4095},
                              {place + 4 * size, 322, -4096}};

constexpr uint64_t first_handler_door = lower_door + 1;
constexpr Function handler_functions[] = {backstay_sigaction, backstay_sigaction_inline};
constexpr CallSite handler_sites[] = {{place + first_handler_door * size, 13, -4095},
                                      {place + (first_handler_door + 1) * size, 13, -4096}};

bool changes_exec = true;
bool changes_handlers = false;

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
  for (uint64_t i = 0; i < count; ++i) {
    if (changes_exec) change_sites(ranges[i].start, ranges[i].end, sites, 4);
    if (changes_handlers) change_sites(ranges[i].start, ranges[i].end, handler_sites, 2);
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
  for (uint64_t i = 0; i < sizeof functions / sizeof functions[0]; ++i) {
    write_door(i + 1, functions[i]);
  }
  write_door(lower_door, reinterpret_cast<Function>(start_lower_half));
  write_door(asyncio_door, reinterpret_cast<Function>(asyncio::answer));
  write_door(first_handler_door, handler_functions[0]);
  write_door(first_handler_door + 1, handler_functions[1]);
  sys_protect(place, 4096, PROT_READ | PROT_EXEC);
}

}  // namespace backstay::image::doors
