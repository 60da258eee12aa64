// Which captured file is brought to its path next (docs/protocol/home.md has the states and the
// reasons).
//
// Pure: an event in, orders out; no I/O, and the time is given. The owner (agent/job) reports what
// happens to versions and what the home thread answers, and carries out what next() and take_news()
// say. Main loop's thread.
//
// Versions whose files are all at home stay known until they are removed: an older record of one of
// their paths may still turn up, as versions of several writers end in any order.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "agent/disk/home_orders.h"
#include "base/clock.h"

namespace backstay::agent {

// What the owner has to carry out, and what may be said.
struct HomeNews {
  struct Answer {  // to settle()
    std::uint64_t ticket = 0;
    Status status;
    std::string kept = {};  // of one path: why its newest file stays in the store
  };
  struct Warning {  // a file that is not at its path, once for each reason
    VersionNumber version = 0;
    std::string path;  // empty: all files of the version
    std::string why;
  };
  std::vector<Answer> answers;
  // Nothing is to be done for them any more, and no mark of an older version says otherwise.
  std::vector<VersionNumber> at_home;
  std::vector<Warning> warnings;
};

class HomePlan {
 public:
  // --- what happens to a version. In this order, but any of them may be left out.
  // Its files are in the pool, and it is on its way to the disk.
  void captured(VersionNumber version);
  // It is local. `node`: whose part is here. Also at the agent's start, of each version that is
  // there: `before`.
  void recorded(const format::CommitRecord& record, NodeId node, bool before = false);
  // Its bytes will not reach the disk.
  void failed(VersionNumber version, const Error& why);
  // It was removed.
  void gone(VersionNumber version);
  // The program has renamed this file, which is not at its path: it comes to `to` instead, where it
  // counts as of `placed_ns`. An empty `to`: it is not to be brought at all, nor kept. Errors, and
  // nothing has changed: busy (it is on its way, or an older file of `to` is), state (it is at
  // home, or will not be brought), not_found. Precondition, unless `to` is empty: no life of an
  // agent before this one knew the version.
  Status move(VersionNumber version, const std::string& from, const std::string& to,
              std::uint64_t placed_ns);
  // A file of it waits and was renamed, which this plan alone knows.
  bool is_renamed(VersionNumber version) const;
  // It was not written to the disk yet, and what it holds is not to be brought: who captured it
  // brings the file directly.
  bool is_called_back(VersionNumber version) const;

  // --- who waits for files. `path`: one file, all below a folder (ends in '/'), or all (empty).
  void settle(std::uint64_t ticket, std::string path, std::uint64_t now_ns);
  void forget(std::uint64_t ticket) { asked_.erase(ticket); }

  // --- the home thread
  // Its next orders: at most `at_once_max` files, or as many marks. There are none while the thread
  // works, or before wakes_at_ns().
  HomeOrders next(std::uint64_t now_ns, std::size_t at_once_max = 1);
  void on(const HomeAnswer& answer, std::uint64_t now_ns);
  std::uint64_t wakes_at_ns() const;

  HomeNews take_news() { return std::exchange(news_, {}); }
  struct Counts {
    std::uint64_t waiting = 0;  // not at home yet, or not marked so
    std::uint64_t failed = 0;   // of these: could not be brought so far
    std::uint64_t kept = 0;
    std::uint64_t waiting_bytes = 0;
    std::uint64_t versions = 0;  // of these files, or not read yet
  };
  Counts counts() const;
  // A file of it is kept, or could not be brought so far.
  bool is_left(VersionNumber version) const;
  // The file that is on its way now; "" : none is.
  std::string on_its_way() const;
  // The thread has orders.
  bool works() const { return !works_.empty(); }

 private:
  // The greatest of a path counts.
  struct Key {
    std::uint64_t placed_ns = 0;
    VersionNumber version = 0;
    std::size_t index = 0;  // in Version::files
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  using Paths = std::map<std::string, std::set<Key>>;
  // `overtaken`: a newer record of the path was brought or is kept. Brought and overtaken ones are
  // at home with the next mark.
  enum class State { waiting, brought, overtaken, kept, home };
  struct File {
    Paths::iterator path;  // to which it comes
    std::uint64_t placed_ns = 0;
    std::uint64_t bytes = 0;
    State state = State::waiting;
    std::string why = {};
    Code code = Code::ok;       // of a waiting one: why the last try failed
    unsigned tries = 0;         // that failed
    std::uint64_t next_ns = 0;  // not before
    std::uint64_t tried = 0;    // the answer that said so, as answers_ counts
    std::string named = {};     // in the version's table, where that is another path
  };
  struct Moved {
    std::string to;               // "": to no path
    std::uint64_t placed_ns = 0;  // of `to`; of `from` where that is not as in the table
    std::string from = {};        // its path before the last move
  };
  enum class Stage { expected, unread, known };
  struct Version {
    Stage stage = Stage::expected;
    format::CommitRecord record = {};
    NodeId node = 0;
    bool before = false;                      // this agent
    std::vector<File> files = {};             // in the order in which they are brought
    std::size_t open = 0;                     // files that are not at home
    std::size_t untried = 0;                  // of these: neither brought, kept nor failed
    bool dirty = false;                       // its mark says something else, or is missing
    bool outdated = false;                    // the mark that is being written will do so, too
    bool stale = false;                       // it says so of a file that was overtaken
    bool told = false;                        // in news_.at_home
    bool held = false;                        // a program has a file of it open: no mark yet
    std::map<std::string, Moved> moved = {};  // before its table is known; by the path there
    // Reading the table, or writing the mark, failed.
    std::optional<Error> trouble = {};
    unsigned tries = 0;
    std::uint64_t next_ns = 0;
    std::uint64_t tried = 0;
    void needs_mark() { dirty = outdated = true; }
  };
  struct Asked {
    std::string path;
    std::uint64_t since = 0;  // answers_, with that of the file that was being brought
  };
  // What the thread works on. The key is that of a file.
  struct Work {
    HomeOrder order;
    Key key = {};
  };

  void take(const FilesLookedAt& answer, std::uint64_t now_ns);
  void take(const FileBrought& answer, const Key& key, std::uint64_t now_ns);
  void take(const HomeMarked& answer, std::uint64_t now_ns);
  void take_file(VersionNumber number, FileInVersion file, bool marked,
                 const format::FileNotHome* as_marked);
  void add(VersionNumber number, const FileInVersion& found, const std::string& named, bool marked,
           const format::FileNotHome* as_marked);
  void unsynced(const HomeMarked& answer, Version& version, std::uint64_t now_ns);
  void hold(const Key& key, const std::string& why, std::uint64_t now_ns);
  void fail(const Key& key, const Error& why, std::uint64_t now_ns);
  void fail(VersionNumber number, Version& version, const Error& why, std::uint64_t now_ns);
  Status move_file(const Key& key, const Moved& moved);
  void put_at_path(const Key& key);
  std::uint64_t order_of(const Key& key) const;
  void overtake(const std::string& path, const Key& by);
  void schedule(const Key& key);
  void unschedule(const Key& key);
  void retry_now(const Key& key);
  // The one place where a file's state changes.
  void change(const Key& key, State state, Code code = Code::ok);
  void finish();
  const File& file_of(const Key& key) const { return versions_.at(key.version).files[key.index]; }
  File& file_of(const Key& key) { return versions_.at(key.version).files[key.index]; }
  // The file that is on its way to this path, or is this one; null: none is.
  const BringFile* on_its_way(const Key* key, const std::string& to) const;
  Work take_work(const HomeAnswer& answer);
  // Each adds to works_ what is due, and says whether that was any.
  bool marks_due(std::uint64_t now_ns, std::size_t untried_max, std::size_t at_once_max);
  bool look_due(std::uint64_t now_ns);
  bool files_due(std::uint64_t now_ns, std::size_t at_once_max);

  // --- who waits (home_plan_settle.cc)
  // What is known of one thing that somebody waits for: none while it is under way.
  using Outcome = std::optional<Status>;
  template <typename Use>
  void for_each_in(const std::string& asked, Use use) const;
  void answer_all();
  // Why the newest file of this path stays in the store for good; "": it does not.
  std::string why_kept(const std::string& path) const;
  bool is_bringing() const;
  bool is_wanted_again(const Key& key) const;
  static bool is_called_back(const Version& version);
  Outcome outcome_of(const Asked& asked) const;
  Outcome outcome_of(const Version& version, const Asked& asked) const;
  Outcome outcome_of(const Key& key, const std::set<Key>& keys, const Asked& asked) const;

  std::map<VersionNumber, Version> versions_;
  Paths paths_;
  // May be brought now: in the order in which the versions ended.
  std::set<std::tuple<std::uint64_t, VersionNumber, std::size_t>> ready_;
  std::set<std::tuple<std::uint64_t, VersionNumber, std::size_t>> paused_;  // until when
  std::map<std::uint64_t, Asked> asked_;                                    // by ticket
  std::uint64_t answers_ = 0;                                               // of the thread so far
  std::vector<Work> works_;
  HomeNews news_;
};

}  // namespace backstay::agent
