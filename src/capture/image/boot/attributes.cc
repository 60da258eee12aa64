#include "capture/image/boot/attributes.h"

#include "capture/image/boot/bring_back.h"

namespace backstay::image::attributes {

namespace {

constexpr uint64_t words_max = 128;  // 8192 processors
struct Value {
  uint64_t words[words_max] = {};
};

long parent() { return system_call(__NR_getppid); }

// Threads have these, by their ids. A negative number: not known here, or not allowed.
struct Attribute {
  const char* name;
  long (*get)(long id, Value& to);
  long (*set)(long id, Value& to);
};

long get_processors(long id, Value& to) {
  return system_call(__NR_sched_getaffinity, id, sizeof to, address_of(&to));
}

// A launcher may have given others to the new start: a thread would take those of another rank.
long set_processors(long id, Value& to) {
  Value given;
  get_processors(parent(), given);
  for (uint64_t i = 0; i < words_max; ++i) {
    if ((to.words[i] & ~given.words[i]) != 0) return -1;
  }
  return system_call(__NR_sched_setaffinity, id, sizeof to, address_of(&to));
}

constexpr Attribute all[] = {
    {"scheduling",  // policy and priority
     [](long id, Value& to) { return system_call(__NR_sched_getattr, id, address_of(&to), 48); },
     [](long id, Value& to) { return system_call(__NR_sched_setattr, id, address_of(&to)); }},
    {"nice",  // also that of other policies
     [](long id, Value& to) {
       to.words[0] = static_cast<uint64_t>(system_call(__NR_getpriority, 0, id));
       return static_cast<long>(to.words[0]);
     },
     [](long id, Value& to) {
       return system_call(__NR_setpriority, 0, id, 20 - static_cast<long>(to.words[0]));
     }},
    {"io_priority",
     [](long id, Value& to) {
       to.words[0] = static_cast<uint64_t>(system_call(__NR_ioprio_get, 1, id));
       return static_cast<long>(to.words[0]);
     },
     [](long id, Value& to) {
       return system_call(__NR_ioprio_set, 1, id, static_cast<long>(to.words[0]));
     }},
    {"processors", get_processors, set_processors},
};

constexpr const char* limits[] = {"cpu",      "fsize",  "data",    "stack", "core",  "rss",
                                  "nproc",    "nofile", "memlock", "as",    "locks", "sigpending",
                                  "msgqueue", "nice",   "rtprio",  "rttime"};
struct Limit {
  uint64_t soft = 0, hard = 0;
};

// The kernel refuses those of a process with other ids. A thread may always ask for its own.
bool get_limit(long id, uint64_t number, Limit& to) {
  return system_call(__NR_prlimit64, id, static_cast<long>(number), 0, address_of(&to)) == 0;
}

void add_missing(Text& missing, const char* kind, const char* name) {
  missing << (missing.empty() ? "" : ", ") << kind << name;
}

uint64_t larger(uint64_t a, uint64_t b) { return a < b ? b : a; }

}  // namespace

void add_notes(const Stopped& stopped, NotesWriter& notes) {
  for (const Attribute& one : all) {
    Value given;
    const bool known = one.get(parent(), given) >= 0;
    for (uint64_t i = 0; i < stopped.count; ++i) {
      Value value;
      const bool has = one.get(stopped.threads[i].tid, value) >= 0;
      if (!has || (known && memcmp(&value, &given, sizeof value) == 0)) continue;
      notes.add(one.name, stopped.threads[i].tid, value.words, words_max);
    }
  }
  for (uint64_t number = 0; number < sizeof limits / sizeof limits[0]; ++number) {
    Limit given;
    Limit own;
    if (!get_limit(0, number, own)) continue;
    if (get_limit(parent(), number, given) && memcmp(&own, &given, sizeof own) == 0) continue;
    notes.add("limit", number, &own.soft, 2);
  }
}

void take_limits(const Tables& tables, bool at_last, Text& missing) {
  each_note(tables, "limit", [&](uint64_t number, const char* text) {
    Limit now;
    Limit to;
    read_words(text, &to.soft, 2);
    get_limit(0, number, now);
    if (!at_last) to = {larger(now.soft, to.soft), larger(now.hard, to.hard)};
    const long wrong =
        system_call(__NR_prlimit64, 0, static_cast<long>(number), address_of(&to), 0);
    if (wrong != 0) add_missing(missing, "limit ", limits[number % 16]);
  });
}

void take(const Tables& tables, Text& missing) {
  for (const Attribute& one : all) {
    bool failed = false;
    each_note(tables, one.name, [&](uint64_t thread, const char* text) {
      Value to;
      read_words(text, to.words, words_max);
      failed = one.set(new_thread_id(static_cast<uint32_t>(thread)), to) < 0 || failed;
    });
    if (failed) add_missing(missing, one.name, "");
  }
}

}  // namespace backstay::image::attributes
