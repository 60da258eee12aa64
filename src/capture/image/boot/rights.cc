#include "capture/image/boot/rights.h"

#include <linux/capability.h>
#include <linux/prctl.h>
#include <linux/securebits.h>

#include "capture/image/boot/files.h"

namespace backstay::image::rights {

namespace {

constexpr const char* lines_of_status[] = {
    "Uid",    "Gid",    "Groups", "CapInh",     "CapPrm",
    "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Cpus_allowed_list"};
constexpr const char* lines_of_parent[] = {"Uid", "Cpus_allowed_list"};
constexpr const char* control = "control";
constexpr uint64_t usual_slack = 50000;
constexpr uint64_t usual_death = 9;  // the companion's

const Tables* image = nullptr;  // of a restart
bool may_change_ids = true;

const char* wanted(const char* key, uint64_t thread) {
  const char* own = find_note(*image, key, thread);
  const char* found = own != nullptr ? own : find_note(*image, key);
  return found != nullptr ? found : "";
}

uint64_t number(const char* key, uint64_t thread, uint64_t otherwise) {
  const char* text = wanted(key, thread);
  return *text == 0 ? otherwise : read_decimal(text);
}

uint64_t set_of(const char* key, uint64_t thread) {
  const char* text = wanted(key, thread);
  return read_hex(text);
}

uint64_t read_list(const char* text, uint32_t* list, uint64_t room) {
  uint64_t count = 0;
  for (; count < room; ++count) {
    while (*text == ' ' || *text == '\t') ++text;
    if (*text < '0' || *text > '9') break;
    list[count] = static_cast<uint32_t>(read_decimal(text));
  }
  return count;
}

// As capget and capset take them.
struct Capabilities {
  uint32_t header[2] = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct {
    uint32_t effective, permitted, inheritable;
  } half[2] = {};

  Capabilities() { system_call(__NR_capget, address_of(header), address_of(half)); }
  void set() const { system_call(__NR_capset, address_of(header), address_of(half)); }
  bool may(uint64_t one) const { return (half[one / 32].effective >> one % 32 & 1) != 0; }
};

// The kernel takes permitted capabilities away with the ids, where it is not told to keep them.
void take_ids(uint64_t thread) {
  static uint32_t list[65536];
  static uint32_t busy = 0;
  uint32_t user[4] = {};
  uint32_t group[4] = {};
  read_list(wanted("Uid", thread), user, 4);
  read_list(wanted("Gid", thread), group, 4);
  while (__atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE) != 0) system_call(__NR_sched_yield);
  const uint64_t count = read_list(wanted("Groups", thread), list, sizeof list / sizeof list[0]);
  system_call(__NR_setgroups, static_cast<long>(count), address_of(list));
  __atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
  system_call(__NR_setresgid, group[0], group[1], group[2]);
  system_call(__NR_setfsgid, group[3]);
  system_call(__NR_setresuid, user[0], user[1], user[2]);
  system_call(__NR_setfsuid, user[3]);
}

// A process that may not change its bounding set keeps that of its environment.
void take_bounds(uint64_t thread) {
  const uint64_t ambient = set_of("CapAmb", thread);
  const uint64_t bounding = set_of("CapBnd", thread);
  system_call(__NR_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL);
  for (long one = 0; one < 64; ++one) {
    if ((ambient >> one & 1) != 0) {
      system_call(__NR_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, one);
    }
    if ((bounding >> one & 1) == 0) system_call(__NR_prctl, PR_CAPBSET_DROP, one);
  }
  const auto bits = static_cast<long>(number("securebits", thread, 0));
  system_call(__NR_prctl, PR_SET_KEEPCAPS, (bits & SECBIT_KEEP_CAPS) != 0 ? 1 : 0);
  system_call(__NR_prctl, PR_SET_SECUREBITS, bits);
}

void take_capabilities(uint64_t thread) {
  Capabilities now;
  for (auto& half : now.half) {
    const int shift = &half == now.half ? 0 : 32;
    const auto inheritable = static_cast<uint32_t>(set_of("CapInh", thread) >> shift);
    half.effective = half.permitted;
    half.inheritable = inheritable & (half.inheritable | half.permitted);
  }
  now.set();
  take_bounds(thread);
  for (auto& half : now.half) {
    const int shift = &half == now.half ? 0 : 32;
    half.permitted &= static_cast<uint32_t>(set_of("CapPrm", thread) >> shift);
    half.effective &= half.permitted & static_cast<uint32_t>(set_of("CapEff", thread) >> shift);
  }
  now.set();
}

// By no file: the limit of descriptors may have been reached.
bool has_no_more(uint64_t thread) {
  const Capabilities now;
  for (const auto& half : now.half) {
    const int shift = &half == now.half ? 0 : 32;
    const auto more = [&](const char* key, uint32_t has) {
      return (has & ~static_cast<uint32_t>(set_of(key, thread) >> shift)) != 0;
    };
    if (more("CapPrm", half.permitted) || more("CapEff", half.effective)) return false;
    if (more("CapInh", half.inheritable)) return false;
  }
  uint32_t before[8] = {};
  uint32_t ids[8] = {};
  read_list(wanted("Uid", thread), before, 4);
  read_list(wanted("Gid", thread), before + 4, 4);
  system_call(__NR_getresuid, address_of(ids), address_of(ids + 1), address_of(ids + 2));
  system_call(__NR_getresgid, address_of(ids + 4), address_of(ids + 5), address_of(ids + 6));
  ids[3] = static_cast<uint32_t>(system_call(__NR_setfsuid, -1));  // changes nothing
  ids[7] = static_cast<uint32_t>(system_call(__NR_setfsgid, -1));
  return !may_change_ids || memcmp(ids, before, sizeof ids) == 0;
}

}  // namespace

void add_line(const char* line, uint64_t thread, NotesWriter& notes) {
  for (const char* name : lines_of_status) {
    const char* text = text_of_status(line, name);
    if (text == nullptr) continue;
    const char* first = thread == 0 ? nullptr : find_note(notes.tables(), name);
    if (first == nullptr || !same_line(first, text)) notes.add(name, thread, text);
  }
}

void add_notes(const Stopped& stopped, NotesWriter& notes) {
  const auto add = [&](const char* key, uint64_t thread, uint64_t value, uint64_t usual) {
    if (value != usual) notes.add(key, thread, (Text() << value).c_str());
  };
  for (const char* name : lines_of_parent) {
    const Text text = status_of(system_call(__NR_getppid), name);
    notes.add((Text() << "companion." << name).c_str(), 0, text.c_str());
  }
  const Parked& first = stopped.threads[0];
  const auto self = static_cast<uint64_t>(sys_thread_id());
  Lines lines("/proc/thread-self/status");
  while (const char* line = lines.next()) add_line(line, self, notes);
  add("securebits", self, static_cast<uint64_t>(system_call(__NR_prctl, PR_GET_SECUREBITS)),
      first.securebits);
  add(control, 0, self, 0);
  for (uint64_t i = 0; i < stopped.count; ++i) {
    const Parked& one = stopped.threads[i];
    add("securebits", i == 0 ? 0 : one.tid, one.securebits, i == 0 ? 0 : first.securebits);
    add("timer_slack", i == 0 ? 0 : one.tid, one.slack, i == 0 ? usual_slack : first.slack);
  }
  add("parent_death_signal", 0, first.death_signal, usual_death);
  add("dumpable", 0, static_cast<uint64_t>(system_call(__NR_prctl, PR_GET_DUMPABLE)), 1);
}

void check(const Tables& tables, Trouble& trouble, Text& missing) {
  if (find_note(tables, "Uid") == nullptr) return;  // an older Backstay wrote it
  image = &tables;
  const Capabilities now;
  const bool may = now.may(CAP_SETUID) && now.may(CAP_SETGID);
  const bool has_mpi = find_note(tables, "mpi") != nullptr;
  const Text user = status_of(sys_thread_id(), "Uid");
  const Text group = status_of(sys_thread_id(), "Gid");
  uint32_t ids[4] = {};
  read_list(user.c_str(), ids, 4);
  const bool is_root = ids[0] == 0 || ids[1] == 0 || ids[2] == 0;
  for (const Thread& thread : tables.threads) {
    const char* before = wanted("Uid", thread.tid);
    const bool same =
        same_line(before, user.c_str()) && same_line(wanted("Gid", thread.tid), group.c_str());
    const bool gave_up = !same && !same_line(before, wanted("companion.Uid", 0));
    may_change_ids = may_change_ids && (same || may);
    if (may ? !(gave_up && has_mpi) : same || (!is_root && !gave_up)) continue;
    trouble << "the program had given up rights and ran as user " << read_decimal(before)
            << (may ? ": the threads of its MPI would have them again"
                    : ", which only root can make it again: give the command as root");
    return;
  }
  if (!may_change_ids) missing << "user and group ids";
}

void give(long descriptor) {
  if (image == nullptr || !may_change_ids) return;
  uint32_t ids[8] = {};
  read_list(wanted("Uid", 0), ids, 4);
  read_list(wanted("Gid", 0), ids + 4, 4);
  system_call(__NR_fchown, descriptor, ids[3], ids[7]);
}

void take(uint64_t thread) {
  if (image == nullptr) return;
  system_call(__NR_prctl, PR_SET_KEEPCAPS, 1);
  if (may_change_ids) take_ids(thread);
  take_capabilities(thread);
  if (number("NoNewPrivs", thread, 0) != 0) system_call(__NR_prctl, PR_SET_NO_NEW_PRIVS, 1);
  if (!has_no_more(thread)) {
    give_up(Text() << "cannot restart: a thread would have more rights than it had", 78);
  }
  const uint64_t slack = number("timer_slack", thread, usual_slack);
  if (slack != usual_slack) system_call(__NR_prctl, PR_SET_TIMERSLACK, static_cast<long>(slack));
  if (thread != image->identity.pid) return;
  const uint64_t signal = number("parent_death_signal", 0, usual_death);
  system_call(__NR_prctl, PR_SET_PDEATHSIG, static_cast<long>(signal));
}

void take_as_control() {
  if (image == nullptr) return;
  const uint64_t thread = number(control, 0, image->identity.pid);
  may_change_ids = may_change_ids && Capabilities().may(CAP_SETUID);
  take(thread);
  become_dumpable();
  image = nullptr;
  arena::end();
}

void become_dumpable() {
  if (image == nullptr) return;
  system_call(__NR_prctl, PR_SET_DUMPABLE, number("dumpable", 0, 1) == 1 ? 1 : 0);
}

}  // namespace backstay::image::rights
