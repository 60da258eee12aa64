#include "agent/server/server.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "agent/server/metrics.h"
#include "agent/server/server_slot.h"
#include "agent/server/status.h"
#include "base/clock.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "store/event_log.h"
#include "store/guarded_tier.h"
#include "store/job_lock.h"

namespace backstay::agent {

namespace {

// What epoll reports; from 16 on it is a connection, with this bit the process at its other end.
constexpr std::uint64_t from_process = std::uint64_t{1} << 63;
constexpr std::uint64_t from_listener = 1;
constexpr std::uint64_t from_signals = 2;
constexpr std::uint64_t from_stores = 3;
constexpr std::uint64_t from_name = 4;
constexpr std::uint64_t from_metrics = 5;
// A peer that never reads is cut off. Tools get long answers and ask for one at a time.
constexpr std::size_t outgoing_max = 100'000;
constexpr std::size_t outgoing_max_of_tool = 100;
constexpr int messages_a_turn = 64;  // then the other connections have theirs

Status make_nonblocking(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) {
    return errno_error("make a socket non-blocking", errno);
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Server>> Server::create(ServerOptions options, std::unique_ptr<Pool> pool) {
  BACKSTAY_ASSIGN(Fd listener, wire::listen_at(options.socket_path));
  std::unique_ptr<Server> server(
      new Server(std::move(options), std::move(pool), std::move(listener)));
  BACKSTAY_TRY(server->open_loop());
  server->open_metrics();
  return server;
}

Server::Server(ServerOptions options, std::unique_ptr<Pool> pool, Fd listener)
    : options_(std::move(options)),
      pool_(std::move(pool)),
      listener_(std::move(listener)),
      socket_path_watch_(options_.socket_path),
      started_ns_(system_clock().monotonic_ns()),
      disk_facts_(std::make_shared<SharedDiskFacts>()) {}

Server::~Server() { remove_socket(); }

void Server::remove_socket() const { wire::remove_name(options_.socket_path, socket_); }

// Programs would start another agent, which could not serve our jobs.
void Server::look_after_name() {
  socket_path_watch_.take_news();
  constexpr int tries = 3;  // a new folder is watched only once it is there
  for (int left = tries; left > 0 && !unreachable_; --left) {
    const auto now = wire::file_at(options_.socket_path);
    if (now.ok() && *now == socket_) return;
    const Status again = listen_again();
    if (again.ok()) continue;
    unreachable_ = true;
    spdlog::warn(
        "the socket {} has gone and cannot be made again ({}): the agent serves those who "
        "are connected, then ends",
        options_.socket_path, again.error().message());
  }
}

Status Server::listen_again() {
  BACKSTAY_ASSIGN(Fd listener, wire::listen_at(options_.socket_path));
  BACKSTAY_ASSIGN(const wire::FileId socket, wire::file_at(options_.socket_path));
  BACKSTAY_TRY(make_nonblocking(listener.get()));
  accept_all();  // who came while the name was there
  BACKSTAY_TRY(watch(listener.get(), from_listener, false, false));
  listener_ = std::move(listener);
  socket_ = socket;
  socket_path_watch_.renew();
  spdlog::warn("the socket {} had gone and was made again", options_.socket_path);
  return {};
}

Status Server::open_loop() {
  BACKSTAY_ASSIGN(socket_, wire::file_at(options_.socket_path));
  epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  signals_ = Fd(::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  reserve_ = Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!epoll_.valid() || !signals_.valid() || !reserve_.valid()) {
    return errno_error("open the main loop", errno);
  }
  BACKSTAY_TRY(make_nonblocking(listener_.get()));
  BACKSTAY_TRY(watch(listener_.get(), from_listener, false, false));
  BACKSTAY_TRY(watch(signals_.get(), from_signals, false, false));
  if (socket_path_watch_.descriptor() >= 0) {
    BACKSTAY_TRY(watch(socket_path_watch_.descriptor(), from_name, false, false));
  }
  return watch(events_.descriptor(), from_stores, false, false);
}

// No program needs metrics: without them the agent works on.
void Server::open_metrics() {
  if (options_.metrics_port == 0) return;
  auto page = serve_metrics(options_.metrics_address, options_.metrics_port,
                            [this] { return to_metrics(status_input()); });
  Status opened =
      page.ok() ? watch((*page)->descriptor(), from_metrics, false, false) : Status(page.error());
  if (opened.ok()) {
    metrics_ = std::move(*page);
    return spdlog::info("metrics at http://{}:{}/metrics", options_.metrics_address,
                        options_.metrics_port);
  }
  metrics_error_ = opened.error().to_string();
  spdlog::error("no metrics: {}", metrics_error_);
}

Status Server::watch(int fd, std::uint64_t what, bool also_writable, bool modify) {
  epoll_event event{};
  event.events = EPOLLIN | (also_writable ? static_cast<unsigned>(EPOLLOUT) : 0u);
  event.data.u64 = what;
  if (::epoll_ctl(epoll_.get(), modify ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event) != 0) {
    return errno_error("watch a descriptor", errno);
  }
  return {};
}

Status Server::run() {
  constexpr int events_max = 64;
  epoll_event events[events_max];
  quiet_since_ns_ = system_clock().monotonic_ns();
  while (!finished()) {
    const int count = ::epoll_wait(epoll_.get(), events, events_max, timeout_ms());
    if (count < 0 && errno != EINTR) return errno_error("wait in the main loop", errno);
    for (int at = 0; at < count; ++at) dispatch(events[at].data.u64, events[at].events);
    pump();
    answer_looks();
    if (metrics_ && system_clock().monotonic_ns() >= metrics_->wants_ns()) metrics_->progress();
    bury();
    close_unused_jobs();
  }
  say_what_is_lost();
  spdlog::info("agent ends");
  return {};
}

void Server::dispatch(std::uint64_t what, std::uint32_t events) {
  if (what == from_listener) return accept_all();
  if (what == from_stores) return store_events();
  if (what == from_name) return look_after_name();
  if (what == from_metrics) return metrics_->progress();
  if (what == from_signals) {
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
      // A second signal does not wait for the disk.
      if (draining_) stop_now_ = true;
    }
    return begin_drain();
  }
  if ((what & from_network) != 0) return network_event(what & ~from_network);
  if ((what & from_process) != 0) {
    // Reported again until the rest of its messages is read.
    const auto at = connections_.find(what & ~from_process);
    if (at != connections_.end()) at->second.peer_ended = true;
    return receive_all(what & ~from_process);
  }
  if ((events & EPOLLOUT) != 0) {
    if (const auto at = connections_.find(what); at != connections_.end()) {
      flush(what, at->second);
    }
  }
  if ((events & ~static_cast<unsigned>(EPOLLOUT)) != 0) receive_all(what);
}

void Server::network_event(std::uint64_t slot) {
  const auto at = slots_.find(slot);
  if (at != slots_.end()) at->second->job->network();
}

void Server::accept_all() {
  for (;;) {
    auto socket = wire::accept_from(listener_.get());
    if (!socket.ok()) {
      if (socket.error().code() == Code::permission) {
        spdlog::warn("refused a connection: {}", socket.error().to_string());
        continue;
      }
      if (socket.error().sys_errno() == EMFILE && refuse_for_want_of_descriptors()) continue;
      if (socket.error().code() != Code::again) {
        spdlog::error("cannot accept: {}", socket.error().to_string());
      }
      return;
    }
    const ConnectionId id = next_id_++;
    Status watched = make_nonblocking(socket->get());
    if (watched.ok()) watched = watch(socket->get(), id, false, false);
    if (!watched.ok()) {
      spdlog::error("cannot watch a connection: {}", watched.error().to_string());
      continue;
    }
    connections_[id].socket = std::move(*socket);
    watch_process(id, connections_[id]);
  }
}

// A process that has ended is gone for us too, though a helper that it forked may hold the
// connection open.
void Server::watch_process(ConnectionId id, Connection& connection) {
  auto peer = wire::process_of_peer(connection.socket.get());
  connection.peer_ended = peer.ended;
  if (!peer.process.valid()) return;
  if (watch(peer.process.get(), id | from_process, false, false).ok()) {
    connection.process = std::move(peer.process);
  }
}

// A peer that is left in the queue would keep the loop awake and wait without a word.
bool Server::refuse_for_want_of_descriptors() {
  reserve_.reset();
  bool refused = false;
  if (const auto socket = wire::accept_from(listener_.get()); socket.ok()) {
    const Error why(
        Code::too_large,
        "the agent has as many connections as its limit of open files allows; raise the "
        "hard limit (ulimit -n) before the agent starts");
    spdlog::warn("connection refused: {}", why.to_string());
    (void)wire::send(socket->get(), wire::Failure{why.code(), why.message()});
    refused = true;
  }
  reserve_ = Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  return refused;
}

void Server::receive_all(ConnectionId id) {
  for (int count = 0; count < messages_a_turn; ++count) {
    const auto at = connections_.find(id);
    if (at == connections_.end() || at->second.closing || at->second.broken) return;
    auto received = wire::receive(at->second.socket.get());
    if (received.ok()) {
      receive_one(id, std::move(received->message));
      continue;
    }
    if (received.error().code() == Code::again) {
      at->second.broken = at->second.peer_ended;
      return;
    }
    if (received.error().code() == Code::agent_lost || received.error().code() == Code::io) {
      at->second.broken = true;
      return;
    }
    return refuse(id, received.error());
  }
}

void Server::receive_one(ConnectionId id, wire::Message message) {
  Connection& connection = connections_.at(id);
  Status status;
  if (const auto* hello = std::get_if<wire::Hello>(&message)) {
    failpoint("hello.1");
    status = join(id, connection, *hello);
    failpoint("hello.2");
  } else if (const auto* join = std::get_if<wire::Join>(&message)) {
    status = this->join(id, connection, *join);
  } else if (std::holds_alternative<wire::Admin>(message) && connection.job == nullptr) {
    connection.admin = true;
  } else if (connection.admin) {
    admin_message(id, message);
  } else {
    status = rank_message(id, connection, message);
  }
  if (!status.ok()) refuse(id, status.error());
}

Status Server::rank_message(ConnectionId id, Connection& connection, const wire::Message& message) {
  if (connection.job == nullptr) return Error(Code::state, "hello comes first");
  if (std::holds_alternative<wire::Goodbye>(message)) {
    connection.goodbye = true;
    connection.closing = true;
    return {};
  }
  if (const auto* request = std::get_if<wire::Request>(&message)) {
    connection.job->request(request->stop);
    return {};
  }
  return connection.job->receive(id, message);
}

void Server::refuse(ConnectionId id, const Error& error) {
  // Clients retry many times a second: only the first refusal is logged.
  const bool again = draining_ && error.code() == Code::again;
  if (!again || !std::exchange(refused_while_ending_, true)) {
    spdlog::warn("connection refused: {}", error.to_string());
  }
  send(id, wire::Failure{error.code(), error.message()}, {});
  close(id);
}

// --- sending -------------------------------------------------------------------------------------

void Server::send(ConnectionId to, wire::Message message, std::vector<int> descriptors) {
  const auto at = connections_.find(to);
  if (at == connections_.end() || at->second.broken) return;
  at->second.outgoing.push_back({std::move(message), std::move(descriptors)});
  flush(to, at->second);
}

void Server::flush(ConnectionId id, Connection& connection) {
  while (!connection.outgoing.empty()) {
    const Outgoing& next = connection.outgoing.front();
    const Status sent = wire::send(connection.socket.get(), next.message, next.descriptors);
    if (!sent.ok() && sent.error().code() == Code::again) {
      const std::size_t limit = connection.admin ? outgoing_max_of_tool : outgoing_max;
      if (connection.outgoing.size() > limit) connection.broken = true;
      if (!std::exchange(connection.awaits_room, true)) {
        (void)watch(connection.socket.get(), id, true, true);
      }
      return;
    }
    if (!sent.ok()) {
      connection.broken = true;
      return;
    }
    connection.outgoing.pop_front();
  }
  if (std::exchange(connection.awaits_room, false)) {
    (void)watch(connection.socket.get(), id, false, true);
  }
}

void Server::close(ConnectionId connection) {
  const auto at = connections_.find(connection);
  if (at != connections_.end()) at->second.closing = true;
}

// Ends connections that are broken, or closing and sent out; then notifies their jobs.
void Server::bury() {
  std::vector<ConnectionId> dead;
  for (const auto& [id, connection] : connections_) {
    if (connection.broken || (connection.closing && connection.outgoing.empty())) {
      dead.push_back(id);
    }
  }
  for (const ConnectionId id : dead) {
    auto node = connections_.extract(id);
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, node.mapped().socket.get(), nullptr);
    if (node.mapped().job != nullptr) node.mapped().job->disconnected(id, node.mapped().goodbye);
    if (node.mapped().admin) {
      for (auto& [number, slot] : slots_) slot->job->disconnected(id, true);
    }
  }
  if (!dead.empty()) {
    pump();
    bury();
  }
}

// --- stores --------------------------------------------------------------------------

void Server::store_events() {
  for (Posted& posted : events_.take_all()) {
    if (const auto* written = std::get_if<ChunkWritten>(&posted.event))
      traffic_.written_bytes += written->bytes;
    if (const auto* read = std::get_if<ChunkRead>(&posted.event))
      traffic_.read_bytes += read->bytes;
    const auto at = slots_.find(posted.slot);
    if (at == slots_.end()) continue;
    Slot& slot = *at->second;
    if (posted.from_peer_files) {
      posted.from_peer_files();
      continue;
    }
    if (const auto* settled = std::get_if<Settled>(&posted.event)) {
      (posted.from_drain ? slot.settled_drain_posts : slot.settled_posts) = settled->ticket;
    } else if (posted.from_drain) {
      slot.job->on_drain(posted.event);
    } else {
      at->second->job->on(posted.event);
    }
  }
}

void Server::pump() {
  bool waits = false;
  for (auto& [number, slot] : slots_) {
    slot->job->pump();
    waits = waits || slot->job->waits_for_buffers();
  }
  if (!waits || pool_->free_count() > 0) return;
  // One job waits while another keeps buffers only for a fast restart.
  for (auto& [number, slot] : slots_) {
    if (slot->job->waits_for_buffers() || !slot->job->release_one()) continue;
    return pump();
  }
  // Nor may what can never be written hold up others.
  for (auto& [number, slot] : slots_) {
    if (slot->job->drop_unwritable()) return pump();
  }
}

std::uint64_t Server::next_deadline_ns() const {
  std::uint64_t next = UINT64_MAX;
  if (quiet() && options_.idle_exit_s > 0) {
    next = quiet_since_ns_ + seconds_to_ns(options_.idle_exit_s);
  }
  if (draining_ && drained()) next = std::min(next, waits_until_ns_);
  if (metrics_) next = std::min(next, metrics_->wants_ns());
  for (const auto& [number, slot] : slots_) {
    next = std::min(next, slot->job->next_deadline_ns());
    const bool waits = slot->unused_since_ns != 0 && slot->job->keeps_versions();
    if (!waits || slot->asked_posts == slot->posts) continue;  // else its store's answer wakes us
    next = std::min(next, slot->unused_since_ns + seconds_to_ns(options_.job_idle_s));
  }
  return next;
}

int Server::timeout_ms() const {
  const std::uint64_t next = next_deadline_ns();
  if (next == UINT64_MAX) return -1;
  const std::uint64_t now = system_clock().monotonic_ns();
  if (now >= next) return 0;
  return static_cast<int>(std::min<std::uint64_t>((next - now) / 1'000'000 + 1, 60'000));
}

}  // namespace backstay::agent
