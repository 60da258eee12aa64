#include "capture/image/boot/rights.h"

#include <linux/capability.h>
#include <linux/prctl.h>
#include <linux/securebits.h>

#include "capture/image/boot/files.h"

namespace backstay::image::rights {

namespace {

constexpr uint64_t ids_count = 8;
constexpr uint64_t words = sizeof(Rights) / 8;
// The word of Rights at which each begins.
constexpr const char* lines_of_status[] = {
    "Uid:",  nullptr,   nullptr,   nullptr,   "Gid:",    nullptr,   nullptr,
    nullptr, "CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:", "NoNewPrivs:"};

uint64_t* words_of(Rights& rights) { return reinterpret_cast<uint64_t*>(&rights); }
const uint64_t* words_of(const Rights& rights) {
  return reinterpret_cast<const uint64_t*>(&rights);
}

const Tables* image = nullptr;  // of a restart
Rights here;                    // of this process, as it was started
bool may_change_ids = true;

uint64_t read_number(const char*& at, bool hex) {
  while (*at == ' ' || *at == '\t') ++at;
  return hex ? read_hex(at) : read_decimal(at);
}

Rights of_status(const Text& path) {
  Rights found{};
  Lines lines(path.c_str());
  while (const char* line = lines.next()) read_line(line, found);
  return found;
}

// Those of the first thread stand for all that have the same.
Rights noted(uint64_t thread) {
  Rights found{};
  const char* text = find_note(*image, "rights", thread);
  if (text == nullptr) text = find_note(*image, "rights", image->threads[0].tid);
  if (text != nullptr) read_words(text, words_of(found), words);
  return found;
}

bool same_ids(const Rights& a, const Rights& b) { return memcmp(&a, &b, ids_count * 8) == 0; }

bool has(uint64_t set, uint64_t one) { return (set >> one & 1) != 0; }

void take_groups(uint64_t thread) {
  static uint32_t list[65536];
  static uint32_t busy = 0;
  const char* own = find_note(*image, "groups", thread);
  const char* at = own != nullptr ? own : find_note(*image, "groups");
  while (__atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE) != 0) system_call(__NR_sched_yield);
  long count = 0;
  for (; at != nullptr && count < 65536; ++count) {
    while (*at == ' ') ++at;
    if (*at < '0' || *at > '9') break;
    list[count] = static_cast<uint32_t>(read_decimal(at));
  }
  system_call(__NR_setgroups, count, address_of(list));
  __atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
}

long change_ids(const Rights& to) {
  const auto user = [&](int which) { return static_cast<long>(to.user[which]); };
  const auto group = [&](int which) { return static_cast<long>(to.group[which]); };
  const long failed = system_call(__NR_setresgid, group(0), group(1), group(2));
  system_call(__NR_setfsgid, group(3));
  const long wrong = system_call(__NR_setresuid, user(0), user(1), user(2));
  system_call(__NR_setfsuid, user(3));
  const bool same = system_call(__NR_setfsuid, -1) == user(3) &&  // -1 changes nothing
                    system_call(__NR_setfsgid, -1) == group(3);
  return failed | wrong | (same ? 0 : -1);
}

long set_capabilities(uint64_t effective, uint64_t permitted, uint64_t inheritable) {
  const uint32_t header[2] = {_LINUX_CAPABILITY_VERSION_3, 0};
  uint32_t sets[6];
  for (int i = 0; i < 2; ++i) {
    sets[3 * i] = static_cast<uint32_t>(effective >> 32 * i);
    sets[3 * i + 1] = static_cast<uint32_t>(permitted >> 32 * i);
    sets[3 * i + 2] = static_cast<uint32_t>(inheritable >> 32 * i);
  }
  return system_call(__NR_capset, address_of(header), address_of(sets));
}

// A process that may not change its bounding set keeps that of its environment.
void take_bounds(const Rights& to) {
  system_call(__NR_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL);
  for (long one = 0; one < 64; ++one) {
    const auto number = static_cast<uint64_t>(one);
    if (has(to.ambient, number)) system_call(__NR_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, one);
    if (!has(to.bounding, number)) system_call(__NR_prctl, PR_CAPBSET_DROP, one);
  }
  system_call(__NR_prctl, PR_SET_KEEPCAPS, (to.securebits & SECBIT_KEEP_CAPS) != 0 ? 1 : 0);
  system_call(__NR_prctl, PR_SET_SECUREBITS, static_cast<long>(to.securebits));
}

}  // namespace

void read_line(const char* line, Rights& to) {
  for (uint64_t i = 0; i < sizeof lines_of_status / sizeof lines_of_status[0]; ++i) {
    const char* name = lines_of_status[i];
    if (name == nullptr || !begins_with(line, name)) continue;
    const char* at = line + strlen(name);
    const uint64_t end = i < ids_count ? i + 4 : i + 1;
    for (uint64_t word = i; word < end; ++word)
      words_of(to)[word] = read_number(at, i >= ids_count);
  }
}

void read_own(Rights& to) {
  to.securebits = static_cast<uint64_t>(system_call(__NR_prctl, PR_GET_SECUREBITS));
  to.timer_slack = static_cast<uint64_t>(system_call(__NR_prctl, PR_GET_TIMERSLACK));
  system_call(__NR_prctl, PR_GET_PDEATHSIG, address_of(&to.death_signal));
  to.dumpable = static_cast<uint64_t>(system_call(__NR_prctl, PR_GET_DUMPABLE));
}

void add_note(uint64_t thread, const Rights& its, NotesWriter& notes) {
  notes.add("rights", thread, words_of(its), words);
}

void add_groups(const char* line, uint64_t thread, NotesWriter& notes) {
  constexpr const char* name = "Groups:\t";
  if (!begins_with(line, name)) return;
  const char* text = line + strlen(name);
  const char* first = thread == 0 ? nullptr : find_note(notes.tables(), "groups");
  if (first != nullptr && begins_with(first, text) && first[strlen(text)] == '\n') return;
  notes.begin("groups", thread);
  notes.add(text);
  notes.add("\n");
}

void add_others(NotesWriter& notes) {
  const auto self = static_cast<uint64_t>(sys_thread_id());
  Rights own{};
  Lines lines("/proc/thread-self/status");
  while (const char* line = lines.next()) {
    read_line(line, own);
    add_groups(line, self, notes);
  }
  read_own(own);
  add_note(self, own, notes);
  notes.add("control", 0, &self, 1);
  const Rights parent = of_status(Text() << "/proc/" << system_call(__NR_getppid) << "/status");
  notes.add("parent", 0, words_of(parent), words);
}

void check(const Tables& tables, Trouble& trouble, Text& missing) {
  const char* of_parent = find_note(tables, "parent");
  if (of_parent == nullptr) return;  // an older Backstay wrote it
  image = &tables;
  Rights parent{};
  read_words(of_parent, words_of(parent), words);
  here = of_status(Text() << "/proc/thread-self/status");
  const bool may = has(here.effective, CAP_SETUID) && has(here.effective, CAP_SETGID);
  const bool is_root = here.user[0] == 0 || here.user[1] == 0 || here.user[2] == 0;
  for (const Thread& thread : tables.threads) {
    const Rights its = noted(thread.tid);
    const bool same = same_ids(its, here);
    const bool gave_up = !same && !same_ids(its, parent);
    may_change_ids = may_change_ids && (same || may);
    if (may ? !gave_up || find_note(tables, "mpi") == nullptr : same || (!is_root && !gave_up))
      continue;
    trouble << "the program had given up rights and ran as user " << its.user[0]
            << (may ? ": the threads of its MPI would have them again"
                    : ", which only root can make it again: give the command as root");
    return;
  }
  if (!may_change_ids) missing << "user and group ids";
}

void give(long descriptor) {
  if (image == nullptr || !may_change_ids) return;
  const Rights its = noted(image->threads[0].tid);
  system_call(__NR_fchown, descriptor, static_cast<long>(its.user[3]),
              static_cast<long>(its.group[3]));
}

void take(uint64_t thread) {
  if (image == nullptr) return;
  const Rights to = noted(thread);
  const uint64_t inheritable = to.inheritable & (here.inheritable | here.permitted);
  const uint64_t permitted = to.permitted & here.permitted;
  system_call(__NR_prctl, PR_SET_KEEPCAPS, 1);  // else they would go with the ids
  if (may_change_ids) take_groups(thread);
  long failed = may_change_ids ? change_ids(to) : 0;
  set_capabilities(here.permitted, here.permitted, inheritable);
  take_bounds(to);
  failed |= set_capabilities(to.effective & permitted, permitted, inheritable);
  if (system_call(__NR_prctl, PR_GET_SECUREBITS) != static_cast<long>(to.securebits)) failed = -1;
  if (to.no_new_privs != 0) failed |= system_call(__NR_prctl, PR_SET_NO_NEW_PRIVS, 1);
  if (failed != 0) {
    give_up(Text() << "cannot restart: a thread would have more rights than it had", 78);
  }
  system_call(__NR_prctl, PR_SET_TIMERSLACK, static_cast<long>(to.timer_slack));
  if (thread != image->identity.pid) return;
  system_call(__NR_prctl, PR_SET_PDEATHSIG, static_cast<long>(to.death_signal));
}

void take_as_control() {
  if (image == nullptr) return;
  uint64_t thread = 0;
  read_words(find_note(*image, "control"), &thread, 1);
  may_change_ids = may_change_ids && has(here.effective, CAP_SETUID);
  take(thread);
  become_dumpable();
  image = nullptr;
  arena::end();
}

void become_dumpable() {
  if (image == nullptr) return;
  const bool was = noted(image->threads[0].tid).dumpable == 1;
  system_call(__NR_prctl, PR_SET_DUMPABLE, was ? 1 : 0);
}

}  // namespace backstay::image::rights
