// Whatever a peer that has proved itself sends: the connection lives or ends with an error, keeps
// to its limits, and every offer and fetch of ours ends once.
#include <sys/socket.h>

#include <set>

#include "fuzz/fuzz.h"
#include "net/connection.h"

namespace {

using namespace backstay;

constexpr std::size_t offers_max = 4;

// A bulk lane whose transfers end at once, well or badly in turn.
class FakeLane final : public net::BulkLane {
 public:
  int descriptor() const override { return -1; }
  Bytes address() const override { return address_; }
  Status attach(net::PeerId, const net::BulkToken&, const net::BulkToken&, Bytes) override {
    return {};
  }
  void send(net::PeerId peer, net::OfferId offer, Bytes) override {
    events_.push_back({net::BulkEvent::What::sent, peer, offer, {}});
  }
  void expect(net::PeerId peer, net::OfferId offer, std::span<std::byte>) override {
    Status status;
    if (offer % 2 == 0) status = Error(Code::agent_lost, "played");
    events_.push_back({net::BulkEvent::What::received, peer, offer, status});
  }
  void detach(net::PeerId) override {}
  bool in_use(net::PeerId) const override { return false; }
  std::vector<net::BulkEvent> progress(bool*) override { return std::exchange(events_, {}); }

 private:
  const Buffer address_ = Buffer(3);
  std::vector<net::BulkEvent> events_;
};

// The owner of the connection: fetches or refuses what it is offered, up to 1 MiB.
class Owner {
 public:
  Owner(Fd socket, net::BulkLane* lane)
      : connection_(std::move(socket), 1,
                    {.offers_max = offers_max, .queued_bytes_max = std::size_t{1} << 20}, lane,
                    events_),
        lane_(lane) {
    memory_.reserve(64);
    for (int i = 0; i < 2; ++i) open_ += connection_.offer({}, ours_).ok() ? 1u : 0u;
  }
  ~Owner() {
    connection_.end(Error(Code::state, "over"));
    see();
    FUZZ_PROMISE(open_ == 0);
  }
  Status read() {
    Status status = connection_.read();
    see();
    bool more = false;
    for (const auto& event : lane_ ? lane_->progress(&more) : std::vector<net::BulkEvent>{}) {
      if (status.ok()) status = connection_.bulk(event);
    }
    see();
    return status;
  }
  void write() { (void)connection_.write(); }

 private:
  void see() {
    for (const net::Event& event : std::exchange(events_, {})) {
      if (const auto* offered = std::get_if<net::Offered>(&event)) answer(*offered);
      if (const auto* message = std::get_if<net::Message>(&event))
        FUZZ_PROMISE(message->bytes.size() <= net::message_bytes_max);
      if (std::holds_alternative<net::Taken>(event)) --open_;
      if (std::holds_alternative<net::Fetched>(event)) --open_;
    }
  }
  void answer(const net::Offered& offered) {
    FUZZ_PROMISE(offered.bytes > 0 && offered.header.size() <= net::offer_header_bytes_max);
    if (offered.bytes > (1u << 20) || memory_.size() == memory_.capacity()) {
      FUZZ_PROMISE(connection_.refuse(offered.offer).ok());
      return;
    }
    memory_.emplace_back(offered.bytes);
    FUZZ_PROMISE(connection_.fetch(offered.offer, memory_.back()).ok());
    ++open_;
  }

  std::vector<net::Event> events_;
  const Buffer ours_ = Buffer(100);
  std::vector<Buffer> memory_;
  std::size_t open_ = 0;
  net::Connection connection_;
  net::BulkLane* const lane_;
};

void play(const std::uint8_t* data, std::size_t size, net::BulkLane* lane) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) return;
  const Fd peer(ends[0]);
  Owner owner(Fd(ends[1]), lane);
  if (::send(peer.get(), data, size, MSG_NOSIGNAL) < 0) return;
  ::shutdown(peer.get(), SHUT_WR);
  Status status;
  while (status.ok()) {
    status = owner.read();
    owner.write();
  }
  const Code code = status.error().code();
  FUZZ_PROMISE(code == Code::protocol || code == Code::agent_lost);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FakeLane lane;
  play(data, size, nullptr);
  play(data, size, &lane);
  return 0;
}
