// One process of bench/write_pattern that knows nothing of Backstay: writes the pieces of a pattern
// into a file, one write() each.
//
//     pattern_writer FILE SEED PROCESS SHRINK [CHECKPOINTS WORK]
//
// Makes its bytes, says "ready", waits for a byte; then opens, writes and closes. Prints when it
// began and when the close had returned, in ns of CLOCK_MONOTONIC, and how many bytes it wrote.
// With CHECKPOINTS it does so as often, over the same file, and fills its memory WORK times before
// each, which is what it computes.
#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <numeric>
#include <vector>

#include "bench/harness/content.h"
#include "bench/harness/pattern.h"

namespace {

long long now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

bool write_pieces(const char* path, const std::vector<std::uint64_t>& sizes,
                  const std::vector<std::byte>& all) {
  const int file = ::open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (file < 0) return false;
  std::size_t at = 0;
  for (const std::uint64_t size : sizes) {
    if (::write(file, all.data() + at, size) != static_cast<ssize_t>(size)) return false;
    at += size;
  }
  return ::close(file) == 0;
}

}  // namespace

int main(int count, char** words) {
  if (count != 5 && count != 7) return 2;
  const int checkpoints = count == 7 ? std::atoi(words[5]) : 1;
  const int work = count == 7 ? std::atoi(words[6]) : 0;
  const auto sizes =
      backstay::bench::make_pattern(std::strtoull(words[2], nullptr, 10), std::atoi(words[3]),
                                    static_cast<unsigned>(std::atoi(words[4])));
  std::vector<std::byte> all(std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0}));
  backstay::bench::fill_content(all, static_cast<std::uint64_t>(std::atoi(words[3])));
  char go = 0;
  std::puts("ready");
  if (std::fflush(stdout) != 0 || ::read(STDIN_FILENO, &go, 1) != 1) return 2;
  const long long began = now_ns();
  for (int checkpoint = 0; checkpoint < checkpoints; ++checkpoint) {
    for (int pass = 0; pass < work; ++pass)
      backstay::bench::fill_content(all, static_cast<std::uint64_t>(pass));
    if (!write_pieces(words[1], sizes, all)) {
      std::perror(words[1]);
      return 1;
    }
  }
  std::printf("%lld %lld %zu\n", began, now_ns(), all.size());
  return 0;
}
