#include "store/event_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/fd.h"

namespace backstay::store {

namespace {
constexpr off_t file_bytes_max = 16 << 20;
// Behind a run's end come the levels of its last versions, behind its begin all that it did.
constexpr off_t tail_bytes = 1 << 20;

// Its last bytes, at most tail_bytes; "" where it cannot be read.
std::string tail_of(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  struct stat facts {};
  if (!fd.valid() || ::fstat(fd.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) return "";
  const off_t begin = std::max<off_t>(facts.st_size - tail_bytes, 0);
  std::string text(static_cast<std::size_t>(facts.st_size - begin), '\0');
  const ssize_t got = ::pread(fd.get(), text.data(), text.size(), begin);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return text;
}
}  // namespace

void EventLog::append(const std::string& line) const {
  const std::string path = path_ + ".jsonl";
  // A pipe in its place would block the store's thread without end; what a link names is not ours.
  constexpr int flags = O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC;
  const Fd fd(::open(path.c_str(), flags, 0600));
  struct stat facts {};
  if (!fd.valid() || ::fstat(fd.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) return;
  const std::string text = line + "\n";
  [[maybe_unused]] const auto written = ::write(fd.get(), text.data(), text.size());
  if (::fstat(fd.get(), &facts) == 0 && facts.st_size > file_bytes_max) {
    std::rename(path.c_str(), (path_ + ".1.jsonl").c_str());
  }
}

bool EventLog::last_run_finished() const {
  const std::string tail = tail_of(path_ + ".jsonl");
  std::string_view rest = tail;
  while (!rest.empty()) {
    rest.remove_suffix(1);  // the newline; the half of a line where it was cut
    const std::size_t begin = rest.rfind('\n') + 1;
    const std::string_view line = rest.substr(begin);
    rest = rest.substr(0, begin);
    if (line.find("\"run_") == std::string_view::npos) continue;
    const auto event = nlohmann::json::parse(line, nullptr, false);
    if (!event.is_object()) continue;
    const auto text = [&event](const char* key) {
      const auto found = event.find(key);
      return found != event.end() && found->is_string() ? found->get<std::string>() : "";
    };
    if (text("event") == "run_begin") return false;
    if (text("event") == "run_end") return text("how") == "finished";
  }
  return false;
}

}  // namespace backstay::store
