#include "capture/image/boot/notes.h"

namespace backstay::image {

NotesWriter::NotesWriter(Tables& tables) : tables_(tables) {
  tables.identity.notes = static_cast<uint32_t>(tables.texts.size());
}

void NotesWriter::add(const char* text) {
  for (; *text != 0; ++text) {
    if (char* next = tables_.texts.add()) *next = *text;
  }
}

void NotesWriter::begin(const char* key, uint64_t thread) {
  Text start;
  start << key;
  if (thread != 0) start << "." << thread;
  add((start << "=").c_str());
}

void NotesWriter::add(const char* key, uint64_t thread, const char* text) {
  begin(key, thread);
  add(text);
  add("\n");
}

void NotesWriter::end(Trouble& trouble) {
  char* last = tables_.texts.add();
  if (last != nullptr) *last = 0;
  if (last == nullptr) trouble << "what the kernel keeps of its threads does not fit into an image";
}

const char* find_note(const Tables& tables, const char* key, uint64_t thread) {
  if (tables.identity.notes == 0) return nullptr;
  const size_t size = strlen(key);
  for (const char* at = tables.text(tables.identity.notes); *at != 0;) {
    if (begins_with(at, key)) {
      const char* next = at + size;
      const uint64_t of = *next == '.' ? read_decimal(++next) : 0;
      if (*next == '=' && of == thread) return next + 1;
    }
    while (*at != 0 && *at++ != '\n') {
    }
  }
  return nullptr;
}

bool note_of(const Tables& tables, const char* key, char* room, size_t bytes, uint64_t thread) {
  const char* text = find_note(tables, key, thread);
  if (text == nullptr) return false;
  size_t length = 0;
  while (text[length] != 0 && text[length] != '\n') ++length;
  copy_text(room, length + 1 < bytes ? length + 1 : bytes, text);
  return true;
}

}  // namespace backstay::image
