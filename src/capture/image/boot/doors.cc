#include "capture/image/boot/doors.h"

#include <elf.h>
#include <linux/mman.h>

#include "capture/image/boot/exec.h"
#include "capture/image/boot/maps.h"
#include "capture/image/boot/options.h"

namespace backstay::image::doors {

// The registers of a system call lie on the stack as a doors::Call. The flags on return are those
// of the comparison that libc makes behind the call.
#define BACKSTAY_DOOR(name, number, errors)                 \
  extern "C" [[gnu::naked, gnu::used]] void name() {        \
    __asm__ volatile(                                       \
        "push %r9\n\tpush %r8\n\tpush %r10\n\t"             \
        "push %rdx\n\tpush %rsi\n\tpush %rdi\n\t"           \
        "push $" #number                                    \
        "\n\tmov %rsp, %rdi\n\t"                            \
        "push %rbp\n\tmov %rsp, %rbp\n\tand $-16, %rsp\n\t" \
        "call backstay_replace\n\t"                         \
        "mov %rbp, %rsp\n\tpop %rbp\n\tadd $8, %rsp\n\t"    \
        "pop %rdi\n\tpop %rsi\n\tpop %rdx\n\t"              \
        "pop %r10\n\tpop %r8\n\tpop %r9\n\t"                \
        "cmp $" #errors ", %rax\n\tret");                   \
  }
BACKSTAY_DOOR(backstay_execve, 59, -4095)
BACKSTAY_DOOR(backstay_execve_inline, 59, -4096)
BACKSTAY_DOOR(backstay_execveat, 322, -4095)
BACKSTAY_DOOR(backstay_execveat_inline, 322, -4096)
#undef BACKSTAY_DOOR

extern "C" [[gnu::naked, gnu::used]] void backstay_enter() {
  __asm__ volatile(
      "mov %rsp, %rdi\n\tpush %rdx\n\tpush %rdx\n\t"
      "call backstay_first_instruction\n\t"
      "pop %rdx\n\tpop %rdx\n\tjmp *%rax");
}

extern "C" [[gnu::used]] long backstay_replace(const Call* call) { return replace_program(*call); }

namespace {

// libc's own code for these calls: `mov $number, %eax; syscall; cmp $errors, %rax`. It is as long
// as `movabs $door, %rax; call *%rax; nop`.
constexpr uint64_t site_bytes = 13;
struct Site {
  void (*door)();
  uint8_t code[site_bytes];
};
constexpr Site sites[] = {
    {backstay_execve, {0xb8, 59, 0, 0, 0, 0x0f, 5, 0x48, 0x3d, 1, 0xf0, 0xff, 0xff}},
    {backstay_execve_inline, {0xb8, 59, 0, 0, 0, 0x0f, 5, 0x48, 0x3d, 0, 0xf0, 0xff, 0xff}},
    {backstay_execveat, {0xb8, 0x42, 1, 0, 0, 0x0f, 5, 0x48, 0x3d, 1, 0xf0, 0xff, 0xff}},
    {backstay_execveat_inline, {0xb8, 0x42, 1, 0, 0, 0x0f, 5, 0x48, 0x3d, 0, 0xf0, 0xff, 0xff}},
};

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

void change_site(uint8_t* at, uint64_t door) {
  at[0] = 0x48;
  at[1] = 0xb8;
  memcpy(at + 2, &door, sizeof door);
  at[10] = 0xff;
  at[11] = 0xd0;
  at[12] = 0x90;
}

void change_site_at(uint8_t* at, uint64_t first_page, uint64_t end) {
  for (uint64_t i = 0; i < sizeof sites / sizeof sites[0]; ++i) {
    if (memcmp(at, sites[i].code, site_bytes) != 0) continue;
    const uint64_t pages = (reinterpret_cast<uint64_t>(at) - first_page) & ~0xfffULL;
    const uint64_t start = first_page + pages;
    const uint64_t bytes = start + 2 * 4096 <= end ? 2 * 4096 : 4096;  // it may cross a page
    if (sys_protect(start, bytes, PROT_READ | PROT_WRITE) != 0) return;
    change_site(at, place + (i + 1) * size);
    sys_protect(start, bytes, PROT_READ | PROT_EXEC);
    return;
  }
}

void change_code(uint64_t start, uint64_t end) {
  for (auto* at = reinterpret_cast<uint8_t*>(start);
       at + site_bytes <= reinterpret_cast<uint8_t*>(end); ++at) {
    if (at[0] == 0xb8 && at[5] == 0x0f) change_site_at(at, start, end);
  }
}

bool is_libc(const Mapping& one) {
  return one.is_path() && !one.shared && (one.protection & PROT_EXEC) != 0 &&
         (begins_with(last_part(one.name), "libc.so") || begins_with(last_part(one.name), "libc-"));
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
  for (uint64_t i = 0; i < count; ++i) change_code(ranges[i].start, ranges[i].end);
}

}  // namespace

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

void build(Trouble& trouble) {
  const long at = sys_map(place, 4096, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE);
  if (at != static_cast<long>(place)) {
    trouble << "the address range of the boot program is taken";
    return;
  }
  write_door(0, backstay_enter);
  for (uint64_t i = 0; i < sizeof sites / sizeof sites[0]; ++i) write_door(i + 1, sites[i].door);
  sys_protect(place, 4096, PROT_READ | PROT_EXEC);
}

}  // namespace backstay::image::doors
