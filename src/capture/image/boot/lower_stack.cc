#include "capture/image/boot/lower_stack.h"

#include <elf.h>
#include <linux/mman.h>

#include "capture/image/boot/maps.h"
#include "capture/image/format/layout.h"

namespace backstay::image {

namespace {

constexpr const char* tunables = "GLIBC_TUNABLES=";
constexpr const char* launcher_descriptor = "PMI_FD=";
// No rseq area for a thread that has one of the program's libc, see the page.
constexpr const char* no_rseq = "glibc.pthread.rseq=0";

uint64_t auxv[2 * 64];
uint64_t auxv_count = 0;
char platform[64];  // the kernel's text lies on the first stack, which a restart unmaps

struct Stack {
  uint64_t top = 0;
  void push(const char* text, uint64_t bytes) {
    top -= bytes + 1;
    memcpy(reinterpret_cast<void*>(top), text, bytes);
    reinterpret_cast<char*>(top)[bytes] = 0;
  }
  void push(const char* text) { push(text, strlen(text)); }
  // Puts `text` in front of the string that begins at the top.
  void prepend(const char* text) {
    top -= strlen(text);
    memcpy(reinterpret_cast<void*>(top), text, strlen(text));
  }
};

// The variables, with these changes: no library of a tool is loaded a second time, and libc
// registers no rseq area. False: it has no such variable.
bool push_variable(Stack& stack, const char* variable, const LowerStart& start) {
  if (begins_with(variable, "LD_PRELOAD=") || begins_with(variable, "LD_ORIGIN_PATH=") ||
      begins_with(variable, tunables)) {
    return false;
  }
  if (begins_with(variable, launcher_descriptor) && start.launcher >= 0) {
    Text number;
    number << launcher_descriptor << start.launcher;
    stack.push(number.c_str());
    return true;
  }
  stack.push(variable);
  return true;
}

void push_tunables(Stack& stack, char** environment) {
  stack.push(no_rseq);
  for (char** one = environment; *one != nullptr; ++one) {
    if (!begins_with(*one, tunables)) continue;
    stack.prepend(":");
    stack.prepend(*one + strlen(tunables));
    break;
  }
  stack.prepend(tunables);
}

// Behind a restart the vdso lies elsewhere, or there is none.
uint64_t find_vdso() {
  uint64_t at = 0;
  each_mapping([&](const Mapping& mapping) {
    if (same_text(mapping.name, "[vdso]")) at = mapping.start;
  });
  return at;
}

struct Own {
  uint64_t path, random, vdso;
};

void push_auxiliary(uint64_t*& out, uint64_t key, uint64_t value, const LowerStart& start,
                    const Own& own) {
  const Elf& elf = start.program.elf;
  switch (key) {
    case AT_PHDR: value = elf.headers; break;
    case AT_PHNUM: value = elf.headers_count; break;
    case AT_ENTRY: value = elf.entry; break;
    case AT_BASE: value = start.interpreter.base; break;
    case AT_EXECFN: value = own.path; break;
    case AT_RANDOM: value = own.random; break;
    case AT_PLATFORM: value = static_cast<uint64_t>(address_of(platform)); break;
    case AT_SYSINFO_EHDR:
      value = own.vdso;
      if (own.vdso == 0) key = AT_IGNORE;
      break;
    default: break;
  }
  *out++ = key;
  *out++ = value;
}

}  // namespace

void keep_auxiliary(const Start& start) {
  auxv_count = start.auxv_count < 64 ? start.auxv_count : 64;
  memcpy(auxv, start.auxv, auxv_count * 16);
  const auto* name = reinterpret_cast<const char*>(kept_auxiliary(AT_PLATFORM));
  if (name != nullptr) copy_text(platform, sizeof platform, name);
}

uint64_t kept_auxiliary(uint64_t key) {
  for (uint64_t i = 0; i < auxv_count; ++i) {
    if (auxv[2 * i] == key) return auxv[2 * i + 1];
  }
  return 0;
}

char** keep_environment(const Start& start) {
  uint64_t bytes = (start.environment_count + 1) * sizeof(char*);
  for (uint64_t i = 0; i < start.environment_count; ++i) bytes += strlen(start.environment[i]) + 1;
  const long at = sys_map(kept_environment_place, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE);
  if (at != static_cast<long>(kept_environment_place)) return nullptr;
  auto** all = reinterpret_cast<char**>(at);
  auto* out = reinterpret_cast<char*>(all + start.environment_count + 1);
  for (uint64_t i = 0; i < start.environment_count; ++i) {
    const size_t size = strlen(start.environment[i]) + 1;
    memcpy(out, start.environment[i], size);
    all[i] = out;
    out += size;
  }
  return all;
}

const char* variable_of(char** environment, const char* name) {
  const size_t size = strlen(name);
  for (char** one = environment; *one != nullptr; ++one) {
    if (begins_with(*one, name) && (*one)[size] == '=') return *one + size + 1;
  }
  return nullptr;
}

uint64_t build_lower_stack(uint64_t room, uint64_t bytes, const LowerStart& start) {
  uint64_t count = 0;
  uint64_t texts = 0;
  for (; start.environment[count] != nullptr; ++count)
    texts += strlen(start.environment[count]) + 1;
  const uint64_t words = count + 2 * auxv_count + 8;
  if (2 * words * 8 + texts + page_bytes > bytes / 2) return 0;
  Stack stack{room + bytes - 64};
  Own own{};
  own.vdso = find_vdso();
  stack.top -= 16;
  own.random = stack.top;
  system_call(__NR_getrandom, static_cast<long>(own.random), 16, 0);
  stack.push(start.program.path);
  own.path = stack.top;
  // The words are put together at the far end, as only then their number is known.
  auto* const first = reinterpret_cast<uint64_t*>(room);
  uint64_t* out = first;
  *out++ = 1;
  *out++ = own.path;
  *out++ = 0;
  push_tunables(stack, start.environment);
  *out++ = stack.top;
  for (uint64_t i = 0; i < count; ++i) {
    if (push_variable(stack, start.environment[i], start)) *out++ = stack.top;
  }
  *out++ = 0;
  for (uint64_t i = 0; i < auxv_count; ++i) {
    push_auxiliary(out, auxv[2 * i], auxv[2 * i + 1], start, own);
  }
  const auto size = static_cast<uint64_t>(out - first) * 8;
  stack.top = (stack.top - size) & ~15ULL;
  memcpy(reinterpret_cast<void*>(stack.top), first, size);
  return stack.top;
}

}  // namespace backstay::image
