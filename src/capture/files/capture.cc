#include "capture/files/capture.h"

#include <cstring>
#include <utility>

#include "capture/files/counts.h"
#include "capture/files/descriptors.h"
#include "capture/files/leave.h"
#include "capture/files/pattern.h"
#include "capture/files/pool.h"
#include "capture/files/raw.h"
#include "capture/files/settings.h"
#include "capture/files/sink.h"

namespace backstay::files {
namespace {

Table the_table;
pid_t owner;

Finished finished_of(const MemoryFile& file, bool sync) {
  return {.memory = file.memory, .target = file.target, .opened = file.placed, .sync = sync};
}

// Where nobody is there to get an error number.
void tell_loss(const MemoryFile& file, int error) {
  char path[path_max] = "";
  raw::path_of(file.target, path);
  tell(" could not be brought to its place: ", path, ::strerrordesc_np(error));
}

// Its bytes are at its place: those of its last sync are not to come there any more.
void let_go(MemoryFile& file) {
  if (const std::uint64_t synced = std::exchange(file.synced, 0)) let_go_in_pool(synced);
}

std::uint64_t size_of(const MemoryFile& file) {
  struct stat now = {};
  raw::fstat(file.memory, &now);
  return static_cast<std::uint64_t>(now.st_size);
}

// Nothing is to take back what was synced.
int finish(MemoryFile& file) {
  const CountedWait waits(Waited::close);
  Finished finished = finished_of(file, file.synced != 0);
  if (keep_in_pool(finished, file.synced)) return 0;
  const Kept kept = keep_direct(finished);
  if (kept.error == 0) {
    count_direct(size_of(file));
    let_go(file);
  }
  return kept.error;
}

// The program goes on with the file where it is now: at its place, or after an error in memory.
int leave(MemoryFile& file, const Finished& finished, const Kept& kept) {
  if (kept.error != 0) {
    file.placed = finished.opened;
    let_writers_go_on(the_table, file);
    return kept.error;
  }
  let_go(file);
  count_real(size_of(file));
  switch_over(the_table, file, kept.placed);
  if (kept.placed >= 0) raw::close(kept.placed);
  return 0;
}

bool make_local(MemoryFile& file) {
  if (file.hold < 0) file.hold = move_descriptor(the_table, make_hold());
  const std::uint64_t version =
      file.hold < 0 ? 0 : sync_in_pool(finished_of(file, true), file.hold);
  if (version != 0) file.synced = version;
  return version != 0;
}

}  // namespace

Table& table() { return the_table; }

bool is_owner() { return raw::getpid() == owner; }

Opening* opening_of(int fd) {
  Opening* opening = the_table.find(fd);
  if (opening == nullptr || !is_owner()) return nullptr;
  if (leads_to(fd, *opening->file)) return opening;
  Lock lock;
  end_unseen(fd);
  return the_table.find(fd);
}

int place_of(int fd) {
  const Opening* opening = opening_of(fd);
  return opening == nullptr ? fd : opening->real;
}

void end_unseen(int fd) {
  const Opening* opening = the_table.find(fd);
  if (opening == nullptr || leads_to(fd, *opening->file)) return;
  MemoryFile& file = *opening->file;
  stay_out_of_pool();
  if (const int error = end_descriptor(fd)) tell_loss(file, error);
}

bool is_anything_captured() { return !the_table.empty() && is_owner(); }

void take_ownership() { owner = raw::getpid(); }

int end_descriptor(int fd) {
  const Ended ended = the_table.end(fd);
  const int error = ended.file != nullptr ? finish(*ended.file) : 0;
  the_table.unbind(fd);
  if (ended.opening != nullptr) drop_opening(the_table, *ended.opening);
  return error;
}

int bring_home(MemoryFile& file, bool sync) {
  const StoppedWriters stopped(the_table, file);
  struct stat target = {};
  raw::fstat(file.target, &target);
  Finished finished = finished_of(file, sync || file.synced != 0);
  finished.goes_on = true;
  const Kept kept =
      target.st_nlink == 0 ? Kept{write_in_place(finished), -1} : keep_direct(finished);
  return leave(file, finished, kept);
}

int make_real(MemoryFile& file) {
  if (file.synced != 0) return bring_home(file, true);
  const StoppedWriters stopped(the_table, file);
  Finished finished = finished_of(file, false);
  const Kept kept = {write_in_place(finished), -1};
  return leave(file, finished, kept);
}

int bring_all_home() {
  if (!is_anything_captured()) return 0;
  Lock lock;
  int first_error = 0;
  while (MemoryFile* file = the_table.first_file()) {
    const int error = bring_home(*file, false);
    if (error == 0) continue;
    if (first_error == 0) first_error = error;
    tell_loss(*file, error);
    switch_over(the_table, *file, -1);
  }
  return first_error;
}

int make_all_real() {
  int first_error = 0;
  for (MemoryFile* file = the_table.first_file(); file != nullptr;) {
    const int error = make_real(*file);
    if (error != 0 && first_error == 0) first_error = error;
    file = the_table.next_file(*file);
  }
  return first_error;
}

int make_descriptor_real(int fd) {
  if (opening_of(fd) == nullptr) return 0;
  Lock lock;
  Opening* opening = the_table.find(fd);
  return opening == nullptr ? 0 : make_real(*opening->file);
}

int make_locked_real(int fd) {
  if (opening_of(fd) != nullptr) count_locked();
  return make_descriptor_real(fd);
}

int sync_descriptor(int fd) {
  if (opening_of(fd) == nullptr) return 0;
  Lock lock;
  const CountedWait waits(Waited::fsync);
  Opening* opening = the_table.find(fd);
  if (opening == nullptr || make_local(*opening->file)) return 0;
  return bring_home(*opening->file, true);
}

int place_descriptor(int fd) {
  if (opening_of(fd) == nullptr) return 0;
  Lock lock;
  Opening* opening = the_table.find(fd);
  return opening == nullptr ? 0 : bring_home(*opening->file, true);
}

MemoryFile* file_at_path(int folder, const char* path, int flags) {
  struct stat found = {};
  if (raw::fstatat(folder, path, &found, flags) != 0) return nullptr;
  return the_table.at_inode(found.st_dev, found.st_ino);
}

int make_memory_real(int folder, const char* path) {
  if (!is_anything_captured()) return 0;
  Lock lock;
  struct stat found = {};
  if (raw::fstatat(folder, path, &found, 0) != 0) return 0;
  MemoryFile* file = the_table.at_inode(found.st_dev, found.st_ino);
  const bool leads_to_memory = file != nullptr && raw::is_same(found, file->memory_stat);
  return leads_to_memory ? make_real(*file) : 0;
}

void forget_all() {
  for (MemoryFile* file = the_table.first_file(); file != nullptr;
       file = the_table.next_file(*file)) {
    for (Opening* opening = the_table.next_opening(*file); opening != nullptr;
         opening = the_table.next_opening(*file, opening)) {
      raw::close(opening->real);
    }
    raw::close(file->memory);
    raw::close(file->target);
    if (file->hold >= 0) raw::close(file->hold);
  }
  the_table.clear();
  take_ownership();
}

}  // namespace backstay::files
