#include "fake_agent.h"

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "base/checksum.h"
#include "wire/socket.h"

namespace backstay::client::test {

FakeAgent::FakeAgent(std::string path, Options options)
    : path_(std::move(path)), options_(std::move(options)) {
  auto listener = wire::listen_at(path_);
  if (!listener.ok()) {
    complain(listener.error().to_string());
    return;
  }
  listener_ = std::move(*listener);
  wake_.reset(::eventfd(0, EFD_CLOEXEC));
  const std::size_t bytes = std::size_t{options_.buffer_bytes} * options_.buffers;
  pool_fd_.reset(::memfd_create("pool", MFD_CLOEXEC));
  control_fd_.reset(::memfd_create("control", MFD_CLOEXEC));
  if (::ftruncate(pool_fd_.get(), static_cast<off_t>(bytes)) != 0 ||
      ::ftruncate(control_fd_.get(), 4096) != 0) {
    complain("no memory");
    return;
  }
  pool_ = static_cast<std::byte*>(
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, pool_fd_.get(), 0));
  control_ = static_cast<std::uint32_t*>(
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, control_fd_.get(), 0));
  control_[0] = options_.control_requests;
  forget_all();
  thread_ = std::thread([this] { loop(); });
}

FakeAgent::~FakeAgent() {
  stop();
  if (pool_ != nullptr) ::munmap(pool_, std::size_t{options_.buffer_bytes} * options_.buffers);
  if (control_ != nullptr) ::munmap(control_, 4096);
}

void FakeAgent::forget_all() {
  links_.clear();
  filling_.clear();
  restarting_.clear();
  returning_.clear();
  fetches_.clear();
  delivering_ = false;
  free_.clear();
  for (std::uint32_t i = 0; i < options_.buffers; ++i) free_.push_back(i);
}

void FakeAgent::stop() {
  if (!thread_.joinable()) return;
  (void)::eventfd_write(wake_.get(), 1);
  thread_.join();
}

std::string FakeAgent::problem() const {
  const std::lock_guard lock(mutex_);
  return problem_;
}

void FakeAgent::complain(const std::string& what) {
  const std::lock_guard lock(mutex_);
  if (problem_.empty()) problem_ = what;
}

void FakeAgent::request_checkpoint(bool stop) {
  if (stop) __atomic_store_n(control_ + 1, 1U, __ATOMIC_RELEASE);
  __atomic_fetch_add(control_, 1U, __ATOMIC_RELEASE);
}

std::unique_lock<std::mutex> FakeAgent::standstill() {
  std::unique_lock lock(moving_);
  waits_.wait(lock, [this] { return waiting_; });
  return lock;
}

void FakeAgent::wait_for_any(std::vector<pollfd>& descriptors) {
  waiting_ = true;
  moving_.unlock();
  waits_.notify_all();
  while (::poll(descriptors.data(), descriptors.size(), -1) < 0) {
  }
  moving_.lock();
  waiting_ = false;
}

void FakeAgent::loop() {
  const std::lock_guard moving(moving_);
  while (true) {
    std::vector<pollfd> wait{{wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    for (const auto& [fd, link] : links_) wait.push_back({fd, POLLIN, 0});
    wait_for_any(wait);
    const bool idle = std::all_of(wait.begin() + 1, wait.end(),
                                  [](const pollfd& one) { return one.revents == 0; });
    if (wait[0].revents != 0 && idle) break;
    if (wait[1].revents != 0) accept();
    Action action = Action::go_on;
    for (std::size_t i = 2; i < wait.size(); ++i) {
      if (wait[i].revents != 0) action = hear(wait[i].fd);
      if (action == Action::die || action == Action::reborn) break;
    }
    if (action == Action::die) break;
    if (action == Action::reborn) forget_all();
  }
  dead_ = true;
  links_.clear();
  listener_.reset();
}

void FakeAgent::accept() {
  auto accepted = wire::accept_from(listener_.get());
  if (!accepted.ok()) return;
  const int fd = accepted->get();
  links_[fd].socket = std::move(*accepted);
}

FakeAgent::Action FakeAgent::hear(int fd) {
  const auto found = links_.find(fd);
  if (found == links_.end()) return Action::go_on;
  auto received = wire::receive(fd);
  if (!received.ok()) {
    lost(found->second);
    links_.erase(found);
    return Action::go_on;
  }
  log.emplace_back(name_of(received->message));
  const Action action = options_.hook ? options_.hook(received->message) : Action::go_on;
  if (action == Action::go_on) obey(found->second, received->message);
  if (action == Action::cut_off)
    send(found->second, wire::Failure{Code::invalid, "cut off for a test"});
  if (action == Action::drop_rank || action == Action::cut_off) {
    lost(found->second);
    links_.erase(found);
  }
  return action;
}

void FakeAgent::obey(Link& link, const wire::Message& message) {
  if (const auto* hello = std::get_if<wire::Hello>(&message)) {
    link.hello = *hello;
    return welcome(link);
  }
  if (const auto* m = std::get_if<wire::Begin>(&message)) return begin(link, *m);
  if (const auto* m = std::get_if<wire::Filled>(&message)) return filled(link, *m);
  if (const auto* m = std::get_if<wire::End>(&message)) return end(link, *m);
  if (const auto* m = std::get_if<wire::Abandon>(&message)) return heard(link.hello.rank, *m);
  if (const auto* m = std::get_if<wire::Verified>(&message)) return verified(link, *m);
  if (const auto* m = std::get_if<wire::Restored>(&message)) return restored(link, *m);
  if (const auto* m = std::get_if<wire::Refuse>(&message)) {
    if (m->version == 0) return;                                 // how the restart has ended
    if (!fetching_ && m->version != returning_version_) return;  // another rank was faster
    return withdraw([this, refused = *m] { finish_restore(refused.code, refused.message); });
  }
  if (std::holds_alternative<wire::Withdrawn>(message)) return withdrawn(link.hello.rank);
  if (const auto* m = std::get_if<wire::Candidates>(&message)) return send(link, newest_below(*m));
  if (const auto* m = std::get_if<wire::Neighbours>(&message)) {
    neighbours.insert(neighbours.end(), m->neighbours.begin(), m->neighbours.end());
    return;
  }
  if (const auto* m = std::get_if<wire::Proceed>(&message)) return proceed(link, *m);
  if (const auto* m = std::get_if<wire::Fetch>(&message)) {
    fetches_.emplace_back(link.hello.rank, *m);
    return next_fetch();
  }
  if (const auto* m = std::get_if<wire::Restart>(&message)) {
    fetching_ = false;
    restarting_.insert(link.hello.rank);
    if (restarting_.size() < link.hello.local_ranks) return;
    several_nodes_ = link.hello.nodes > 1;
    if (on_restart) on_restart(*m);
    if (several_nodes_ && (m->version == 0 || m->run == 0)) complain("no fixed version");
    return restart(std::exchange(restarting_, {}), wire::Fetch{m->version});
  }
  if (std::holds_alternative<wire::Request>(message)) {
    ++requests_seen_;
    return request_checkpoint(std::get<wire::Request>(message).stop);
  }
  if (const auto* m = std::get_if<wire::Query>(&message)) return tell_level(link, m->version);
  if (const auto* m = std::get_if<wire::Await>(&message)) {
    const auto level = levels.find(m->version);
    const bool over = level == levels.end() || level->second >= m->level;
    if (over || fail_waits) tell_level(link, m->version);
  }
}

void FakeAgent::tell_level(Link& link, VersionNumber version) {
  wire::LevelIs is;
  is.version = version;
  const auto level = levels.find(version);
  if (objects.count(version) == 0) {
    is.code = Code::not_found;
    is.message = "no such version";
  } else {
    is.level = level == levels.end() ? Level::local : level->second;
    if (failed.count(version) != 0) {
      is.code = failed[version];
      is.message = "failed for a test";
    }
  }
  send(link, is);
}

void FakeAgent::welcome(Link& link) {
  if (options_.refuse_hello != Code::ok) {
    return send(link, wire::Failure{options_.refuse_hello, "refused for a test"});
  }
  wire::Welcome welcome;
  welcome.release = "test";
  welcome.pool_bytes = std::uint64_t{options_.buffer_bytes} * options_.buffers;
  welcome.buffer_bytes = options_.buffer_bytes;
  welcome.home_count = options_.buffers / link.hello.local_ranks;
  welcome.home_first = link.hello.local_rank * welcome.home_count;
  welcome.newest = objects.empty() ? 0 : objects.rbegin()->first;
  if (link.hello.nodes > 1) welcome.address = "fake-" + std::to_string(link.hello.node) + ":1";
  welcome.settings = options_.settings;
  // A rank that connects again may be heard before its old link is seen to have ended.
  for (auto& [fd, old] : links_) old.welcome &= old.hello.rank != link.hello.rank;
  link.welcome = true;
  send(link, welcome, {pool_fd_.get(), control_fd_.get()});
}

FakeAgent::Link* FakeAgent::link_of(Rank rank) {
  for (auto& [fd, link] : links_)
    if (link.welcome && link.hello.rank == rank) return &link;
  return nullptr;
}

void FakeAgent::send(Link& link, const wire::Message& message, const std::vector<int>& fds) {
  (void)wire::send(link.socket.get(), message, fds);  // a rank that left is noticed by poll
}

// --- capture -------------------------------------------------------------------------------------

void FakeAgent::begin(Link& link, const wire::Begin& begin) {
  if (begin.version == given_up_) return;  // a slow rank's, which has been told
  if (filling_.empty()) filling_version_ = begin.version;
  if (begin.version != filling_version_) complain("ranks begin different versions");
  if (objects.count(begin.version) != 0) complain("a version number was used twice");
  Filling& mine = filling_[link.hello.rank];
  mine.bytes = begin.object_bytes;
  grant();
}

void FakeAgent::grant() {
  for (bool any = true; any;) {
    any = false;
    for (auto& [rank, mine] : filling_) {
      const std::size_t needed = chunks_of(mine.bytes - mine.object.size());
      Link* link = link_of(rank);
      if (link == nullptr || free_.empty() || mine.granted.size() >= needed) continue;
      send(*link, wire::Grant{filling_version_, {free_.back()}});
      mine.granted.insert(free_.back());
      free_.pop_back();
      any = true;
    }
  }
}

void FakeAgent::filled(Link& link, const wire::Filled& filled) {
  const auto at = filling_.find(link.hello.rank);
  if (at == filling_.end() || filled.version != filling_version_) return;
  Filling& mine = at->second;
  for (const wire::ChunkInPool& chunk : filled.chunks) {
    const auto expected =
        std::min<std::uint64_t>(options_.buffer_bytes, mine.bytes - mine.object.size());
    if (mine.granted.erase(chunk.buffer) == 0) complain("a buffer that was not granted");
    if (chunk.length != expected) complain("a buffer that is not full");
    if (chunk.object_offset != mine.object.size()) complain("chunks out of order");
    const Bytes bytes(buffer(chunk.buffer), chunk.length);
    if (checksum(bytes) != chunk.checksum) complain("a wrong checksum");
    mine.object.insert(mine.object.end(), bytes.begin(), bytes.end());
    free_.push_back(chunk.buffer);
  }
  grant();
}

void FakeAgent::end(Link& link, const wire::End& end) {
  const auto at = filling_.find(link.hello.rank);
  if (at == filling_.end() || end.version != filling_version_) return;
  if (at->second.object.size() != at->second.bytes) complain("the object is not whole");
  at->second.ended = true;
  for (const std::uint32_t rest : std::exchange(at->second.granted, {})) free_.push_back(rest);
  if (filling_.size() < link.hello.local_ranks) return;
  if (!std::all_of(filling_.begin(), filling_.end(), [](auto& one) { return one.second.ended; }))
    return;
  const Code code = end_with;
  if (code == Code::ok)
    for (auto& [rank, mine] : filling_) objects[filling_version_][rank] = std::move(mine.object);
  filling_.clear();
  for (auto& [fd, other] : links_) send(other, wire::Captured{filling_version_, code, ""});
}

// --- a rank that is lost, or gives up ------------------------------------------------------------

void FakeAgent::heard(Rank rank, const wire::Abandon& abandon) {
  for (const std::uint32_t out : std::exchange(unanswered_[rank], {})) free_.push_back(out);
  if (abandon.code != Code::ok) give_up(rank, abandon.code, abandon.message);
}

void FakeAgent::give_up(Rank by, Code code, const std::string& why) {
  if (filling_.empty()) return;
  for (auto& [rank, mine] : filling_) {
    auto& to = rank == by ? free_ : unanswered_[rank];
    to.insert(to.end(), mine.granted.begin(), mine.granted.end());
  }
  filling_.clear();
  given_up_ = filling_version_;
  for (auto& [fd, link] : links_) {
    const bool gone = code == Code::rank_lost && link.hello.rank == by;
    if (link.welcome && !gone) send(link, wire::Captured{filling_version_, code, why});
  }
}

void FakeAgent::lost(const Link& link) {
  const Rank rank = link.hello.rank;
  heard(rank, {});
  if (!link.welcome) return;
  give_up(rank, Code::rank_lost, "a rank was lost");
  if (returning_.count(rank) != 0) {
    returning_.erase(rank);
    finish_restore(Code::rank_lost, "a rank was lost");
  }
}

pid_t fork_beside(const std::vector<FakeAgent*>& agents) {
  std::vector<std::unique_lock<std::mutex>> still;
  still.reserve(agents.size());
  for (FakeAgent* agent : agents) still.push_back(agent->standstill());
  return ::fork();
}

}  // namespace backstay::client::test
