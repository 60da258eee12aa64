#include "random_state.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <random>

namespace {

std::mt19937_64 random_bits;

}  // namespace

std::vector<int> descriptors;
std::vector<FILE*> streams;
long captured = 0;

void seed_random(std::uint64_t seed) { random_bits.seed(seed); }

unsigned below(unsigned end) { return static_cast<unsigned>(random_bits() % end); }

void say(const char* format, ...) {
  char line[1024];
  va_list list;
  va_start(list, format);
  const int bytes = std::vsnprintf(line, sizeof(line), format, list);
  va_end(list);
  if (write(STDOUT_FILENO, line, static_cast<size_t>(bytes)) != bytes) std::abort();
}

void result(const char* what, long value) {
  say("%s = %ld %s\n", what, value, value < 0 ? strerrorname_np(errno) : "");
}

std::uint64_t sum_of(const char* bytes, size_t count) {
  std::uint64_t sum = 1469598103934665603ULL;
  for (size_t at = 0; at < count; ++at) {
    sum = (sum ^ static_cast<unsigned char>(bytes[at])) * 1099511628211ULL;
  }
  return sum;
}

std::string some_name() {
  const unsigned number = below(13);
  if (number == 12) return "link";  // a symbolic link to file 0
  return (number < 7 ? "file" : "folder/file") + std::to_string(number);
}

int some_descriptor() {
  if (descriptors.empty() || below(30) == 0) return static_cast<int>(3 + below(20));
  return descriptors[below(static_cast<unsigned>(descriptors.size()))];
}

std::string some_bytes() {
  static const unsigned lengths[] = {1, 7, 100, 4095, 4096, 4097, 20000, 70000};
  std::string bytes(below(4) == 0 ? lengths[below(8)] : 1 + below(3000), '\0');
  const auto first = static_cast<char>(random_bits());
  for (size_t at = 0; at < bytes.size(); ++at) bytes[at] = static_cast<char>(first + at / 3);
  return bytes;
}

off_t some_offset() { return below(3) == 0 ? below(100000) : below(9000); }

namespace {

void count_captured(int fd) {
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  char target[64] = "";
  if (readlink(link.c_str(), target, sizeof(target) - 1) > 0 &&
      std::strncmp(target, "/memfd:", 7) == 0) {
    ++captured;
  }
}

}  // namespace

void opened(int fd) {
  if (fd < 0) return;
  descriptors.push_back(fd);
  count_captured(fd);
}
