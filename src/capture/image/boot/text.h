// Strings without a library, and messages: every refusal names the thing. Any thread; `Text` is a
// fixed buffer that cuts what does not fit.
#pragma once

#include <string.h>

#include "capture/image/boot/system.h"

namespace backstay::image {

bool same_text(const char* a, const char* b);
bool begins_with(const char* text, const char* start);
bool ends_with(const char* text, const char* end);
// Copies as much as fits, always with a zero at the end.
void copy_text(char* to, size_t room, const char* from);
const char* last_part(const char* path);

// Reads a number and moves `at` behind it.
uint64_t read_decimal(const char*& at);
uint64_t read_hex(const char*& at);

class Text {
 public:
  Text& operator<<(const char* text);
  Text& operator<<(uint64_t number);
  Text& operator<<(int number) { return *this << static_cast<uint64_t>(number); }
  Text& operator<<(long number);
  Text& hex(uint64_t number);
  const char* c_str() const { return bytes_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  void clear() {
    size_ = 0;
    bytes_[0] = 0;
  }

 private:
  char bytes_[1024] = {};
  size_t size_ = 0;
};

// A refusal or a failure; empty while all is well. Each step stops at the first one.
using Trouble = Text;

// Writes "backstay: <message>" to standard error and ends the process with this code.
[[noreturn]] void give_up(const Text& message, int code);

}  // namespace backstay::image
