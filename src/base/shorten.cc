#include "base/shorten.h"

#include "base/check.h"

namespace backstay {

namespace {

constexpr std::string_view mark = "...";

bool goes_on(char one) { return (static_cast<unsigned char>(one) & 0xc0) == 0x80; }

}  // namespace

std::string shortened(std::string_view text, std::size_t bytes_max) {
  BACKSTAY_CHECK(bytes_max >= 16);
  if (text.size() <= bytes_max) return std::string(text);
  std::size_t begin = (bytes_max - mark.size()) / 2;
  std::size_t end = text.size() - (bytes_max - mark.size() - begin);
  while (begin > 0 && goes_on(text[begin])) --begin;
  while (end < text.size() && goes_on(text[end])) ++end;
  return std::string(text.substr(0, begin)) + std::string(mark) + std::string(text.substr(end));
}

}  // namespace backstay
