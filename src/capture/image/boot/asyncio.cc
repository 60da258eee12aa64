#include "capture/image/boot/asyncio.h"

#include <linux/mman.h>

#include "capture/image/boot/areas.h"
#include "capture/image/boot/bring_back.h"
#include "capture/image/boot/doors.h"
#include "capture/image/boot/maps.h"
#include "capture/image/boot/notes.h"

namespace backstay::image::asyncio {

namespace {

uint64_t slot = 0;  // where asyncio's library has its pointer to getpid; 0: it has none, or not yet
bool is_known = false;
// Since a restart: the id that the door answers, and that of the process.
int shown = 0;
int own = 0;

int process_id() { return static_cast<int>(system_call(__NR_getpid)); }

bool is_of_asyncio(const Mapping& one) {
  return begins_with(last_part(one.name), "_asyncio.") && (one.protection & PROT_READ) != 0;
}

template <typename Visit>
void each_word(const Mapping& one, uint64_t step, uint64_t bytes, Visit visit) {
  for (uint64_t at = one.start; at + bytes <= one.end; at += step) visit(at);
}

bool is_at(uint64_t at, const void* bytes, size_t size) {
  return memcmp(reinterpret_cast<const void*>(at), bytes, size) == 0;
}

// Newer Pythons do not ask for it.
bool asks_for_getpid() {
  constexpr char name[] = "\0getpid";
  bool found = false;
  each_mapping([&](const Mapping& one) {
    if (!is_of_asyncio(one) || (one.protection & PROT_WRITE) != 0) return;
    each_word(one, 1, sizeof name,
              [&](uint64_t at) { found = found || is_at(at, name, sizeof name); });
  });
  return found;
}

// The function in libc: `mov $39, %eax; syscall; ret`, behind `endbr64` or not. 0: none is found.
uint64_t getpid_of_libc() {
  constexpr uint8_t code[] = {0xb8, 0x27, 0, 0, 0, 0x0f, 0x05, 0xc3};
  constexpr uint8_t landing[] = {0xf3, 0x0f, 0x1e, 0xfa};
  uint64_t found = 0;
  each_mapping([&](const Mapping& one) {
    if (!doors::is_libc(one)) return;
    each_word(one, 16, sizeof landing + sizeof code, [&](uint64_t at) {
      const bool lands = is_at(at, landing, sizeof landing);
      if (found == 0 && is_at(at + (lands ? sizeof landing : 0), code, sizeof code)) found = at;
    });
  });
  return found;
}

bool leads_to(uint64_t at, uint64_t function) { return is_at(at, &function, sizeof function); }

// The library has one such pointer. One that was never used leads elsewhere: no loop has asked yet.
void find_slot(uint64_t function) {
  each_mapping([&](const Mapping& one) {
    if (!is_of_asyncio(one) || one.shared || (one.protection & PROT_EXEC) != 0) return;
    each_word(one, 8, 8, [&](uint64_t at) {
      if (leads_to(at, function) || leads_to(at, doors::asyncio)) slot = at;
    });
  });
}

bool is_filled(const Tables& tables, uint64_t at) {
  for (const Run& run : tables.runs) {
    if (at >= run.address && at + 8 <= end_of(run)) return true;
  }
  return false;
}

}  // namespace

void begin() {
  slot = 0;
  is_known = false;
}

void find(Trouble& trouble) {
  if (is_known) return;
  is_known = true;
  if (!asks_for_getpid()) return;
  const uint64_t function = getpid_of_libc();
  if (function == 0) {
    trouble << "the program uses Python's asyncio, whose event loops do not run on under another "
               "process id, and its libc is not a known one";
    return;
  }
  find_slot(function);
}

void add_note(Text& notes) {
  if (slot == 0) return;
  notes << "pid=" << (leads_to(slot, doors::asyncio) ? answer() : process_id()) << " ";
  notes.hex(slot) << "\n";
}

void bring_back(const Tables& tables) {
  char note[64];
  if (!note_of(tables, "pid", note, sizeof note)) return;
  const char* at = note;
  const auto before = static_cast<int>(read_decimal(at));
  if (*at == ' ') ++at;
  const uint64_t place = read_hex(at);
  if (!is_filled(tables, place)) return;
  const uint64_t door = doors::asyncio;
  memcpy(reinterpret_cast<void*>(place), &door, sizeof door);
  shown = before;
  own = process_id();
}

int answer() {
  const int now = process_id();
  return shown != 0 && now == own ? shown : now;
}

}  // namespace backstay::image::asyncio
