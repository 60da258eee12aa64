#include "capture/image/boot/personality.h"

#include "capture/image/boot/bring_back.h"
#include "capture/image/boot/files.h"
#include "capture/image/boot/notes.h"

namespace backstay::image::personality {

namespace {

constexpr long only_tell = 0xffffffff;
uint64_t learned = 0;

}  // namespace

uint64_t own() { return static_cast<uint64_t>(system_call(__NR_personality, only_tell)); }

// The control thread that asks was made before the program could change its own.
void add_note(Text& notes) {
  Lines lines("/proc/self/personality");
  const char* line = lines.good() ? lines.next() : nullptr;
  const uint64_t found = line == nullptr ? 0 : read_hex(line);
  if (found == 0) return;
  notes << "personality=";
  notes.hex(found) << "\n";
}

void learn(const Tables& tables) {
  char note[32];
  const char* at = note;
  learned = note_of(tables, "personality", note, sizeof note) ? read_hex(at) : 0;
}

void take() { system_call(__NR_personality, static_cast<long>(learned)); }

}  // namespace backstay::image::personality
