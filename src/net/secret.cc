#include "net/secret.h"

#include <sodium.h>

#include "base/check.h"

namespace backstay::net {

void fill_random(void* to, std::size_t bytes) {
  static const int ready = sodium_init();  // once, by the first caller
  BACKSTAY_CHECK(ready >= 0);
  randombytes_buf(to, bytes);
}

Secret Secret::random() {
  Secret secret;
  fill_random(secret.value_.data(), bytes);
  return secret;
}

Result<Secret> Secret::from_hex(const std::string& digits) {
  Secret secret;
  std::size_t read = 0;
  const bool good = digits.size() == 2 * bytes &&
                    sodium_hex2bin(secret.value_.data(), bytes, digits.data(), digits.size(),
                                   nullptr, &read, nullptr) == 0 &&
                    read == bytes;
  if (!good) return Error(Code::invalid, "a secret is 64 hexadecimal digits");
  return secret;
}

std::string Secret::hex() const {
  std::string digits(2 * bytes + 1, '\0');
  sodium_bin2hex(digits.data(), digits.size(), value_.data(), bytes);
  digits.pop_back();
  return digits;
}

Secret::~Secret() { sodium_memzero(value_.data(), bytes); }

}  // namespace backstay::net
