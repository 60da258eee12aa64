// The lines of an image's notes (docs/format/image.md, identity): KEY=TEXT, or KEY.ID=TEXT of the
// thread that had this id.
#pragma once

#include "capture/image/boot/tables.h"

namespace backstay::image {

// Writes them behind each other. Nothing else is added to the image's texts meanwhile. There is
// room for several lines of each of 4096 threads. What was written can be found at once.
class NotesWriter {
 public:
  explicit NotesWriter(Tables& tables);
  // A line; its text is added then, and its end (\n).
  void begin(const char* key, uint64_t thread);
  void add(const char* text);                                    // part of a line, or some
  void add(const char* key, uint64_t thread, const char* text);  // thread 0: of the process
  void end(Trouble& trouble);
  const Tables& tables() const { return tables_; }

 private:
  Tables& tables_;
};

// A line's text, which ends with the line (0 or \n). Null: there is no such line.
const char* find_note(const Tables& tables, const char* key, uint64_t thread = 0);
// Copies it. False: there is none.
bool note_of(const Tables& tables, const char* key, char* room, size_t bytes, uint64_t thread = 0);

}  // namespace backstay::image
