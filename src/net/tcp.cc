#include "net/tcp.h"

#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <map>
#include <optional>

#include "base/log.h"
#include "net/address.h"
#include "net/greeting.h"
#include "net/resolver.h"

namespace backstay::net {

namespace {

constexpr std::size_t strangers_max = 64;  // connections to us that have not proved themselves
constexpr double stranger_s = 5;
constexpr int wakeups_a_call = 64;
constexpr int ticks = 10;                    // in dead_after_s
constexpr int unsent_bytes_max = 256 << 10;  // that the kernel may hold of a connection

// Tags of epoll events that do not belong to a connection.
constexpr std::uint64_t of_listener = 0, of_timer = UINT64_MAX, of_resolver = UINT64_MAX - 1,
                        of_bulk = UINT64_MAX - 2;

// Small frames overtake data in our own queue, but not in the kernel's. With megabytes of data
// there, each request of a transfer would wait for them, and its answer for those of the other
// side.
void tune(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(socket, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent_bytes_max, sizeof unsent_bytes_max);
}

// A connection in any state: being looked up, dialled, greeted, open.
struct Link {
  bool called_by_us = false;
  std::string address;         // of the peer, for messages
  std::uint64_t heard_ns = 0;  // the last sign of life, or when its state began
  std::uint64_t spoke_ns = 0;
  // Until it must be open; no_deadline while it is looked up.
  std::uint64_t deadline_ns = no_deadline;
  std::uint64_t dial_until_ns = 0;  // the present candidate
  bool watching_write = false;
  std::vector<SocketAddress> candidates;  // to be dialled, the next one last
  std::optional<Error> why_not;           // the error of the last candidate
  Fd dialling;
  std::unique_ptr<Greeting> greeting;
  std::unique_ptr<Connection> open;

  int socket() const {
    return open ? open->socket() : greeting ? greeting->socket() : dialling.get();
  }
};

Error unreachable(int sys_errno) {
  return Error(Code::agent_lost, errno_error("it cannot be reached", sys_errno).message(),
               sys_errno);
}

std::uint64_t to_ns(double seconds) { return static_cast<std::uint64_t>(seconds * 1e9); }

}  // namespace

class Tcp final : public Transport {
 public:
  explicit Tcp(TcpOptions options) : options_(std::move(options)) {}
  Status start();

  const Facts& facts() const override { return facts_; }
  std::vector<Event> progress() override;
  PeerId connect(const std::string& address) override;
  Status send(PeerId peer, Bytes bytes) override;
  Result<OfferId> offer(PeerId peer, Bytes header, Bytes memory) override;
  Status fetch(PeerId peer, OfferId offer, std::span<std::byte> memory) override;
  Status refuse(PeerId peer, OfferId offer) override;
  void pause(bool on) override;
  void close(PeerId peer) override;

 private:
  using Links = std::map<PeerId, Link>;
  // A connection that has ended, but whose memory the bulk lane may still use.
  struct Leaving {
    PeerId peer;
    std::unique_ptr<Connection> open;
    Error why;
    Status closed;
  };

  Status watch(int descriptor, std::uint64_t tag);
  void watch_link(PeerId peer, Link& link, bool write, int how);
  void want_write(PeerId peer, Link& link);
  void set_timer(bool now);
  void listen(bool wanted);

  Link& add_link(PeerId peer);
  void accept_strangers();
  void welcome(Fd socket);
  void resolved();
  Status dial(PeerId peer, Link& link);
  Status dialled(PeerId peer, Link& link);
  Status greeted(PeerId peer, Link& link);
  Status advance(PeerId peer, Link& link, std::uint32_t what);
  void serve(PeerId peer, std::uint32_t what);

  void forgive_silence();
  void tick();
  Status check(PeerId peer, Link& link);
  void end(Links::iterator at, const Error& why, Status closed);
  void wait_for_release(Leaving leaving);
  void say_end(const Leaving& leaving);
  void move_bulk();
  void fail(PeerId peer, const Error& why);
  Result<Link*> open_link(PeerId peer);

  TcpOptions options_;
  Facts facts_;
  std::optional<SocketAddress> device_;
  std::uint64_t now_ns_ = 0;  // of this progress()
  Fd epoll_, timer_, listener_;
  Resolver resolver_;
  PeerId last_peer_ = 0;
  std::size_t strangers_ = 0;
  bool listening_ = false;
  bool paused_ = false;
  std::vector<Event> events_;  // before links_: connections write into it
  Links links_;
  std::vector<Leaving> leaving_;
};

// --- set-up --------------------------------------------------------------------------------------

Status Tcp::start() {
  if (options_.identity.size() > identity_bytes_max)
    return Error(Code::invalid,
                 "an identity of more than " + std::to_string(identity_bytes_max) + " bytes");
  if (!(options_.dead_after_s > 0) || !std::isfinite(options_.dead_after_s))
    return Error(Code::invalid, "dead_after_s must be above 0");
  if (!options_.device.empty()) {
    BACKSTAY_ASSIGN(device_, address_of_device(options_.device));
  }
  BACKSTAY_ASSIGN(listener_, listen_at(device_ ? &*device_ : nullptr, options_.port));
  epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  timer_.reset(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!epoll_.valid() || !timer_.valid()) return errno_error("make a network descriptor", errno);
  BACKSTAY_TRY(watch(timer_.get(), of_timer));
  BACKSTAY_TRY(watch(resolver_.descriptor(), of_resolver));
  if (options_.bulk) BACKSTAY_TRY(watch(options_.bulk->descriptor(), of_bulk));
  listen(true);
  now_ns_ = system_clock().monotonic_ns();

  char host[256] = "localhost";
  ::gethostname(host, sizeof host - 1);
  SocketAddress bound = own_address(listener_.get());
  facts_ = {.kind = "tcp",
            .address = device_ ? bound.text() : host + (":" + std::to_string(bound.port())),
            .descriptor = epoll_.get(),
            .message_bytes_max = message_bytes_max,
            .header_bytes_max = offer_header_bytes_max,
            .offer_bytes_max = offer_bytes_max,
            .offers_max = options_.limits.offers_max,
            .queued_bytes_max = options_.limits.queued_bytes_max,
            .dead_after_s = options_.dead_after_s};
  return {};
}

Status Tcp::watch(int descriptor, std::uint64_t tag) {
  epoll_event event{EPOLLIN, {.u64 = tag}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0)
    return errno_error("watch a descriptor", errno);
  return {};
}

void Tcp::watch_link(PeerId peer, Link& link, bool write, int how) {
  epoll_event event{EPOLLIN | (write ? std::uint32_t{EPOLLOUT} : 0u), {.u64 = peer}};
  BACKSTAY_CHECK(::epoll_ctl(epoll_.get(), how, link.socket(), &event) == 0);
  link.watching_write = write;
}

void Tcp::want_write(PeerId peer, Link& link) {
  if (!link.watching_write) watch_link(peer, link, true, EPOLL_CTL_MOD);
}

// New connections wait in the kernel while unproved ones fill all places or no descriptor is left.
void Tcp::listen(bool wanted) {
  if (wanted == listening_) return;
  listening_ = wanted;
  epoll_event event{EPOLLIN, {.u64 = of_listener}};
  BACKSTAY_CHECK(::epoll_ctl(epoll_.get(), wanted ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, listener_.get(),
                             &event) == 0);
}

void Tcp::set_timer(bool now) {
  itimerspec when{};
  const std::uint64_t tick_ns =
      std::max<std::uint64_t>(to_ns(options_.dead_after_s) / ticks, 1'000'000);
  const bool beats = !links_.empty() || !leaving_.empty() || !listening_;
  if (beats) {
    when.it_interval = {static_cast<time_t>(tick_ns / 1'000'000'000),
                        static_cast<long>(tick_ns % 1'000'000'000)};
    when.it_value = when.it_interval;
  }
  if (now) when.it_value = {0, 1};
  ::timerfd_settime(timer_.get(), 0, &when, nullptr);
}

// --- links on their way --------------------------------------------------------------------------

Link& Tcp::add_link(PeerId peer) {
  Link& link = links_[peer];
  if (links_.size() == 1) set_timer(false);
  return link;
}

void Tcp::accept_strangers() {
  while (strangers_ < strangers_max) {
    Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.valid()) {
      welcome(std::move(socket));
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      spdlog::warn("no connection can be accepted now: {}", errno_error("accept", errno).message());
      break;
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return;
    }
  }
  listen(false);  // the next tick tries again
  set_timer(false);
}

void Tcp::welcome(Fd socket) {
  tune(socket.get());
  const PeerId peer = ++last_peer_;
  Link& link = add_link(peer);
  link.address = peer_address(socket.get()).text();
  link.deadline_ns = now_ns_ + to_ns(std::min(stranger_s, options_.dead_after_s));
  link.greeting = std::make_unique<Greeting>(std::move(socket), Role::answerer, options_.secret,
                                             options_.identity);
  watch_link(peer, link, false, EPOLL_CTL_ADD);
  ++strangers_;
}

PeerId Tcp::connect(const std::string& address) {
  const PeerId peer = ++last_peer_;
  const auto where = split_address(address);
  if (!where.ok()) {
    events_.emplace_back(Closed{peer, where.error()});
    set_timer(true);
    return peer;
  }
  Link& link = add_link(peer);
  link.called_by_us = true;
  link.address = address;
  resolver_.ask(peer, *where);
  return peer;
}

void Tcp::resolved() {
  for (auto& answer : resolver_.answers()) {
    const auto at = links_.find(answer.tag);
    if (at == links_.end()) continue;
    if (!answer.addresses.ok()) {
      fail(answer.tag, answer.addresses.error());
      continue;
    }
    Link& link = at->second;
    link.candidates.assign(answer.addresses->rbegin(), answer.addresses->rend());
    link.deadline_ns = now_ns_ + to_ns(options_.dead_after_s);
    if (const Status status = dial(answer.tag, link); !status.ok())
      fail(answer.tag, status.error());
  }
}

// Begins to connect to the next candidate. An error: none is left.
Status Tcp::dial(PeerId peer, Link& link) {
  while (!link.candidates.empty()) {
    const SocketAddress to = link.candidates.back();
    link.dial_until_ns = now_ns_ + (link.deadline_ns - now_ns_) / link.candidates.size();
    link.candidates.pop_back();
    link.dialling.reset(
        ::socket(to.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!link.dialling.valid()) return errno_error("make a socket", errno);
    bool failed = false;
    if (device_) {
      SocketAddress from = *device_;
      from.set_port(0);
      failed = ::bind(link.socket(), from.get(), from.length) != 0;
    }
    failed = failed || (::connect(link.socket(), to.get(), to.length) != 0 && errno != EINPROGRESS);
    if (!failed) {
      watch_link(peer, link, true, EPOLL_CTL_ADD);
      return {};
    }
    link.why_not = unreachable(errno);
  }
  return link.why_not.value_or(unreachable(EADDRNOTAVAIL));
}

Status Tcp::dialled(PeerId peer, Link& link) {
  int error = 0;
  socklen_t length = sizeof error;
  ::getsockopt(link.socket(), SOL_SOCKET, SO_ERROR, &error, &length);
  if (error != 0) {
    link.why_not = unreachable(error);
    return dial(peer, link);
  }
  tune(link.socket());
  link.greeting = std::make_unique<Greeting>(std::move(link.dialling), Role::caller,
                                             options_.secret, options_.identity);
  return greeted(peer, link);
}

Status Tcp::greeted(PeerId peer, Link& link) {
  BACKSTAY_TRY(link.greeting->progress());
  if (!link.greeting->done()) return {};
  events_.emplace_back(Connected{peer, link.greeting->peer_identity()});
  link.open = std::make_unique<Connection>(link.greeting->take_socket(), peer, options_.limits,
                                           options_.bulk.get(), events_);
  link.open->pause(paused_);
  link.greeting.reset();
  link.heard_ns = link.spoke_ns = now_ns_;
  if (!link.called_by_us) --strangers_;
  return {};
}

// --- progress ------------------------------------------------------------------------------------

Status Tcp::advance(PeerId peer, Link& link, std::uint32_t what) {
  if (link.dialling.valid()) return dialled(peer, link);
  if (link.greeting) return greeted(peer, link);
  if (what & ~std::uint32_t{EPOLLOUT}) BACKSTAY_TRY(link.open->read());
  if (link.open->wants_write()) BACKSTAY_TRY(link.open->write());
  if (link.open->heard()) link.heard_ns = now_ns_;
  if (link.open->spoke()) link.spoke_ns = now_ns_;
  return {};
}

void Tcp::serve(PeerId peer, std::uint32_t what) {
  const auto at = links_.find(peer);
  if (at == links_.end()) return;  // ended meanwhile
  Link& link = at->second;
  if (const Status status = advance(peer, link, what); !status.ok())
    return fail(peer, status.error());
  const bool write = link.dialling.valid() || (link.greeting && link.greeting->wants_write()) ||
                     (link.open && link.open->wants_write());
  if (write != link.watching_write) watch_link(peer, link, write, EPOLL_CTL_MOD);
}

std::vector<Event> Tcp::progress() {
  const std::uint64_t before_ns = std::exchange(now_ns_, system_clock().monotonic_ns());
  if (now_ns_ - before_ns > to_ns(options_.dead_after_s) / 2) forgive_silence();
  epoll_event ready[wakeups_a_call];
  const int count = ::epoll_wait(epoll_.get(), ready, wakeups_a_call, 0);
  bool ticked = false;
  for (int i = 0; i < count; ++i) {
    const std::uint64_t tag = ready[i].data.u64;
    if (tag == of_listener) {
      accept_strangers();
    } else if (tag == of_resolver) {
      resolved();
    } else if (tag == of_timer) {
      ticked = true;
    } else if (tag != of_bulk) {
      serve(tag, ready[i].events);
    }
  }
  if (options_.bulk) move_bulk();
  // Last, and only when every socket has been read: what has arrived is a sign of life.
  if (ticked && count < wakeups_a_call) tick();
  return std::exchange(events_, {});
}

void Tcp::move_bulk() {
  bool more = false;
  for (const BulkEvent& event : options_.bulk->progress(&more)) {
    const auto at = links_.find(event.peer);
    if (at == links_.end()) continue;  // ended meanwhile
    if (const Status status = at->second.open->bulk(event); !status.ok())
      fail(event.peer, status.error());
    else if (at->second.open->wants_write())
      want_write(event.peer, at->second);
  }
  for (auto at = leaving_.begin(); at != leaving_.end();) {
    if (at->open->released()) {
      say_end(*at);
      at = leaving_.erase(at);
    } else {
      ++at;
    }
  }
  if (more) set_timer(true);
}

// Restarts the count of silence after a long pause of our own, which may be the cause of it.
void Tcp::forgive_silence() {
  for (auto& [peer, link] : links_) link.heard_ns = now_ns_;
}

void Tcp::tick() {
  std::uint64_t ignored = 0;
  if (::read(timer_.get(), &ignored, sizeof ignored) < 0) return;
  if (strangers_ < strangers_max) listen(true);
  std::vector<std::pair<PeerId, Error>> failed;
  for (auto& [peer, link] : links_) {
    if (const Status status = check(peer, link); !status.ok())
      failed.emplace_back(peer, status.error());
  }
  for (const auto& [peer, why] : failed) fail(peer, why);
  if (links_.empty() && leaving_.empty()) set_timer(false);
}

Status Tcp::check(PeerId peer, Link& link) {
  const std::uint64_t dead_after_ns = to_ns(options_.dead_after_s);
  if (!link.open) {
    if (now_ns_ > link.deadline_ns)
      return link.why_not.value_or(Error(Code::agent_lost, "it does not answer"));
    if (link.dialling.valid() && now_ns_ > link.dial_until_ns) return dial(peer, link);
    return {};
  }
  if (now_ns_ > link.heard_ns + dead_after_ns)
    return Error(Code::agent_lost,
                 "nothing was heard from it for " + fmt::format("{:g} s", options_.dead_after_s));
  if (now_ns_ > link.spoke_ns + dead_after_ns / 5) {
    link.open->ping();
    want_write(peer, link);
  }
  return {};
}

void Tcp::end(Links::iterator at, const Error& why, Status closed) {
  Link& link = at->second;
  Leaving leaving{at->first, std::move(link.open), why, std::move(closed)};
  if (leaving.open) {
    leaving.open->leave();
    if (leaving.open->released())
      say_end(leaving);
    else
      wait_for_release(std::move(leaving));
  } else if (link.called_by_us) {
    say_end(leaving);
  } else {
    --strangers_;
    spdlog::info("a connection was turned away: {}", why.message());
  }
  links_.erase(at);
}

// Asks the bulk lane at once, then with every tick.
void Tcp::wait_for_release(Leaving leaving) {
  leaving_.push_back(std::move(leaving));
  set_timer(true);
}

void Tcp::say_end(const Leaving& leaving) {
  if (leaving.open) leaving.open->end(leaving.why);
  events_.emplace_back(Closed{leaving.peer, leaving.closed});
}

void Tcp::fail(PeerId peer, const Error& why) {
  const auto at = links_.find(peer);
  const Error whole = why.context(at->second.address);
  end(at, whole, whole);
}

// --- verbs ---------------------------------------------------------------------------------------

void Tcp::close(PeerId peer) {
  const auto at = links_.find(peer);
  if (at == links_.end() || !(at->second.open || at->second.called_by_us)) return;
  end(at, Error(Code::state, "the connection was closed by us"), {});
  set_timer(true);
}

Result<Link*> Tcp::open_link(PeerId peer) {
  const auto at = links_.find(peer);
  if (at == links_.end() || !(at->second.open || at->second.called_by_us))
    return Error(Code::agent_lost, "this connection has ended");
  if (!at->second.open) return Error(Code::state, at->second.address + " is not connected yet");
  return &at->second;
}

Status Tcp::send(PeerId peer, Bytes bytes) {
  BACKSTAY_ASSIGN(Link * link, open_link(peer));
  BACKSTAY_TRY(link->open->send(bytes));
  want_write(peer, *link);
  return {};
}

Result<OfferId> Tcp::offer(PeerId peer, Bytes header, Bytes memory) {
  BACKSTAY_ASSIGN(Link * link, open_link(peer));
  BACKSTAY_ASSIGN(const OfferId number, link->open->offer(header, memory));
  want_write(peer, *link);
  return number;
}

Status Tcp::fetch(PeerId peer, OfferId offer, std::span<std::byte> memory) {
  BACKSTAY_ASSIGN(Link * link, open_link(peer));
  BACKSTAY_TRY(link->open->fetch(offer, memory));
  want_write(peer, *link);
  return {};
}

Status Tcp::refuse(PeerId peer, OfferId offer) {
  BACKSTAY_ASSIGN(Link * link, open_link(peer));
  BACKSTAY_TRY(link->open->refuse(offer));
  want_write(peer, *link);
  return {};
}

void Tcp::pause(bool on) {
  if (std::exchange(paused_, on) == on) return;
  for (auto& [peer, link] : links_) {
    if (!link.open) continue;
    link.open->pause(on);
    if (link.open->wants_write()) want_write(peer, link);
  }
}

Result<std::unique_ptr<Transport>> make_tcp(TcpOptions options) {
  auto tcp = std::make_unique<Tcp>(std::move(options));
  BACKSTAY_TRY(tcp->start());
  return std::unique_ptr<Transport>(std::move(tcp));
}

}  // namespace backstay::net
