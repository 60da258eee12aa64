#include "capture/image/boot/attributes.h"

#include "capture/image/boot/files.h"

namespace backstay::image::attributes {

namespace {

struct Value {
  long first = 0, second = 0;
  bool operator==(const Value& other) const {
    return first == other.first && second == other.second;
  }
};

enum class Kind { limit, thread };

struct Line {
  char text[1024];
};

struct Attribute {
  Kind kind;
  const char* name;
  bool (*get)(const Attribute& one, long id, Value& value);  // `id` may be the parent's
  bool (*set)(const Attribute& one, long id, Value value);   // false: not, or something nearest
  long number = 0;
};

long parent() { return system_call(__NR_getppid); }

long read_signed(const char*& at) {
  if (*at == ' ') ++at;
  const bool negative = *at == '-';
  if (negative) ++at;
  const long number = static_cast<long>(read_decimal(at));
  return negative ? -number : number;
}

// The kernel refuses the limits of a process with other ids. A thread may always ask for its own.
bool get_limit(const Attribute& one, long id, Value& value) {
  const long of = id == parent() ? id : 0;
  return system_call(__NR_prlimit64, of, one.number, 0, address_of(&value)) == 0;
}

bool is_below(long limit, long other) {
  return static_cast<uint64_t>(limit) < static_cast<uint64_t>(other);
}

bool change_limit(const Attribute& one, Value value) {
  return system_call(__NR_prlimit64, 0, one.number, address_of(&value), 0) == 0;
}

bool raise_limit(const Attribute& one, Value value) {
  Value now;
  get_limit(one, 0, now);
  return !is_below(now.second, value.second) || change_limit(one, {now.first, value.second});
}

bool set_limit(const Attribute& one, long, Value value) {
  Value now;
  get_limit(one, 0, now);
  if (is_below(now.second, value.second)) value.second = now.second;
  if (is_below(value.second, value.first)) value.first = value.second;
  return change_limit(one, value);
}

bool get_policy(const Attribute&, long id, Value& value) {
  int32_t priority = 0;
  value.first = system_call(__NR_sched_getscheduler, id);
  system_call(__NR_sched_getparam, id, address_of(&priority));
  value.second = priority;
  return value.first >= 0;
}

bool set_policy(const Attribute&, long id, Value value) {
  for (auto priority = static_cast<int32_t>(value.second); priority >= 0; --priority) {
    if (system_call(__NR_sched_setscheduler, id, value.first, address_of(&priority)) == 0)
      return priority == value.second;
  }
  return false;
}

bool get_nice(const Attribute&, long id, Value& value) {
  const long told = system_call(__NR_getpriority, 0, id);
  value.first = 20 - told;
  return told > 0;
}

bool set_nice(const Attribute& one, long id, Value value) {
  Value now;
  get_nice(one, id, now);
  long nice = value.first;
  while (system_call(__NR_setpriority, 0, id, nice) != 0 && nice < now.first) ++nice;
  return nice == value.first;
}

bool get_io_priority(const Attribute&, long id, Value& value) {
  const long told = system_call(__NR_ioprio_get, 1, id);  // IOPRIO_WHO_PROCESS: a thread
  value = {told >> 13, told & 0x1fff};
  return told >= 0;
}

bool set_io_priority(const Attribute&, long id, Value value) {
  return system_call(__NR_ioprio_set, 1, id, value.first << 13 | value.second) == 0;
}

constexpr Attribute limit(const char* name, long number) {
  return {Kind::limit, name, get_limit, set_limit, number};
}

const Attribute all[] = {
    limit("limit.cpu", 0),
    limit("limit.fsize", 1),
    limit("limit.data", 2),
    limit("limit.stack", 3),
    limit("limit.core", 4),
    limit("limit.rss", 5),
    limit("limit.nproc", 6),
    limit("limit.nofile", 7),
    limit("limit.memlock", 8),
    limit("limit.as", 9),
    limit("limit.locks", 10),
    limit("limit.sigpending", 11),
    limit("limit.msgqueue", 12),
    limit("limit.nice", 13),
    limit("limit.rtprio", 14),
    limit("limit.rttime", 15),
    {Kind::thread, "policy", get_policy, set_policy},
    {Kind::thread, "nice", get_nice, set_nice},
    {Kind::thread, "io_priority", get_io_priority, set_io_priority},
};

constexpr const char* as_parent = "-";

void add_note(const Attribute& one, uint64_t thread, Value value, NotesWriter& notes) {
  Text text;
  text << value.first;
  if (value.second != 0) text << " " << value.second;
  notes.add(one.name, thread, text.c_str());
}

void add_notes_of(const Attribute& one, const Stopped& stopped, NotesWriter& notes) {
  Value parents;
  Value first;
  const bool known = one.get(one, parent(), parents);
  if (!one.get(one, system_call(__NR_getpid), first)) return;
  if (!known || !(first == parents)) add_note(one, 0, first, notes);
  for (uint64_t i = 0; one.kind == Kind::thread && i < stopped.count; ++i) {
    Value value;
    const uint64_t id = stopped.threads[i].tid;
    if (!one.get(one, static_cast<long>(id), value) || value == first) continue;
    if (known && value == parents) {
      notes.add(one.name, id, as_parent);
    } else {
      add_note(one, id, value, notes);
    }
  }
}

void add_missing(Text& missing, const char* name, const char* text) {
  missing << (missing.empty() ? "" : ", ") << name << " " << text;
}

bool set(const Attribute& one, When when, long id, const char* text) {
  const Value value{read_signed(text), read_signed(text)};
  return when == When::before_all ? raise_limit(one, value) : one.set(one, id, value);
}

// The text of a thread's line, or of the process's. False: it is as the parent's.
bool line_of(const Tables& tables, const char* name, uint32_t thread, Line& line) {
  return (note_of(tables, name, line.text, sizeof line.text, thread) ||
          note_of(tables, name, line.text, sizeof line.text)) &&
         !same_text(line.text, as_parent);
}

void take_one(const Attribute& one, When when, const Tables& tables, uint32_t (*now)(uint32_t),
              Text& missing) {
  Line line;
  bool failed = false;
  for (const Thread& thread : tables.threads) {
    if (one.kind != Kind::thread && (thread.flags & thread_leader) == 0) continue;
    if (!line_of(tables, one.name, thread.tid, line)) continue;
    if (set(one, when, now(thread.tid), line.text) || failed) continue;
    add_missing(missing, one.name, line.text);
    failed = true;
  }
}

// --- processors ----------------------------------------------------------------------------------

constexpr uint64_t processors_max = 8192;

struct Processors {
  uint64_t bits[processors_max / 64] = {};
};

// Such as 0-3,8.
Processors read_processors(const char* at) {
  Processors found;
  while (*at >= '0' && *at <= '9') {
    uint64_t first = read_decimal(at);
    const uint64_t last = *at == '-' ? read_decimal(++at) : first;
    for (; first <= last && first < processors_max; ++first)
      found.bits[first / 64] |= 1ULL << first % 64;
    if (*at == ',') ++at;
  }
  return found;
}

Processors processors_of(long id) {
  Processors found;
  system_call(__NR_sched_getaffinity, id, sizeof found.bits, address_of(found.bits));
  return found;
}

bool pin(long id, const Processors& to) {
  return system_call(__NR_sched_setaffinity, id, sizeof to.bits, address_of(to.bits)) == 0;
}

// False: not to all that it had.
bool pin_as_before(long id, const char* text, const Processors* allowed) {
  const Processors wanted = read_processors(text);
  Processors found = wanted;
  for (uint64_t i = 0; allowed != nullptr && i < processors_max / 64; ++i) {
    found.bits[i] &= allowed->bits[i];
  }
  return pin(id, found) && memcmp(&found, &wanted, sizeof wanted) == 0;
}

void take_processors(const Tables& tables, uint32_t (*now)(uint32_t), Text& missing) {
  constexpr const char* name = "Cpus_allowed_list";
  Line parents;
  Line line;
  if (!note_of(tables, "companion.Cpus_allowed_list", parents.text, sizeof parents.text)) return;
  const Text now_parents = status_of(parent(), name);
  const Processors here = read_processors(now_parents.c_str());
  const bool same = same_text(parents.text, now_parents.c_str());
  bool failed = false;
  for (const Thread& thread : tables.threads) {
    if (!line_of(tables, name, thread.tid, line) || same_text(line.text, parents.text)) continue;
    if (pin_as_before(now(thread.tid), line.text, same ? nullptr : &here) || failed) continue;
    add_missing(missing, "processors", line.text);
    failed = true;
  }
}

}  // namespace

void add_notes(const Stopped& stopped, NotesWriter& notes) {
  for (const Attribute& one : all) add_notes_of(one, stopped, notes);
}

void take(When when, const Tables& tables, uint32_t (*now)(uint32_t before), Text& missing) {
  const bool limits = when != When::once_there;
  for (const Attribute& one : all) {
    if ((one.kind == Kind::limit) == limits) take_one(one, when, tables, now, missing);
  }
  if (!limits) take_processors(tables, now, missing);
}

void be_as_parent() {
  const long self = sys_thread_id();
  for (const Attribute& one : all) {
    Value value;
    Value own;
    if (one.kind != Kind::thread || !one.get(one, parent(), value)) continue;
    if (one.get(one, self, own) && !(own == value)) one.set(one, self, value);
  }
  pin(0, processors_of(parent()));
}

}  // namespace backstay::image::attributes
