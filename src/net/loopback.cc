#include "net/loopback.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "base/fd.h"
#include "net/frame.h"

namespace backstay::net {

class Endpoint;

struct LoopbackNetwork::State {
  const Clock& clock;
  LoopbackOptions options;
  std::map<std::string, Endpoint*> listening;
};

namespace {

constexpr std::size_t work_a_call = 256;
constexpr std::size_t queued_overhead = 32;  // so that empty messages cannot pile up either

// The parcels that one endpoint puts into the inbox of another.
struct Knock {  // a connection is asked for
  Endpoint* from;
  PeerId theirs;  // what the sender calls this connection
};
struct Welcome {};  // answer to a Knock
struct Pull {       // serve the fetch that the sender keeps under this number
  OfferId offer;
};
struct Refusal {
  OfferId offer;
};
struct Drained {};  // there is room in the queue again
struct Hangup {};
using Parcel = std::variant<Knock, Welcome, Message, Offered, Pull, Refusal, Drained, Hangup>;

struct Peer {
  Endpoint* other = nullptr;  // null once it has gone
  PeerId theirs = 0;          // its name for this connection; 0 before it has seen our knock
  bool connected = false;
  std::uint64_t patient_from_ns = 0;
  std::size_t queued_bytes = 0;  // ours, in its inbox
  bool wants_ready = false;
  OfferId last_offer = 0;
  std::map<OfferId, Bytes> offered;           // by us
  std::map<OfferId, std::uint64_t> on_offer;  // to us: bytes
  std::map<OfferId, std::span<std::byte>> fetching;
};

}  // namespace

class Endpoint final : public Transport {
 public:
  Endpoint(std::shared_ptr<LoopbackNetwork::State> state, const std::string& address)
      : state_(std::move(state)), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    facts_ = {.kind = "loopback",
              .address = address,
              .descriptor = wake_.get(),
              .message_bytes_max = message_bytes_max,
              .header_bytes_max = std::size_t{4} << 10,
              .offer_bytes_max = std::uint64_t{1} << 30,
              .offers_max = state_->options.offers_max,
              .queued_bytes_max = state_->options.queued_bytes_max,
              .dead_after_s = state_->options.dead_after_s};
    alive_ns_ = state_->clock.monotonic_ns();
    BACKSTAY_CHECK(state_->listening.emplace(address, this).second);
  }
  ~Endpoint() override;

  const Facts& facts() const override { return facts_; }
  std::vector<Event> progress() override;
  PeerId connect(const std::string& address) override;
  Status send(PeerId id, Bytes bytes) override;
  Result<OfferId> offer(PeerId id, Bytes header, Bytes memory) override;
  Status fetch(PeerId id, OfferId offer, std::span<std::byte> memory) override;
  Status refuse(PeerId id, OfferId offer) override;
  void pause(bool on) override;
  void close(PeerId id) override {
    end(id, Error(Code::state, "the connection was closed by us"), {});
  }

 private:
  Peer* find(PeerId id) {
    const auto at = peers_.find(id);
    return at == peers_.end() ? nullptr : &at->second;
  }
  void put(PeerId id, Parcel parcel) {
    inbox_.emplace_back(id, std::move(parcel));
    raise();
  }
  template <typename T>
  void say(T event) {
    events_.emplace_back(std::move(event));
    raise();
  }
  // The descriptor is readable, or is not: a system call only where that changes, as simulations
  // make millions of these.
  void raise() {
    if (!std::exchange(raised_, true)) eventfd_write(wake_.get(), 1);
  }
  void lower() {
    eventfd_t ignored = 0;
    if (std::exchange(raised_, false)) eventfd_read(wake_.get(), &ignored);
  }
  // To the peer's inbox, where it still has one.
  static void post(const Peer& peer, Parcel parcel);
  void leave(PeerId id, Peer& peer);
  void end(PeerId id, const Error& why, Status closed);
  void end_the_silent(std::uint64_t own_silence_ns);
  // The peer, if it takes `bytes` more now, and has offered this.
  Result<Peer*> writable(PeerId id, std::size_t bytes, std::size_t bytes_max);
  Result<Peer*> offering(PeerId id, OfferId offer);

  void receive(PeerId id, Peer* peer, Parcel& parcel);
  void accept(const Knock& knock);
  void serve(PeerId id, Peer& peer, OfferId offer);
  static void drained(Peer& peer, std::size_t bytes);
  void tell_ready(PeerId id, Peer& peer);

  const std::shared_ptr<LoopbackNetwork::State> state_;
  Facts facts_;
  Fd wake_;
  bool raised_ = false;         // wake_ is readable
  std::uint64_t alive_ns_ = 0;  // last progress()
  PeerId last_peer_ = 0;
  std::map<PeerId, Peer> peers_;
  std::deque<std::pair<PeerId, Parcel>> inbox_;
  std::vector<Event> events_;
  bool paused_ = false;
  std::vector<std::pair<PeerId, OfferId>> to_serve_;  // when it is not paused any more
};

void Endpoint::post(const Peer& peer, Parcel parcel) {
  if (peer.other) peer.other->put(peer.theirs, std::move(parcel));
}

Endpoint::~Endpoint() {
  for (auto& [id, peer] : peers_) leave(id, peer);
  for (auto& [id, parcel] : inbox_) {
    if (auto* knock = std::get_if<Knock>(&parcel)) {
      knock->from->find(knock->theirs)->other = nullptr;
      knock->from->put(knock->theirs, Hangup{});
    }
  }
  state_->listening.erase(facts_.address);
}

void Endpoint::leave(PeerId id, Peer& peer) {
  if (!peer.other) return;
  if (peer.theirs == 0) {  // it has not seen our knock yet, and shall not
    std::erase_if(peer.other->inbox_, [&](const auto& entry) {
      const auto* knock = std::get_if<Knock>(&entry.second);
      return knock && knock->from == this && knock->theirs == id;
    });
  } else {
    post(peer, Hangup{});
    peer.other->find(peer.theirs)->other = nullptr;
  }
  peer.other = nullptr;
}

void Endpoint::end(PeerId id, const Error& why, Status closed) {
  Peer* peer = find(id);
  if (!peer) return;
  for (const auto& [offer, memory] : peer->offered) say(Taken{id, offer, why});
  for (const auto& [offer, memory] : peer->fetching) say(Fetched{id, offer, why});
  leave(id, *peer);
  peers_.erase(id);
  say(Closed{id, std::move(closed)});
}

void Endpoint::end_the_silent(std::uint64_t own_silence_ns) {
  const auto limit = static_cast<std::uint64_t>(facts_.dead_after_s * 1e9);
  std::vector<PeerId> silent;
  for (auto& [id, peer] : peers_) {
    if (own_silence_ns > limit / 2) peer.patient_from_ns = alive_ns_;
    const std::uint64_t heard =
        std::max(peer.patient_from_ns, peer.other ? peer.other->alive_ns_ : 0);
    if (peer.other && alive_ns_ > heard + limit) silent.push_back(id);
  }
  for (const PeerId id : silent) {
    const Error error(Code::agent_lost, "nothing was heard for too long");
    end(id, error, error);
  }
}

std::vector<Event> Endpoint::progress() {
  const std::uint64_t before_ns = std::exchange(alive_ns_, state_->clock.monotonic_ns());
  for (std::size_t i = 0; i < work_a_call && !inbox_.empty(); ++i) {
    auto [id, parcel] = std::move(inbox_.front());
    inbox_.pop_front();
    receive(id, find(id), parcel);
  }
  end_the_silent(alive_ns_ - before_ns);
  inbox_.empty() ? lower() : raise();
  return std::exchange(events_, {});
}

void Endpoint::receive(PeerId id, Peer* peer, Parcel& parcel) {
  if (const auto* knock = std::get_if<Knock>(&parcel)) return accept(*knock);
  if (!peer) return;  // closed by us meanwhile
  if (std::holds_alternative<Welcome>(parcel)) {
    peer->connected = true;
    if (peer->other) say(Connected{id, peer->other->facts_.address});
  } else if (auto* message = std::get_if<Message>(&parcel)) {
    drained(*peer, message->bytes.size());
    say(Message{id, std::move(message->bytes)});
  } else if (auto* offered = std::get_if<Offered>(&parcel)) {
    drained(*peer, offered->header.size());
    peer->on_offer.emplace(offered->offer, offered->bytes);
    say(Offered{id, offered->offer, std::move(offered->header), offered->bytes});
  } else if (const auto* pull = std::get_if<Pull>(&parcel)) {
    if (!paused_) return serve(id, *peer, pull->offer);
    to_serve_.emplace_back(id, pull->offer);
  } else if (const auto* refusal = std::get_if<Refusal>(&parcel)) {
    peer->offered.erase(refusal->offer);
    say(Taken{id, refusal->offer, Error(Code::again, "the peer refused the offer")});
    tell_ready(id, *peer);
  } else if (std::holds_alternative<Drained>(parcel)) {
    tell_ready(id, *peer);
  } else {
    const Error error(Code::agent_lost, "the peer closed the connection");
    end(id, error, error);
  }
}

void Endpoint::accept(const Knock& knock) {
  const PeerId id = ++last_peer_;
  Peer& ours = peers_[id];
  ours.other = knock.from;
  ours.theirs = knock.theirs;
  ours.patient_from_ns = state_->clock.monotonic_ns();
  knock.from->find(knock.theirs)->theirs = id;
  ours.connected = true;
  post(ours, Welcome{});
  say(Connected{id, knock.from->facts_.address});
}

void Endpoint::serve(PeerId id, Peer& peer, OfferId offer) {
  Peer* fetcher = peer.other ? peer.other->find(peer.theirs) : nullptr;
  if (!fetcher) return;  // it has gone; its Hangup is under way
  const auto to = fetcher->fetching.find(offer);
  const auto from = peer.offered.find(offer);
  BACKSTAY_CHECK(to != fetcher->fetching.end() && from != peer.offered.end());
  std::copy(from->second.begin(), from->second.end(), to->second.begin());
  fetcher->fetching.erase(to);
  peer.offered.erase(from);
  peer.other->say(Fetched{peer.theirs, offer, {}});
  say(Taken{id, offer, {}});
  tell_ready(id, peer);
}

// The receiver has taken `bytes` out of the queue of the sender, who is peer.other.
void Endpoint::drained(Peer& peer, std::size_t bytes) {
  if (!peer.other) return;
  Peer* sender = peer.other->find(peer.theirs);
  sender->queued_bytes -= bytes + queued_overhead;
  if (sender->wants_ready) post(peer, Drained{});
}

void Endpoint::tell_ready(PeerId id, Peer& peer) {
  if (!peer.wants_ready || peer.queued_bytes > facts_.queued_bytes_max / 2 ||
      peer.offered.size() >= facts_.offers_max)
    return;
  peer.wants_ready = false;
  say(Ready{id});
}

PeerId Endpoint::connect(const std::string& address) {
  const PeerId id = ++last_peer_;
  const auto at = state_->listening.find(address);
  if (at == state_->listening.end()) {
    say(Closed{id, Error(Code::agent_lost, "no transport listens at " + address)});
    return id;
  }
  Peer& peer = peers_[id];
  peer.other = at->second;
  peer.patient_from_ns = state_->clock.monotonic_ns();
  peer.other->put(0, Knock{this, id});
  return id;
}

Result<Peer*> Endpoint::writable(PeerId id, std::size_t bytes, std::size_t bytes_max) {
  Peer* peer = find(id);
  if (!peer) return Error(Code::agent_lost, "this connection has ended");
  if (!peer->connected) return Error(Code::state, "not connected yet");
  if (bytes > bytes_max)
    return Error(Code::too_large, std::to_string(bytes) + " bytes where at most " +
                                      std::to_string(bytes_max) + " are allowed");
  if (peer->queued_bytes + bytes + queued_overhead > facts_.queued_bytes_max) {
    peer->wants_ready = true;
    return Error(Code::again, "the queue to this peer is full");
  }
  return peer;
}

Status Endpoint::send(PeerId id, Bytes bytes) {
  BACKSTAY_ASSIGN(Peer * peer, writable(id, bytes.size(), facts_.message_bytes_max));
  if (!peer->other) return {};  // what is sent before its Hangup was seen is lost
  peer->queued_bytes += bytes.size() + queued_overhead;
  post(*peer, Message{0, Buffer(bytes.begin(), bytes.end())});
  return {};
}

Result<OfferId> Endpoint::offer(PeerId id, Bytes header, Bytes memory) {
  if (memory.empty()) return Error(Code::invalid, "an offer of no bytes");
  if (memory.size() > facts_.offer_bytes_max)
    return Error(Code::too_large, "an offer is too large");
  BACKSTAY_ASSIGN(Peer * peer, writable(id, header.size(), facts_.header_bytes_max));
  if (peer->offered.size() >= facts_.offers_max) {
    peer->wants_ready = true;
    return Error(Code::again, "too many offers to this peer have not ended");
  }
  const OfferId number = ++peer->last_offer;
  peer->offered.emplace(number, memory);
  peer->queued_bytes += header.size() + queued_overhead;
  post(*peer, Offered{0, number, Buffer(header.begin(), header.end()), memory.size()});
  return number;
}

Status Endpoint::fetch(PeerId id, OfferId offer, std::span<std::byte> memory) {
  BACKSTAY_ASSIGN(Peer * peer, offering(id, offer));
  if (memory.size() != peer->on_offer.at(offer))
    return Error(Code::invalid, "the memory is not of the offer's size");
  peer->on_offer.erase(offer);
  peer->fetching.emplace(offer, memory);
  post(*peer, Pull{offer});
  return {};
}

Status Endpoint::refuse(PeerId id, OfferId offer) {
  BACKSTAY_ASSIGN(Peer * peer, offering(id, offer));
  peer->on_offer.erase(offer);
  post(*peer, Refusal{offer});
  return {};
}

void Endpoint::pause(bool on) {
  paused_ = on;
  if (on) return;
  for (const auto& [id, offer] : std::exchange(to_serve_, {})) {
    if (Peer* peer = find(id)) serve(id, *peer, offer);
  }
}

Result<Peer*> Endpoint::offering(PeerId id, OfferId offer) {
  Peer* peer = find(id);
  if (!peer) return Error(Code::agent_lost, "this connection has ended");
  if (!peer->on_offer.contains(offer)) return Error(Code::not_found, "no such offer");
  return peer;
}

LoopbackNetwork::LoopbackNetwork(const Clock& clock, LoopbackOptions options)
    : state_(std::make_shared<State>(State{clock, options, {}})) {}

std::unique_ptr<Transport> LoopbackNetwork::make(const std::string& address) {
  return std::make_unique<Endpoint>(state_, address);
}

}  // namespace backstay::net
