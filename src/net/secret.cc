#include "net/secret.h"

#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/check.h"
#include "base/fd.h"

namespace backstay::net {

namespace {

constexpr std::size_t text_bytes = 2 * Secret::bytes + 1;  // with the newline

Status check_file(int file, const std::string& path) {
  struct stat facts {};
  if (::fstat(file, &facts) != 0) return errno_error("look at " + path, errno);
  if (!S_ISREG(facts.st_mode)) return Error(Code::format, path + " is not a plain file");
  if (facts.st_uid != ::geteuid())
    return Error(Code::permission, "the secret " + path + " belongs to another user (" +
                                       std::to_string(facts.st_uid) +
                                       "): remove it, or name another");
  if ((facts.st_mode & 077) != 0)
    return Error(Code::permission, "others may read or write the secret " + path +
                                       ": make a new one (rm " + path + ") or run chmod 600 " +
                                       path);
  return {};
}

Result<std::string> read_text(int file, const std::string& path) {
  std::string text(text_bytes + 1, '\0');  // one more, to see that nothing follows
  std::size_t at = 0;
  while (at < text.size()) {
    const ssize_t count = ::read(file, text.data() + at, text.size() - at);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_error("read " + path, errno);
    if (count == 0) break;
    at += static_cast<std::size_t>(count);
  }
  text.resize(at);
  return text;
}

Status write_text(const std::string& path, const std::string& text) {
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.valid()) return errno_error("make " + path, errno);
  const ssize_t count = ::write(file.get(), text.data(), text.size());
  if (count < 0) return errno_error("write " + path, errno);
  if (count != static_cast<ssize_t>(text.size())) return errno_error("write " + path, ENOSPC);
  if (::fsync(file.get()) != 0) return errno_error("sync " + path, errno);
  return {};
}

std::string to_hex(const std::uint8_t* bytes, std::size_t count) {
  std::string text(2 * count + 1, '\0');
  sodium_bin2hex(text.data(), text.size(), bytes, count);
  text.pop_back();
  return text;
}

// Written whole under a name that nobody else uses, then given its own, which must not exist.
Status create_secret(const std::string& path) {
  std::uint8_t mark[8];
  fill_random(mark, sizeof mark);
  const std::string draft = path + "." + to_hex(mark, sizeof mark);
  Status status = write_text(draft, to_hex(Secret::random().data(), Secret::bytes) + "\n");
  if (status.ok() && ::link(draft.c_str(), path.c_str()) != 0 && errno != EEXIST)
    status = errno_error("make " + path, errno);
  ::unlink(draft.c_str());
  return status;
}

}  // namespace

void fill_random(void* to, std::size_t bytes) {
  static const int ready = sodium_init();  // once, whoever comes first
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

Secret::~Secret() { sodium_memzero(value_.data(), bytes); }

Result<Secret> load_secret(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file.valid()) return errno_error("open the secret " + path, errno);
  BACKSTAY_TRY(check_file(file.get(), path));
  BACKSTAY_ASSIGN(std::string text, read_text(file.get(), path));
  const bool one_line = text.size() == text_bytes && text.back() == '\n';
  if (one_line) text.pop_back();
  auto secret = Secret::from_hex(text);
  sodium_memzero(text.data(), text.size());
  if (!one_line || !secret.ok())
    return Error(Code::format, path + " is not a secret of Backstay (64 hexadecimal digits)");
  return secret;
}

Result<Secret> load_or_create_secret(const std::string& path) {
  Result<Secret> secret = load_secret(path);
  if (secret.ok() || secret.error().code() != Code::not_found) return secret;
  BACKSTAY_TRY(create_secret(path));
  return load_secret(path);
}

}  // namespace backstay::net
