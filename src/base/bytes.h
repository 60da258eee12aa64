// Little-endian bytes <-> integers, with bounds.
//
// ByteWriter appends to a growing vector. ByteReader reads from a span and never past it: after
// the first short read `ok()` is false for good and every later value is 0, so that a parser
// reads straight through and asks once. A length that was read is checked against `left()` by
// `bytes()` and `text()` before anything is allocated.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace backstay {

static_assert(std::endian::native == std::endian::little, "formats are little-endian");

using Bytes = std::span<const std::byte>;
using Buffer = std::vector<std::byte>;

class ByteWriter {
 public:
  template <std::integral T>
  void put(T value) {
    append(&value, sizeof value);
  }
  // u16 length, then the characters. The caller has checked the length.
  void put_text(std::string_view text) {
    put(static_cast<std::uint16_t>(text.size()));
    append(text.data(), text.size());
  }
  void put_bytes(Bytes bytes) { append(bytes.data(), bytes.size()); }
  void put_zeros(std::size_t count) { buffer_.resize(buffer_.size() + count); }
  std::size_t size() const { return buffer_.size(); }
  Bytes view() const { return buffer_; }
  Buffer take() { return std::move(buffer_); }

 private:
  void append(const void* data, std::size_t size) {
    const auto* first = static_cast<const std::byte*>(data);
    buffer_.insert(buffer_.end(), first, first + size);
  }
  Buffer buffer_;
};

class ByteReader {
 public:
  explicit ByteReader(Bytes bytes) : bytes_(bytes) {}

  template <std::integral T>
  T get() {
    T value{};
    copy(&value, sizeof value);
    return value;
  }
  std::string get_text() {
    const auto length = get<std::uint16_t>();
    const Bytes raw = bytes(length);
    return {reinterpret_cast<const char*>(raw.data()), raw.size()};
  }
  // A view of the next `count` bytes; empty, and ok() false, where fewer are left.
  Bytes bytes(std::size_t count) {
    if (count > left()) {
      ok_ = false;
      at_ = bytes_.size();
      return {};
    }
    const Bytes part = bytes_.subspan(at_, count);
    at_ += count;
    return part;
  }
  std::size_t left() const { return bytes_.size() - at_; }
  bool ok() const { return ok_; }
  // Everything was read, and nothing past the end.
  bool done() const { return ok_ && left() == 0; }

 private:
  void copy(void* to, std::size_t size) {
    const Bytes raw = bytes(size);
    if (raw.size() == size) std::memcpy(to, raw.data(), size);
  }
  Bytes bytes_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace backstay
