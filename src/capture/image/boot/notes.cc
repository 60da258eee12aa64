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

void NotesWriter::begin(const char* key, uint64_t id) {
  add(key);
  if (id != 0) add((Text() << "." << id).c_str());
  add("=");
}

void NotesWriter::add_words(const uint64_t* words, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) add((Text().hex(words[i]) << " ").c_str());
}

void NotesWriter::add(const char* key, uint64_t id, const uint64_t* words, uint64_t count) {
  while (count > 0 && words[count - 1] == 0) --count;
  begin(key, id);
  add_words(words, count);
  add("\n");
}

void NotesWriter::end(Trouble& trouble) {
  char* last = tables_.texts.add();
  if (last != nullptr) *last = 0;
  if (last == nullptr) trouble << "what the kernel keeps of its threads does not fit into an image";
}

const char* find_note(const Tables& tables, const char* key, uint64_t id) {
  const char* found = nullptr;
  each_note(tables, key, [&](uint64_t of, const char* text) {
    if (of == id && found == nullptr) found = text;
  });
  return found;
}

bool note_of(const Tables& tables, const char* key, char* room, size_t bytes) {
  const char* text = find_note(tables, key);
  if (text == nullptr) return false;
  size_t length = 0;
  while (text[length] != 0 && text[length] != '\n') ++length;
  copy_text(room, length + 1 < bytes ? length + 1 : bytes, text);
  return true;
}

bool next_word(const char*& at, uint64_t& word) {
  if (*at == 0 || *at == '\n') return false;
  word = read_hex(at);
  if (*at == ' ') ++at;
  return true;
}

void read_words(const char* text, uint64_t* words, uint64_t count) {
  for (uint64_t i = 0; i < count && next_word(text, words[i]); ++i) {
  }
}

}  // namespace backstay::image
