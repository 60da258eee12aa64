#include "capture/image/boot/text.h"

#include <strings.h>

// The compiler calls these by name. `rep movsb` is fast on every machine with AVX, and short.
extern "C" {
void* memcpy(void* to, const void* from, size_t bytes) noexcept {
  void* begin = to;
  __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
  return begin;
}
void* memmove(void* to, const void* from, size_t bytes) noexcept {
  auto* out = static_cast<char*>(to);
  const auto* in = static_cast<const char*>(from);
  if (out <= in || out >= in + bytes) return memcpy(to, from, bytes);
  volatile char* last = out + bytes;  // volatile: no call of memmove itself
  while (bytes > 0) *--last = in[--bytes];
  return to;
}
void* memset(void* to, int value, size_t bytes) noexcept {
  void* begin = to;
  __asm__ volatile("rep stosb" : "+D"(to), "+c"(bytes) : "a"(value) : "memory");
  return begin;
}
int memcmp(const void* a, const void* b, size_t bytes) noexcept {
  const auto* left = static_cast<const volatile unsigned char*>(a);
  const auto* right = static_cast<const volatile unsigned char*>(b);
  for (size_t i = 0; i < bytes; ++i) {
    if (left[i] != right[i]) return left[i] < right[i] ? -1 : 1;
  }
  return 0;
}
int bcmp(const void* a, const void* b, size_t bytes) noexcept { return memcmp(a, b, bytes); }
size_t strlen(const char* text) noexcept {
  const volatile char* at = text;
  size_t size = 0;
  while (at[size] != 0) ++size;
  return size;
}
}

// <string.h> declares it in C++, with the name that the linker looks for.
const void* memchr(const void* in, int wanted, size_t bytes) noexcept {
  const auto* at = static_cast<const unsigned char*>(in);
  for (; bytes > 0; ++at, --bytes) {
    if (*at == static_cast<unsigned char>(wanted)) return at;
  }
  return nullptr;
}

namespace backstay::image {

bool same_text(const char* a, const char* b) {
  while (*a != 0 && *a == *b) {
    ++a;
    ++b;
  }
  return *a == *b;
}

bool begins_with(const char* text, const char* start) {
  while (*start != 0) {
    if (*text++ != *start++) return false;
  }
  return true;
}

bool ends_with(const char* text, const char* end) {
  const size_t size = strlen(text);
  const size_t wanted = strlen(end);
  return size >= wanted && same_text(text + size - wanted, end);
}

void copy_text(char* to, size_t room, const char* from) {
  size_t at = 0;
  for (; at + 1 < room && from[at] != 0; ++at) to[at] = from[at];
  to[at] = 0;
}

const char* last_part(const char* path) {
  const char* part = path;
  for (const char* at = path; *at != 0; ++at) {
    if (*at == '/' && at[1] != 0) part = at + 1;
  }
  return part;
}

uint64_t read_decimal(const char*& at) {
  uint64_t number = 0;
  while (*at >= '0' && *at <= '9') number = number * 10 + static_cast<uint64_t>(*at++ - '0');
  return number;
}

uint64_t read_hex(const char*& at) {
  uint64_t number = 0;
  for (;; ++at) {
    if (*at >= '0' && *at <= '9') {
      number = number * 16 + static_cast<uint64_t>(*at - '0');
    } else if (*at >= 'a' && *at <= 'f') {
      number = number * 16 + static_cast<uint64_t>(*at - 'a' + 10);
    } else {
      return number;
    }
  }
}

Text& Text::operator<<(const char* text) {
  while (*text != 0 && size_ + 1 < sizeof bytes_) bytes_[size_++] = *text++;
  bytes_[size_] = 0;
  return *this;
}

Text& Text::operator<<(uint64_t number) {
  char digits[24];
  size_t at = sizeof digits - 1;
  digits[at] = 0;
  do {
    digits[--at] = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number != 0);
  return *this << digits + at;
}

Text& Text::operator<<(long number) {
  if (number < 0) *this << "-";
  return *this << static_cast<uint64_t>(number < 0 ? -number : number);
}

Text& Text::hex(uint64_t number) {
  char digits[24];
  size_t at = sizeof digits - 1;
  digits[at] = 0;
  do {
    digits[--at] = "0123456789abcdef"[number % 16];
    number /= 16;
  } while (number != 0);
  return *this << digits + at;
}

void give_up(const Text& message, int code) {
  Text line;
  line << "backstay: " << message.c_str() << "\n";
  sys_write(2, line.c_str(), line.size());
  sys_exit(code);
}

}  // namespace backstay::image
