// Threads write captured files while another thread starts processes, which makes the files real
// under them. Every byte must be there, in its order.
//
//     threads FOLDER ROUNDS
//
// Each round writes new files: one thread by write, one by pwrite, one through a stream.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int pieces = 4000;
constexpr int piece_bytes = 600;

std::string piece(int number) {
  std::string text = std::to_string(number) + " ";
  text.resize(piece_bytes, static_cast<char>('a' + number % 26));
  return text;
}

void require(bool right, const std::string& what) {
  if (right) return;
  std::fprintf(stderr, "%s: %s\n", what.c_str(), std::strerror(errno));
  std::_Exit(1);
}

void by_write(const std::string& name) {
  const int fd = open(name.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  for (int number = 0; number < pieces; ++number) {
    require(write(fd, piece(number).data(), piece_bytes) == piece_bytes, name + ": write");
  }
  require(close(fd) == 0, name + ": close");
}

void by_pwrite(const std::string& name) {
  const int fd = open(name.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0644);
  for (int number = pieces - 1; number >= 0; --number) {
    const off_t at = static_cast<off_t>(number) * piece_bytes;
    require(pwrite(fd, piece(number).data(), piece_bytes, at) == piece_bytes, name + ": pwrite");
  }
  require(close(fd) == 0, name + ": close");
}

void by_stream(const std::string& name) {
  FILE* stream = std::fopen(name.c_str(), "w");
  require(stream != nullptr, name + ": fopen");
  for (int number = 0; number < pieces; ++number) {
    require(std::fprintf(stream, "%s", piece(number).c_str()) == piece_bytes, name + ": fprintf");
  }
  require(std::fclose(stream) == 0, name + ": fclose");
}

void check(const std::string& name) {
  FILE* stream = std::fopen(name.c_str(), "r");
  require(stream != nullptr, name + ": read");
  std::string text(piece_bytes, '\0');
  for (int number = 0; number < pieces; ++number) {
    require(std::fread(text.data(), 1, piece_bytes, stream) == piece_bytes, name + ": short");
    require(text == piece(number), name + ": piece " + std::to_string(number));
  }
  require(std::fgetc(stream) == EOF, name + ": long");
  std::fclose(stream);
}

void start_process(int round) {
  if (round % 3 == 2) {
    require(system("true") == 0, "system");
    return;
  }
  const pid_t child = round % 3 == 0 ? fork() : vfork();
  if (child == 0) _exit(0);
  require(waitpid(child, nullptr, 0) == child, "child");
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3 || chdir(arguments[1]) != 0) return 2;
  for (int round = 0; round < std::atoi(arguments[2]); ++round) {
    std::atomic<int> writing = 3;
    std::vector<std::thread> threads;
    const auto begin = [&](void (*body)(const std::string&), const char* name) {
      threads.emplace_back([&writing, body, name] {
        body(name);
        --writing;
      });
    };
    begin(by_write, "write");
    begin(by_pwrite, "pwrite");
    begin(by_stream, "stream");
    while (writing > 0) start_process(round);
    for (std::thread& thread : threads) thread.join();
    for (const char* name : {"write", "pwrite", "stream"}) check(name);
  }
  return 0;
}
