#include "capture/image/boot/call_stubs.h"

#include <linux/mman.h>
#include <string.h>

namespace backstay::image {

namespace {

constexpr uint64_t page = 4096;
constexpr uint64_t stub_bytes = 48;
constexpr uint64_t far = 0x7fff0000;
constexpr uint64_t looks_back = 15;
constexpr uint64_t longest_site = 8;
constexpr uint64_t move_bytes = 5;  // in front of the kernel entry

// The place of one system call: `bytes` from `at` on are changed, and the stub does what they do.
struct Site {
  uint8_t* at;
  uint64_t bytes;
  uint32_t number;  // any_number: eax has it
  int32_t errors;   // of the comparison, where that is changed too
};

uint32_t read_word(const uint8_t* at) {
  uint32_t word = 0;
  memcpy(&word, at, sizeof word);
  return word;
}

// glibc 2.41 and later make all calls that a thread can be cancelled in by two entries. These moves
// stand in front: `mov %r11, 8(%rsp)` where the process has several threads, `mov 0x10(%rsp), %rax`
// where it has one.
constexpr uint8_t shared_entries[][move_bytes] = {{0x4c, 0x89, 0x5c, 0x24, 0x08},
                                                  {0x48, 0x8b, 0x44, 0x24, 0x10}};

bool is_shared_entry(const uint8_t* at) {
  return memcmp(at - move_bytes, shared_entries[0], move_bytes) == 0 ||
         memcmp(at - move_bytes, shared_entries[1], move_bytes) == 0;
}

bool is_kernel_entry(const uint8_t* at) { return at[0] == 0x0f && at[1] == 0x05; }
bool sets_number(const uint8_t* at) { return at[0] == 0xb8; }

// The number that is put into eax at most 10 bytes before its place.
uint32_t number_before(const uint8_t* at) {
  for (uint64_t back = 6; back <= looks_back; ++back) {
    if (is_kernel_entry(at - back)) break;
    if (sets_number(at - back) && read_word(at - back + 1) < 0x400) return read_word(at - back + 1);
  }
  return 0;
}

// Finds what to change for the kernel entry at `at`. False: it is none of the known forms.
bool find_site(uint8_t* at, bool (*wants)(uint32_t), Site& site) {
  constexpr uint8_t last_argument[] = {0x4c, 0x8b, 0x4c, 0x24, 0x08};
  if (sets_number(at - move_bytes) || is_shared_entry(at)) {
    const bool any = !sets_number(at - move_bytes);
    site = Site{at - move_bytes, move_bytes + 2, any ? any_number : read_word(at - 4), 0};
    return wants(site.number);
  }
  if (at[2] != 0x48 || at[3] != 0x3d) return false;
  const bool any = memcmp(at - sizeof last_argument, last_argument, sizeof last_argument) == 0;
  site = Site{at, longest_site, any ? any_number : number_before(at),
              static_cast<int32_t>(read_word(at + 4))};
  return site.number != 0 && wants(site.number);
}

struct Code {
  uint8_t bytes[stub_bytes] = {};
  uint64_t size = 0;
  void add(const uint8_t* code, uint64_t count) {
    memcpy(bytes + size, code, count);
    size += count;
  }
  template <typename Value>
  void add(Value value) {
    add(reinterpret_cast<const uint8_t*>(&value), sizeof value);
  }
};

// The 128 bytes below the stack pointer are the caller's.
Code stub_of(const Site& site, uint64_t stub, void (*function)()) {
  constexpr uint8_t down[] = {0x48, 0x8d, 0x64, 0x24, 0x80};
  constexpr uint8_t address[] = {0x49, 0xbb};
  constexpr uint8_t call[] = {0x41, 0xff, 0xd3};
  constexpr uint8_t up[] = {0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0};
  constexpr uint8_t compare[] = {0x48, 0x3d};
  Code code;
  if (site.bytes != longest_site) code.add(site.at, move_bytes);
  code.add(down, sizeof down);
  code.add(address, sizeof address);
  code.add(reinterpret_cast<uint64_t>(function));
  code.add(call, sizeof call);
  code.add(up, sizeof up);
  if (site.bytes == longest_site) {
    code.add(compare, sizeof compare);
    code.add(site.errors);
  }
  code.add(uint8_t{0xe9});
  const uint64_t back = reinterpret_cast<uint64_t>(site.at) + site.bytes;
  code.add(static_cast<int32_t>(back - (stub + code.size + 4)));
  return code;
}

void write_code(uint64_t at, const uint8_t* code, uint64_t bytes) {
  const uint64_t start = at & ~(page - 1);
  const uint64_t pages = ((at + bytes + page - 1) & ~(page - 1)) - start;
  if (sys_protect(start, pages, PROT_READ | PROT_WRITE) != 0) return;
  memcpy(reinterpret_cast<void*>(at), code, bytes);
  sys_protect(start, pages, PROT_READ | PROT_EXEC);
}

bool change(const Site& site, void (*function)(), Stubs& stubs) {
  const auto at = reinterpret_cast<uint64_t>(site.at);
  const uint64_t distance = stubs.next > at ? stubs.next - at : at - stubs.next;
  if (stubs.next + stub_bytes > stubs.end || distance > far) return false;
  const Code stub = stub_of(site, stubs.next, function);
  write_code(stubs.next, stub.bytes, stub.size);
  Code jump;
  jump.add(uint8_t{0xe9});
  jump.add(static_cast<int32_t>(stubs.next - (at + 5)));
  while (jump.size < site.bytes) jump.add(uint8_t{0x90});
  write_code(at, jump.bytes, jump.size);
  stubs.next += stub_bytes;
  return true;
}

}  // namespace

bool change_to_stubs(uint64_t start, uint64_t end, bool (*wants)(uint32_t number),
                     void (*function)(), Stubs& stubs) {
  auto* const last = reinterpret_cast<uint8_t*>(end) - longest_site;
  for (auto* at = reinterpret_cast<uint8_t*>(start) + looks_back; at <= last; ++at) {
    Site site{};
    if (!is_kernel_entry(at) || !find_site(at, wants, site)) continue;
    if (!change(site, function, stubs)) return false;
  }
  return true;
}

}  // namespace backstay::image
