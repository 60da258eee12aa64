#include "base/limits.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>

#include <array>
#include <string_view>

namespace backstay {

namespace {

struct Limit {
  __rlimit_resource resource;
  std::string_view where_it_stays;  // empty: no harm, or an error reports it
};

// Stack and core dump are left alone: they end no process.
constexpr std::array<Limit, 8> limits = {{
    {RLIMIT_FSIZE,
     "no file can grow over {} bytes (ulimit -f), neither the pool nor what holds a version"},
    {RLIMIT_CPU, "the system ends this agent after {} s of processor time (ulimit -t)"},
    {RLIMIT_AS, "the address space cannot grow over {} bytes (ulimit -v)"},
    {RLIMIT_DATA, "private memory cannot grow over {} bytes (ulimit -d)"},
    {RLIMIT_NOFILE, ""},
    {RLIMIT_MEMLOCK, ""},
    {RLIMIT_NPROC, ""},
    {RLIMIT_RTTIME, ""},
}};

}  // namespace

std::vector<std::string> lift_limits() {
  ::signal(SIGXFSZ, SIG_IGN);
  std::vector<std::string> left;
  for (const Limit& limit : limits) {
    rlimit values{};
    if (::getrlimit(limit.resource, &values) != 0) continue;
    const rlimit raised{values.rlim_max, values.rlim_max};
    if (::setrlimit(limit.resource, &raised) == 0) values = raised;
    if (values.rlim_cur == RLIM_INFINITY || limit.where_it_stays.empty()) continue;
    left.push_back(fmt::format(fmt::runtime(limit.where_it_stays), values.rlim_cur));
  }
  return left;
}

void stand_back(int nice) {
  const int now = ::getpriority(PRIO_PROCESS, 0);
  if (nice > now) ::setpriority(PRIO_PROCESS, 0, nice);  // cannot fail: lowering is always allowed
}

}  // namespace backstay
