// What the collector knows and does (docs/protocol/collector.md); sockets are the server's.
//
// The life of a file:
//
//     keep ── listed ── in the pool, or refused ── answered
//                            │
//                            └── home thread, or who asks: brought by the agent ── unlisted
//                                     │                         │
//                                     │ agent lost: handed in again, brought
//                                     └ cannot be brought: by ourselves, else later once more
//
// All functions may be called by any thread, and block.
#pragma once

#include <condition_variable>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "capture/collector/pending_file.h"
#include "capture/collector/pending_list.h"
#include "capture/collector/reminder.h"
#include "capture/collector/writers.h"
#include "capture/collector/written.h"

namespace backstay::files {

class Collector {
 public:
  // `list`: may hold files of a collector before this one. They are brought home first, and all
  // questions wait for that.
  Collector(client::WriterSettings settings, std::unique_ptr<PendingList> list,
            std::uint64_t memory_bytes_max);
  ~Collector();
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  // Takes a file. Once it returns ok the file comes to its place, whatever becomes of its program.
  // `go_on`: false where no caller waits for the answer. An error leaves the file with the
  // caller.
  Status keep(const Question& question, Fd memory, Fd target, const std::function<bool()>& go_on);
  // An open file, as a program syncs it.
  struct Synced {
    Fd memory;
    Fd target;
    Fd hold;  // locked, without a name
    pid_t program = 0;
  };
  // Once it returns, what the file had is local. It stays with its program, and comes to its place
  // only where that ends without another word. Errors: the program helps itself.
  Result<VersionNumber> sync(const Question& question, Synced from,
                             const std::function<bool()>& go_on);
  // The file of a sync is at its place by now, or not wanted: the version is not to be brought.
  Status let_go(VersionNumber version);
  // The file gets another name in its folder, at once as far as any captured process can see. An
  // error: nothing has changed, and it must be settled before it is renamed.
  Status rename(PendingFile::Key key, const Question& question);
  // Blocks until this file is at its place; `reads`: or a whole copy of it is. Errors: why it
  // cannot be.
  Status settle(PendingFile::Key key, bool reads);
  // The same for all that are pending now; `paused_too`: also for those that could not be brought a
  // moment ago, which are tried once more. Says what it waits for, and which files are not at their
  // places in the end; with `paused_too` also which ones stay in the store (tell_left). The error
  // is that of one of them.
  Status settle_all(const Tell& tell, bool paused_too);
  // Says which files stay in the store because other programs have put newer ones at their paths.
  void tell_left(const Tell& tell);

  // What a process has counted; it comes with every question.
  void count(const Counts& counts) { written_.add(counts); }
  Written::Fates take_fates() { return written_.take_fates(); }
  // What all have counted goes to the event log, where an agent has this job.
  void note_written();

  // Blocks until what a collector before this one has left is at its place, or was tried. The
  // second one says that it waits.
  void wait_until_ready();
  void wait_until_ready(const Tell& tell);
  // Nothing is pending but what the agent's disk has and nothing here can bring to its place.
  bool may_end();
  // No process can ask any more.
  void end();

 private:
  using File = std::shared_ptr<PendingFile>;
  using Lock = std::unique_lock<std::mutex>;
  struct Awaited {
    File file;
    unsigned tries = 0;  // when the wait began
    // At its place, or tried.
    bool is_over() const;
  };

  // What stands at the new name, and is a file's placeholder there.
  struct NewPlace {
    std::string path;
    Fd target;
    struct stat placed = {};
    File before;  // that is pending there now; it is overtaken. Null: none
  };

  void run();
  void settle_leftovers();
  Status put_in(PendingFile& file, client::Writer& writer, const std::function<bool()>& go_on);
  Status hand_over(PendingFile& file, Until until, const std::function<bool()>& go_on);
  Status reach_local(PendingFile& file);
  Status bring(PendingFile& file);
  Status bring_here(PendingFile& file, const Error& why);
  void come_after_change(PendingFile& file);
  void leave(const PendingFile& file);
  Status bring_by_agent(PendingFile& file);
  Status drop(const PendingFile::Elsewhere& one, const std::string& stays, client::Writer& writer);
  Status drop_and_mark(const PendingFile::Elsewhere& one, const std::string& stays,
                       client::Writer& writer);
  Status drop_elsewhere(PendingFile& file, client::Writer& writer);
  Status drop_here(PendingFile& file, const std::string& path);
  void drop_placed(PendingFile& file);
  void warn_of_return(const std::string& path, const Error& why) const;
  Status put_in_again(PendingFile& file, client::Writer& writer);
  bool was_brought_or_call_back(const PendingFile& file, client::Writer& writer) const;
  bool is_lost(const PendingFile& file) const;
  static Status wait_for_tables(const std::string& path, client::Writer& writer);
  Status settle_at_its_path(PendingFile& file, client::Writer& writer);
  void bring_and_note(const File& file, Lock& lock);
  void note(const File& file, const Status& brought);
  Result<File> begin_work(const PendingFile& file);
  void release(PendingFile& file, const File& before = nullptr);
  // --- syncs (sync.cc)
  std::string hold_of(HeldVersion version) const;
  Status name_hold(const PendingFile& file, HeldVersion version) const;
  Status make_local(PendingFile& file, const std::function<bool()>& go_on);
  Status take_as_synced(PendingFile& file, const PendingFile& before);
  void call_back(HeldVersion version, const std::string& path);
  void call_back(VersionNumber version);
  bool let_come(PendingFile& file);
  void take_ended(Lock& lock);
  // --- reads (read.cc)
  bool is_shown(const File& file, Lock& lock);
  Status show(const File& file);
  Status hold_here(PendingFile& file) const;
  Result<NewPlace> put_copy(const PendingFile& file, const std::string& path, unsigned flags);
  Status name_copy(NewPlace& place, const std::string& temporary, unsigned flags);
  bool is_whole(const PendingFile& file);
  Status finish_whole(PendingFile& file);
  // --- renames (rename.cc)
  Status rename_taken(const File& file, const Question& question);
  Result<NewPlace> new_place(const PendingFile& file, const std::string& path);
  Result<NewPlace> place_of_old_file(const std::string& path);
  Result<NewPlace> place_of_pending(const std::string& path, PendingFile::Key key);
  Status enlist(const struct stat& placed);
  void give_up(const NewPlace& place);
  void take_place(const File& file, NewPlace place, std::uint64_t placed_ns);
  File next_to_bring(std::uint64_t now_ns) const;
  std::list<Awaited> pending_now(bool paused_too);
  static std::string words_for(const std::list<Awaited>& awaited);
  void wait_for(const std::list<Awaited>& awaited, const Tell& tell);
  std::string words_for(const PendingFile& file) const;
  void forget_removed();
  // What the agent has comes home. Errors: in words for people.
  Status settle_of_agent();
  Status settle_held(const std::list<Awaited>& awaited, const Tell& tell);
  std::uint64_t held_bytes() const;

  Writers writers_;
  Written written_;
  const std::string job_;
  const std::string folder_;  // of the agent's socket
  const std::string store_;   // the folder of the job's versions
  const std::uint64_t memory_bytes_max_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::unique_ptr<PendingList> list_;
  std::map<PendingFile::Key, File> files_;
  std::list<File> order_;                    // of those that are taken
  std::map<std::string, std::string> left_;  // by path: what is said of one that stays in the store
  std::map<PendingFile::Key, File> open_;    // synced, and open in their programs; listed too
  bool ready_ = false;
  bool ends_ = false;
  Status leftovers_;  // of a collector before this one
  std::thread home_;
};

}  // namespace backstay::files
