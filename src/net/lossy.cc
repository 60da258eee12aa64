#include "net/lossy.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <utility>

#include "base/fd.h"

namespace backstay::net {

namespace {

Error cut_off() { return Error(Code::agent_lost, "the network failed (played by the seed)"); }
Error gone() { return Error(Code::agent_lost, "this connection has ended"); }

// Whether an event ends a request or the connection, and must come whatever fails.
bool is_end(const Event& event) {
  return std::holds_alternative<Taken>(event) || std::holds_alternative<Fetched>(event) ||
         std::holds_alternative<Closed>(event);
}

// The status of an event that is_end().
Status& status_of(Event& event) {
  if (auto* taken = std::get_if<Taken>(&event)) return taken->status;
  if (auto* fetched = std::get_if<Fetched>(&event)) return fetched->status;
  return std::get<Closed>(event).status;
}

}  // namespace

class Lossy final : public LossyTransport {
 public:
  Lossy(std::unique_ptr<Transport> inner, const Clock& clock, LossyPlan plan)
      : inner_(std::move(inner)),
        clock_(clock),
        plan_(plan),
        random_(plan.seed),
        facts_(inner_->facts()),
        wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    facts_.kind = "lossy " + facts_.kind;
    for (const int one : {facts_.descriptor, wake_.get()}) {
      epoll_event event{EPOLLIN, {}};
      BACKSTAY_CHECK(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, one, &event) == 0);
    }
    facts_.descriptor = epoll_.get();
  }

  const Facts& facts() const override { return facts_; }
  void kill() override { killed_ = true; }
  std::vector<Event> progress() override;
  PeerId connect(const std::string& address) override;
  Status send(PeerId peer, Bytes bytes) override {
    BACKSTAY_TRY(check(peer));
    return inner_->send(peer, bytes);
  }
  Result<OfferId> offer(PeerId peer, Bytes header, Bytes memory) override {
    BACKSTAY_TRY(check(peer));
    return inner_->offer(peer, header, memory);
  }
  Status fetch(PeerId peer, OfferId offer, std::span<std::byte> memory) override {
    if (const auto at = peers_.find(peer); at != peers_.end() && at->second.ending) return gone();
    return inner_->fetch(peer, offer, memory);
  }
  Status refuse(PeerId peer, OfferId offer) override { return inner_->refuse(peer, offer); }
  void pause(bool on) override { inner_->pause(on); }
  void close(PeerId peer) override;

 private:
  struct Peer {
    bool connected = false;  // and Connected was reported
    bool ending = false;     // only ends still come
    bool cut = false;        // its ends are failures
    std::uint64_t last_due_ns = 0;
  };
  struct Held {
    std::uint64_t due_ns;
    Event event;
  };

  bool one_in(unsigned chance) {
    return chance > 0 && std::uniform_int_distribution<unsigned>(1, chance)(random_) == 1;
  }
  Status check(PeerId peer);
  void take(Event event);
  void hold(Event event);
  void cut(PeerId peer);
  void drop_held(PeerId peer);
  // As those of the loopback.
  void raise() {
    if (!std::exchange(raised_, true)) ::eventfd_write(wake_.get(), 1);
  }
  void lower() {
    eventfd_t ignored = 0;
    if (std::exchange(raised_, false)) ::eventfd_read(wake_.get(), &ignored);
  }

  const std::unique_ptr<Transport> inner_;
  const Clock& clock_;
  const LossyPlan plan_;
  std::mt19937_64 random_;
  Facts facts_;
  Fd wake_, epoll_;
  bool raised_ = false;  // wake_ is readable
  bool killed_ = false;
  std::map<PeerId, Peer> peers_;
  std::deque<Held> held_;
};

std::vector<Event> Lossy::progress() {
  if (killed_) return {};
  for (auto& event : inner_->progress()) take(std::move(event));
  const std::uint64_t now = clock_.monotonic_ns();
  std::vector<Event> due;
  std::deque<Held> later;
  for (auto& one : held_) {
    if (one.due_ns > now) {
      later.push_back(std::move(one));
      continue;
    }
    const PeerId peer = peer_of(one.event);
    if (std::holds_alternative<Connected>(one.event)) peers_[peer].connected = true;
    if (std::holds_alternative<Closed>(one.event)) peers_.erase(peer);
    due.push_back(std::move(one.event));
  }
  held_ = std::move(later);
  held_.empty() ? lower() : raise();
  return due;
}

// Takes an event of the inner transport: delays it, or lets the network fail in its place.
void Lossy::take(Event event) {
  Peer& peer = peers_[peer_of(event)];
  if (is_end(event)) {
    if (peer.cut) status_of(event) = cut_off();
    if (std::holds_alternative<Closed>(event)) peer.ending = true;
    return hold(std::move(event));
  }
  if (peer.ending) return;
  if (one_in(plan_.cut_one_in)) return cut(peer_of(event));
  if (const auto* offered = std::get_if<Offered>(&event); offered && one_in(plan_.refused_one_in)) {
    (void)inner_->refuse(offered->peer, offered->offer);  // fails only where the peer has gone
    return;
  }
  hold(std::move(event));
}

void Lossy::hold(Event event) {
  Peer& peer = peers_[peer_of(event)];
  const auto most = static_cast<std::uint64_t>(plan_.delay_s_max * 1e9);
  const auto delay = std::uniform_int_distribution<std::uint64_t>(0, most)(random_);
  peer.last_due_ns = std::max(peer.last_due_ns, clock_.monotonic_ns() + delay);
  held_.push_back({peer.last_due_ns, std::move(event)});
  raise();
}

void Lossy::drop_held(PeerId peer) {
  std::erase_if(held_,
                [&](const Held& one) { return peer_of(one.event) == peer && !is_end(one.event); });
}

void Lossy::cut(PeerId id) {
  Peer& peer = peers_[id];
  peer.ending = peer.cut = true;
  drop_held(id);
  inner_->close(id);
}

void Lossy::close(PeerId id) {
  const auto at = peers_.find(id);
  if (at == peers_.end()) return;
  at->second.ending = true;
  drop_held(id);
  inner_->close(id);
}

PeerId Lossy::connect(const std::string& address) {
  const PeerId peer = inner_->connect(address);
  peers_[peer];
  if (one_in(plan_.unreachable_one_in)) cut(peer);
  return peer;
}

// The checks of send() and offer() before they reach the inner transport.
Status Lossy::check(PeerId id) {
  const auto at = peers_.find(id);
  if (at == peers_.end() || at->second.ending) return gone();
  if (!at->second.connected) return Error(Code::state, "not connected yet");
  if (!one_in(plan_.busy_one_in)) return {};
  hold(Ready{id});
  return Error(Code::again, "the queue to this peer is full (played by the seed)");
}

std::unique_ptr<LossyTransport> make_lossy(std::unique_ptr<Transport> inner, const Clock& clock,
                                           LossyPlan plan) {
  return std::make_unique<Lossy>(std::move(inner), clock, plan);
}

}  // namespace backstay::net
