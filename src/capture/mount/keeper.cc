#include "capture/mount/keeper.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

#include "base/failpoint.h"
#include "base/folders.h"
#include "base/log.h"
#include "capture/files/counts.h"
#include "capture/files/exclusive.h"
#include "capture/files/rules.h"
#include "capture/files/sink.h"

namespace backstay::mount {

namespace {

std::uint64_t size_of(const Node& node) {
  struct stat memory = {};
  return ::fstat(node.memory.get(), &memory) == 0 ? static_cast<std::uint64_t>(memory.st_size) : 0;
}

files::Finished finished_of(const Node& node) {
  return {node.memory.get(), node.target.get(), node.opened};
}

SharedFd shared(int file) { return file < 0 ? nullptr : std::make_shared<const Fd>(file); }

// The functions of sink.h have scratch memory of their own.
std::mutex sink_mutex;

}  // namespace

Keeper::Keeper(Nodes& nodes, KeeperSettings settings, std::function<void(const std::string&)> stale)
    : nodes_(nodes),
      settings_(std::move(settings)),
      stale_(std::move(stale)),
      home_([this] { run(); }) {}

Keeper::~Keeper() { end(); }

void Keeper::end() {
  {
    const Lock lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  if (home_.joinable()) home_.join();
}

// --- memory --------------------------------------------------------------------------------------

bool Keeper::has_room(std::uint64_t bytes) const {
  return held_.load() + bytes <= settings_.memory_bytes_max;
}

void Keeper::count(Node& node, std::uint64_t end) {
  std::uint64_t before = node.counted.load();
  while (end > before)
    if (node.counted.compare_exchange_weak(before, end)) {
      held_ += end - before;
      return;
    }
}

// Precondition: moving.
void Keeper::forget_memory(Node& node) {
  const std::unique_lock alone(node.lock);
  node.memory.reset();
  node.target.reset();
  node.hold.reset();
  held_ -= node.counted.exchange(0);
}

// --- states --------------------------------------------------------------------------------------

bool Keeper::start_moving(const std::shared_ptr<Node>& node, State from) {
  std::unique_lock alone(node->lock);
  node->changed.wait(alone, [&] { return !node->moving; });
  if (node->state != from) return false;
  node->moving = true;
  return true;
}

void Keeper::stop_moving(const std::shared_ptr<Node>& node, State state) {
  bool unpinned = false;
  {
    const std::unique_lock alone(node->lock);
    unpinned = node->state != State::at_place && state == State::at_place;
    node->state = state;
    node->moving = false;
  }
  node->changed.notify_all();
  if (unpinned) nodes_.unpin(node);
}

bool Keeper::may_begin(const std::shared_ptr<Node>& node, int target, int flags, bool fresh) {
  if (::fstat(target, &node->opened) != 0) return false;
  const files::Found found{node->opened, true, !fresh && files::open_elsewhere(target)};
  return files::file_allows(found, flags) && (fresh || ::flistxattr(target, nullptr, 0) <= 0);
}

bool Keeper::begin(const std::shared_ptr<Node>& node, Fd target, int flags, bool fresh) {
  if (!has_room(0) || !start_moving(node, State::at_place)) return false;
  {
    // Our own descriptors would look like those of another process.
    const std::unique_lock alone(node->lock);
    for (Handle* handle : node->handles) {
      const std::lock_guard guard(handle->mutex);
      handle->real.reset();
    }
  }
  Fd memory(::memfd_create("backstay-mount", MFD_CLOEXEC));
  if (!memory.valid() || !may_begin(node, target.get(), flags, fresh)) {
    stop_moving(node, State::at_place);
    return false;
  }
  nodes_.pin(node);
  {
    const std::unique_lock alone(node->lock);
    node->memory = std::move(memory);
    node->target = std::move(target);
    node->closed_by_one = false;
  }
  stop_moving(node, State::in_memory);
  failpoint("mount.begun");
  return true;
}

// Precondition: moving, in memory. False: the file has no name any more.
bool Keeper::set_out(const std::shared_ptr<Node>& node) {
  struct stat placed = {};
  if (::fstat(node->target.get(), &placed) != 0 || placed.st_nlink == 0) return false;
  node->path = path_of(node->target.get());
  node->placeholder = {placed.st_dev, placed.st_ino};
  node->on_its_way = placed.st_nlink == 1;
  nodes_.expect(node->path, node);
  return true;
}

void Keeper::arrive(const std::shared_ptr<Node>& node, Fd placed) {
  nodes_.release(node->path, node, std::move(placed));
  node->on_its_way = false;
}

// --- closing -------------------------------------------------------------------------------------

// Precondition: moving, in memory.
bool Keeper::may_give(const Node& node) const {
  return !settings_.collector.empty() &&
         files::may_take(node.memory.get(), settings_.pool_bytes_min);
}

files::Link Keeper::link() const { return {settings_.collector, settings_.collector_program}; }

// Precondition: moving, in memory.
bool Keeper::give_to_collector(Node& node) const {
  if (!may_give(node)) return false;
  files::Link asker = link();
  const auto kept = files::keep(asker, finished_of(node), settings_.until, node.synced);
  if (kept.way == files::Way::gone) files::settle_taken(asker, finished_of(node));
  if (kept.well()) {
    node.synced = 0;
    return true;
  }
  spdlog::info("a file goes to its place directly file={} why=\"{}\"", node.path,
               asker.status(kept, "hand a file to the collector").error().to_string());
  return false;
}

// Precondition: moving, in memory.
bool Keeper::make_local(Node& node) const {
  if (!settings_.sync_local || !may_give(node)) return false;
  if (!node.hold.valid()) node.hold = Fd(files::make_hold(parent_of(settings_.collector).c_str()));
  if (!node.hold.valid()) return false;
  files::Link asker = link();
  const auto synced = files::sync(asker, finished_of(node), node.hold.get());
  if (synced.well()) {
    node.synced = synced.version;
    return true;
  }
  spdlog::info("a file is synced at its place file={} why=\"{}\"", path_of(node.target.get()),
               asker.status(synced, "sync a file by the collector").error().to_string());
  return false;
}

// Its bytes are at its place, or not wanted: those of its last sync are not to come there any more.
void Keeper::let_go(Node& node) const {
  if (const std::uint64_t synced = std::exchange(node.synced, 0)) {
    files::Link asker = link();
    files::let_go(asker, synced);
  }
}

int Keeper::sync(const std::shared_ptr<Node>& node) {
  {
    const std::shared_lock names(names_);
    if (start_moving(node, State::in_memory)) {
      const files::CountedWait waits(files::Waited::fsync);
      const bool local = make_local(*node);
      failpoint("mount.synced");
      stop_moving(node, State::in_memory);
      if (local) return 0;
    }
  }
  return make_real(node, true);
}

// Precondition: moving, in memory; no name changes.
int Keeper::place(const std::shared_ptr<Node>& node, bool sync) {
  files::Finished finished = finished_of(*node);
  finished.sync = sync || node->synced != 0;
  finished.goes_on = true;
  files::Kept kept;
  {
    const std::lock_guard guard(sink_mutex);
    kept = files::keep_direct(finished);
  }
  failpoint("mount.placed");
  node->opened = finished.opened;
  if (kept.error != 0) return kept.error;
  let_go(*node);
  if (kept.placed < 0) return 0;
  const SharedFd placed = shared(kept.placed);
  // By its path: a descriptor of a file that was made without a name does not tell its name. But
  // another program may have put its own file there by now.
  Fd home = open_home(*node);
  if (!home.valid() || !files::is_same_file(home.get(), kept.placed))
    home = Fd(::open(link_to(kept.placed).c_str(), O_PATH | O_CLOEXEC));
  nodes_.release(node->path, node, std::move(home));
  const std::unique_lock alone(node->lock);
  // A mode without permission to write does not close a file to those who have it open.
  for (Handle* handle : node->handles) {
    const std::lock_guard guard(handle->mutex);
    if (handle->writes()) handle->real = placed;
  }
  return 0;
}

int Keeper::hand_in(const std::shared_ptr<Node>& node) {
  const std::shared_lock names(names_);
  if (!start_moving(node, State::in_memory)) return 0;
  if (!set_out(node)) {
    stop_moving(node, State::in_memory);
    return 0;
  }
  failpoint("mount.keeps");
  const files::CountedWait waits(files::Waited::close);
  if (give_to_collector(*node)) {
    failpoint("mount.kept");
    stop_moving(node, State::pending);
    bring(node);
    return 0;
  }
  const std::uint64_t bytes = size_of(*node);
  const int error = place(node, false);
  if (error == 0) files::count_direct(bytes);
  arrive(node, Fd());
  forget_memory(*node);
  if (error != 0) lose_view(node);
  stop_moving(node, State::at_place);
  return error;
}

int Keeper::make_real_from_memory(const std::shared_ptr<Node>& node, bool sync) {
  int error = 0;
  if (set_out(node)) {
    error = place(node, sync);
    arrive(node, Fd());
  } else {
    files::Finished finished = finished_of(*node);
    finished.sync = sync;
    const std::lock_guard guard(sink_mutex);
    error = files::write_in_place(finished);
    node->opened = finished.opened;
  }
  if (error == 0) let_go(*node);
  if (error == 0) files::count_real(size_of(*node));
  if (error == 0) forget_memory(*node);
  stop_moving(node, error == 0 ? State::at_place : State::in_memory);
  return error;
}

int Keeper::make_real(const std::shared_ptr<Node>& node, bool sync) {
  {
    const std::shared_lock names(names_);
    if (start_moving(node, State::in_memory)) return make_real_from_memory(node, sync);
  }
  if (!start_moving(node, State::pending)) return 0;
  const int error = come_home(node);
  stop_moving(node, error == 0 ? State::at_place : State::pending);
  if (error != 0 || !sync) return error;
  const Fd file(::open(link_to(node->at()->get()).c_str(), O_RDONLY | O_CLOEXEC));
  return !file.valid() || ::fsync(file.get()) == 0 ? 0 : errno;
}

// The file that has come home. Where somebody has renamed a folder above, beside the mount, the
// kernel knows where the placeholder would be by now, which it has replaced.
Fd Keeper::open_home(const Node& node) {
  constexpr std::string_view gone = " (deleted)";
  Fd placed(::open(node.path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (placed.valid()) return placed;
  std::string path = path_of(node.target.get());
  if (path.ends_with(gone)) path.resize(path.size() - gone.size());
  return Fd(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
}

// Precondition: moving, pending.
int Keeper::come_home(const std::shared_ptr<Node>& node) {
  failpoint("mount.settles");
  files::Link asker = link();
  const Status settled =
      asker.status(files::settle(asker, node->placeholder.first, node->placeholder.second),
                   "bring a captured file to its place");
  failpoint("mount.settled");
  if (!settled.ok()) {
    spdlog::warn("a file is not at its place file={} why=\"{}\"", node->path,
                 settled.error().to_string());
    return EIO;
  }
  arrive(node, open_home(*node));
  forget_memory(*node);
  // The old file is kept for its number alone.
  struct stat old = {};
  if (node->anchor != node->at() && ::fstat(node->anchor->get(), &old) == 0 && old.st_nlink == 0)
    (void)!::truncate(link_to(node->anchor->get()).c_str(), 0);
  return 0;
}

// --- giving up -----------------------------------------------------------------------------------

void Keeper::lose_view(const std::shared_ptr<Node>& node) {
  nodes_.detach(node);
  std::string path = path_of(node->at()->get());
  const Lock lock(mutex_);
  stale_paths_.push_back(std::move(path));
  changed_.notify_all();
}

void Keeper::drop(const std::shared_ptr<Node>& node) {
  if (!start_moving(node, State::in_memory)) return;
  if (node->synced != 0) {
    // What it has now is not older.
    stop_moving(node, State::in_memory);
    return (void)hand_in(node);
  }
  spdlog::info("dropped, as its program was killed file={}", path_of(node->at()->get()));
  forget_memory(*node);
  lose_view(node);
  stop_moving(node, State::at_place);
}

void Keeper::drop_unnamed(const std::shared_ptr<Node>& node) {
  if (!start_moving(node, State::in_memory)) return;
  struct stat placed = {};
  const bool named = ::fstat(node->target.get(), &placed) != 0 || placed.st_nlink != 0;
  if (!named) let_go(*node);
  if (!named) forget_memory(*node);
  stop_moving(node, named ? State::in_memory : State::at_place);
}

// --- names ---------------------------------------------------------------------------------------

int Keeper::with_names(const Affected& affected, const std::function<int()>& act) {
  for (;;) {
    for (const auto& node : affected())
      if (const int error = make_real(node, false)) return error;
    const std::unique_lock alone(names_);
    const auto left = affected();
    const auto is_there = [](const auto& node) { return node->is(State::at_place); };
    if (std::ranges::all_of(left, is_there)) return act();
  }
}

// --- at home -------------------------------------------------------------------------------------

void Keeper::bring(const std::shared_ptr<Node>& node) {
  const Lock lock(mutex_);
  waiting_.push_back(node);
  changed_.notify_all();
}

void Keeper::run() {
  Lock lock(mutex_);
  while (!ends_) {
    if (!stale_paths_.empty()) {
      const std::string path = stale_paths_.front();
      stale_paths_.pop_front();
      lock.unlock();
      stale_(path);
      lock.lock();
      continue;
    }
    if (waiting_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const auto node = waiting_.front();
    waiting_.pop_front();
    busy_ = true;
    lock.unlock();
    const int error = make_real(node, false);
    lock.lock();
    busy_ = false;
    if (error != 0) {
      ++failures_;
      waiting_.push_back(node);
      changed_.notify_all();
      changed_.wait_for(lock, std::chrono::seconds(1));
    }
    changed_.notify_all();
  }
}

void Keeper::finish() {
  for (const auto& node : nodes_.pinned()) {
    bool closed = true;
    {
      const std::shared_lock lock(node->lock);
      closed = std::ranges::all_of(
          node->handles, [](const Handle* handle) { return !handle->writes() || handle->closing; });
    }
    closed ? (void)hand_in(node) : drop(node);
  }
  {
    Lock lock(mutex_);
    // Each that cannot be brought has been tried once more.
    const std::uint64_t enough = failures_ + 1 + waiting_.size();
    changed_.wait(lock, [&] { return (waiting_.empty() && !busy_) || failures_ > enough; });
  }
  end();
  if (settings_.collector.empty() || !files::has_counts()) return;
  // Counts travel with questions, and no other follows.
  files::Link link(settings_.collector, "");
  link.ends_silent = false;
  files::Question question;
  question.ask = files::Ask::note;
  (void)files::ask(link, question);
}

}  // namespace backstay::mount
