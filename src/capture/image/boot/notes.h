// The lines of an image's notes (docs/format/image.md, identity): KEY=TEXT, or KEY.ID=TEXT, mostly
// of the thread that had this id.
#pragma once

#include "capture/image/boot/tables.h"

namespace backstay::image {

// Writes them behind each other. Nothing else is added to the image's texts meanwhile. What was
// written can be found at once.
class NotesWriter {
 public:
  explicit NotesWriter(Tables& tables);
  void add(const char* text);  // part of a line, or some
  void begin(const char* key, uint64_t id);
  void add_words(const uint64_t* words, uint64_t count);  // in hexadecimal, of the line begun
  void add(const char* key, uint64_t id, const uint64_t* words, uint64_t count);
  void end(Trouble& trouble);
  const Tables& tables() const { return tables_; }

 private:
  Tables& tables_;
};

// Calls visit(id, text) for each line of this key; the text ends with the line (0 or \n).
template <typename Visit>
void each_note(const Tables& tables, const char* key, Visit visit) {
  const char* at = tables.identity.notes == 0 ? "" : tables.text(tables.identity.notes);
  while (*at != 0) {
    const char* next = begins_with(at, key) ? at + strlen(key) : "";
    const uint64_t id = *next == '.' ? read_decimal(++next) : 0;
    if (*next == '=') visit(id, next + 1);
    while (*at != 0 && *at++ != '\n') {
    }
  }
}
// Null: there is no such line.
const char* find_note(const Tables& tables, const char* key, uint64_t id = 0);
// Copies its text. False: there is none.
bool note_of(const Tables& tables, const char* key, char* room, size_t bytes);
// Reads the next word of a line; false at its end.
bool next_word(const char*& at, uint64_t& word);
void read_words(const char* text, uint64_t* words, uint64_t count);

}  // namespace backstay::image
