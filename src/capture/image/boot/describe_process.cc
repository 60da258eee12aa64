#include <cpuid.h>
#include <linux/utsname.h>

#include "capture/image/boot/describe.h"
#include "capture/image/boot/files.h"
#include "capture/image/boot/process.h"
#include "capture/image/boot/rights.h"

namespace backstay::image {

namespace {

void describe_machine(Tables& tables) {
  new_utsname names{};
  system_call(__NR_uname, address_of(&names));
  tables.identity.kernel = tables.add_text(names.release);
  tables.identity.host = tables.add_text(names.nodename);
  read_features(tables.identity.features, &tables.identity.xfeatures,
                &tables.identity.xstate_bytes);
}

void describe_heap(Identity& identity) {
  identity.brk_end = static_cast<uint64_t>(system_call(__NR_brk, 0));
}

uint64_t value_of(const char* line, const char* name, bool hex, uint64_t otherwise) {
  if (!begins_with(line, name)) return otherwise;
  const char* at = line + strlen(name);
  while (*at == ' ' || *at == '\t') ++at;
  return hex ? read_hex(at) : read_decimal(at);
}

uint32_t read_octal(const char* at) {
  uint32_t number = 0;
  while (*at >= '0' && *at <= '7') number = number * 8 + static_cast<uint32_t>(*at++ - '0');
  return number;
}

}  // namespace

void read_features(uint32_t* features, uint64_t* xfeatures, uint32_t* xstate_bytes) {
  uint32_t a = 0;
  uint32_t b = 0;
  __cpuid_count(1, 0, a, b, features[0], features[1]);
  __cpuid_count(7, 0, a, features[2], features[3], features[4]);
  __cpuid_count(7, 1, features[5], b, a, a);
  __cpuid_count(0x80000001, 0, a, b, features[6], features[7]);
  features[0] &= ~(1U << 31 | 1U << 24);  // hypervisor, deadline timer: nothing a program uses
  features[3] &= ~(1U << 4);              // protection keys switched on by the kernel
  uint32_t high = 0;
  uint32_t low = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  *xfeatures = static_cast<uint64_t>(high) << 32 | low;
  __cpuid_count(0xd, 0, a, *xstate_bytes, low, high);
}

void describe_process(const Stopped&, Tables& tables, Trouble& trouble) {
  Identity& identity = tables.identity;
  if (process.rseq_offset_at != 0 && process.rseq_bytes_at != 0) {
    process.layout.rseq_offset = *reinterpret_cast<const int64_t*>(process.rseq_offset_at);
    process.layout.rseq_bytes = *reinterpret_cast<const uint32_t*>(process.rseq_bytes_at);
  }
  identity = process.layout;
  identity.time_ns = now_ns(0);
  describe_heap(identity);
  describe_machine(tables);
  identity.pid = static_cast<uint32_t>(system_call(__NR_getpid));
  identity.uid = static_cast<uint32_t>(system_call(__NR_getuid));
  identity.gid = static_cast<uint32_t>(system_call(__NR_getgid));
  Lines lines("/proc/self/status");
  while (const char* line = lines.next()) {
    if (begins_with(line, "Umask:\t")) identity.umask = read_octal(line + 7);
    identity.pending = value_of(line, "ShdPnd:", true, identity.pending);
  }
  char path[4096] = {};
  const long bytes = system_call(__NR_getcwd, address_of(path), sizeof path);
  if (bytes <= 0 || path[0] != '/') {
    trouble << "the working directory was removed";
    return;
  }
  identity.cwd = tables.add_text(path);
  identity.program = tables.add_text(process.program);
  identity.interpreter = tables.add_text(process.interpreter);
  identity.notes = 0;
}

void describe_threads(const Stopped& stopped, Tables& tables, NotesWriter& notes) {
  const auto leader = static_cast<uint32_t>(system_call(__NR_getpid));
  const rights::Rights& first = stopped.threads[0].rights;
  for (uint64_t i = 0; i < stopped.count; ++i) {
    Parked& parked = stopped.threads[i];
    Thread& out = *tables.threads.add();
    out.tid = parked.tid;
    out.flags = parked.tid == leader ? thread_leader : 0;
    out.frame = static_cast<uint64_t>(address_of(parked.context));
    out.fs = parked.fs;
    out.gs = parked.gs;
    out.clear_tid = parked.clear_tid;
    out.robust_list = parked.robust_list;
    out.robust_bytes = parked.robust_bytes;
    out.mask = parked.context->mask;
    memcpy(out.registers, parked.context->registers, sizeof out.registers);
    Text path;
    path << "/proc/self/task/" << uint64_t{parked.tid} << "/status";
    Lines lines(path.c_str());
    while (const char* line = lines.next()) {
      if (begins_with(line, "Name:\t")) copy_text(out.name, sizeof out.name, line + 6);
      out.pending = value_of(line, "SigPnd:", true, out.pending);
      rights::read_line(line, parked.rights);
      rights::add_groups(line, i == 0 ? 0 : parked.tid, notes);
    }
    const bool same = i > 0 && memcmp(&parked.rights, &first, sizeof first) == 0;
    if (!same) rights::add_note(parked.tid, parked.rights, notes);
  }
}

}  // namespace backstay::image
