#include "capture/companion/inherited.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

namespace backstay::image {
namespace {

int number_of(const char* text) {
  int number = -1;
  if (text != nullptr) std::from_chars(text, text + std::strlen(text), number);
  return number;
}

std::vector<int> open_descriptors() {
  std::vector<int> numbers;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", none))
    numbers.push_back(number_of(entry.path().filename().c_str()));
  return numbers;
}

}  // namespace

void keep_from_program() {
  const int of_mpi = number_of(std::getenv("PMI_FD"));
  for (const int number : open_descriptors()) {
    struct stat status {};
    if (number <= STDERR_FILENO || number == of_mpi || ::fstat(number, &status) != 0) continue;
    if (S_ISSOCK(status.st_mode) || S_ISFIFO(status.st_mode)) ::fcntl(number, F_SETFD, FD_CLOEXEC);
  }
}

}  // namespace backstay::image
