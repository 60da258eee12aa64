// Random operations on streams, and those that make other processes.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "random_state.h"

void do_fopen() {
  static const char* modes[] = {"w", "w+", "r", "r+", "a", "wx", "we", "q"};
  if (streams.size() > 4) return;
  const char* mode = modes[below(8)];
  const std::string name = some_name();
  FILE* stream = fopen(name.c_str(), mode);
  const int error = errno;
  say("fopen %s %s %d %s\n", name.c_str(), mode, stream == nullptr ? -1 : fileno(stream),
      stream == nullptr ? strerrorname_np(error) : "");
  if (stream != nullptr) streams.push_back(stream);
}

void do_stream() {
  if (streams.empty()) return do_fopen();
  FILE* stream = streams[below(static_cast<unsigned>(streams.size()))];
  const std::string bytes = some_bytes();
  std::vector<char> read(3000);
  switch (below(7)) {
    case 0: say("fprintf %d\n", fprintf(stream, "%u %s", below(1000), "words\n")); break;
    case 1:
    case 2: say("fwrite %zu\n", fwrite(bytes.data(), 1, bytes.size(), stream)); break;
    case 3: result("fseek", fseek(stream, some_offset(), SEEK_SET)); break;
    case 4: result("fflush", fflush(stream)); break;
    case 5: result("ftell", ftell(stream)); break;
    default: {
      const size_t got = fread(read.data(), 1, read.size(), stream);
      say("fread %zu %016lx\n", got, sum_of(read.data(), got));
      clearerr(stream);
    }
  }
  result("place", fseek(stream, 0, SEEK_CUR));
}

void do_fclose() {
  if (streams.empty()) return;
  const unsigned number = below(static_cast<unsigned>(streams.size()));
  result("fclose", fclose(streams[number]));
  streams.erase(streams.begin() + number);
}

// A child writes through descriptors that it shares, and closes some of them.
void do_fork() {
  for (FILE* stream : streams) fflush(stream);
  const std::string bytes = some_bytes();
  const int fd = some_descriptor();
  const int other = some_descriptor();
  const bool vfork_like = below(3) == 0;
  const pid_t child = vfork_like ? vfork() : fork();
  if (child == 0) {
    if (vfork_like) _exit(7);
    const bool wrote = write(fd, bytes.data(), bytes.size()) > 0;
    close(other);
    _exit(wrote ? 1 : 2);
  }
  int status = 0;
  waitpid(child, &status, 0);
  say("child %d\n", WEXITSTATUS(status));
}

namespace {

// What a process finds under the name, in a line.
void read_back(const std::string& name) {
  const int fd = open(name.c_str(), O_RDONLY);
  std::vector<char> bytes(200000);
  const ssize_t got = fd < 0 ? -1 : read(fd, bytes.data(), bytes.size());
  result("  back", got);
  if (got > 0) say("  sum %016lx\n", sum_of(bytes.data(), static_cast<size_t>(got)));
  if (fd >= 0) close(fd);
}

}  // namespace

// As most programs replace a file: a new one beside it, closed, renamed. Another process may do the
// rename, or look at the file at once.
void do_replace() {
  const std::string to = some_name();
  const std::string from = to + ".tmp";
  const std::string bytes = some_bytes();
  const unsigned who = below(6);
  for (FILE* stream : streams) fflush(stream);
  const int fd = open(from.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0640);
  say("replace %s by %d -> %d\n", to.c_str(), static_cast<int>(who), fd);
  if (fd < 0) return;
  result("  write", write(fd, bytes.data(), bytes.size()));
  result("  close", close(fd));
  if (who == 0) {
    const pid_t child = fork();
    if (child == 0) _exit(rename(from.c_str(), to.c_str()) == 0 ? 0 : errno);
    int status = 0;
    waitpid(child, &status, 0);
    say("  child %d\n", WEXITSTATUS(status));
  } else {
    result("  rename", rename(from.c_str(), to.c_str()));
  }
  if (who == 1) {
    const pid_t child = fork();
    if (child == 0) {
      read_back(to);
      _exit(0);
    }
    waitpid(child, nullptr, 0);
  }
  if (who == 2) read_back(to);
  if (who == 3) result("  again", rename(to.c_str(), from.c_str()));
  if (who == 4) result("  gone", unlink(from.c_str()));
}

void do_system() {
  for (FILE* stream : streams) fflush(stream);
  say("system %d\n", system("cat file0 file1 2>/dev/null | cksum"));
}
