#include "agent/group/peer_connections.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/log.h"

namespace backstay::agent {

namespace {

enum class Channel : std::uint8_t { tree = 1, peers = 2 };

Buffer on_channel(Channel channel, const Buffer& packet) {
  Buffer message;
  message.reserve(packet.size() + 1);
  message.push_back(static_cast<std::byte>(channel));
  message.insert(message.end(), packet.begin(), packet.end());
  return message;
}

template <typename T>
bool take_number(std::string_view& text, T& number, int base) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool take_blank(std::string_view& text) {
  const bool there = !text.empty() && text.front() == ' ';
  if (there) text.remove_prefix(1);
  return there;
}

constexpr std::size_t ticket_bytes = sizeof(std::uint64_t);

// A closed connection, by either side, means agent_lost for what went over it.
Status for_owner(const Status& status) {
  if (status.ok() || status.error().code() != Code::state) return status;
  return Error(Code::agent_lost, "the connection was ended");
}

}  // namespace

std::string MemberId::text() const { return fmt::format("{:016x} {} {}", run, node, incarnation); }

Result<MemberId> MemberId::parse(const std::string& text) {
  std::string_view rest = text;
  MemberId id;
  const bool good = take_number(rest, id.run, 16) && take_blank(rest) &&
                    take_number(rest, id.node, 10) && take_blank(rest) &&
                    take_number(rest, id.incarnation, 10) && rest.empty();
  if (!good || id.text() != text) return Error(Code::invalid, "an agent without a name of ours");
  return id;
}

PeerConnections::PeerConnections(std::unique_ptr<net::Transport> transport, MemberId self,
                                 std::uint32_t members, PeerConnectionEvents& events)
    : transport_(std::move(transport)), self_(self), members_(members), events_(events) {
  BACKSTAY_CHECK(transport_ != nullptr || members_ == 1);
}

PeerConnections::~PeerConnections() = default;

std::string PeerConnections::address() const {
  return transport_ ? transport_->facts().address : "";
}

int PeerConnections::descriptor() const { return transport_ ? transport_->facts().descriptor : -1; }

void PeerConnections::progress() {
  call_later_ones();  // before what has happened since
  if (transport_) {
    for (const net::Event& event : transport_->progress()) {
      std::visit([this](const auto& one) { on(one); }, event);
    }
  }
  call_later_ones();
}

void PeerConnections::call_later_ones() {
  for (auto& call : std::exchange(later_, {})) call();
}

void PeerConnections::push() {
  if (transport_) (void)transport_->progress();
}

void PeerConnections::know(NodeId node, const std::string& address) {
  Node& known = nodes_[node];
  known.address = address;
  flush(node, known);
}

const std::string& PeerConnections::address_of(NodeId node) const {
  static const std::string unknown;
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? unknown : found->second.address;
}

// --- sending ------------------------------------------------------------------------------------

void PeerConnections::send_tree(NodeId to, const std::string& address,
                                const wire::tree::Message& message) {
  auto packet = wire::tree::encode(message);
  BACKSTAY_CHECK(packet.ok());
  Node& node = nodes_[to];
  if (node.address.empty()) node.address = address;
  put(to, {on_channel(Channel::tree, *packet), {}, {}});
}

void PeerConnections::send(NodeId to, wire::peer::Message message) {
  if (to == self_.node) {
    later_.emplace_back(
        [this, message = std::move(message)] { events_.message(self_.node, message); });
    return;
  }
  auto packet = wire::peer::encode(message);
  BACKSTAY_CHECK(packet.ok());
  put(to, {on_channel(Channel::peers, *packet), {}, {}});
}

void PeerConnections::offer(NodeId to, std::uint64_t ticket, Bytes memory, Ended ended) {
  ByteWriter header;
  header.put(ticket);
  put(to, {header.take(), memory, std::move(ended)});
}

void PeerConnections::put(NodeId to, Waiting waiting) {
  BACKSTAY_CHECK(to != self_.node);
  Node& node = nodes_[to];
  node.queued_bytes += waiting.message.size();
  node.queue.push_back(std::move(waiting));
  if (node.queued_bytes > queued_bytes_max) {
    const Error why(Code::agent_lost, "the agent takes no messages any more");
    part(node, why);
    later_.emplace_back([this, to, why] { events_.lost(to, why); });
    return;
  }
  flush(to, node);
}

void PeerConnections::flush(NodeId to, Node& node) {
  if (node.queue.empty()) return;
  if (node.open.empty()) return dial(to, node);
  while (!node.queue.empty() && !node.blocked) {
    const Status sent = hand_over(node.open.front(), node.queue.front());
    if (!sent.ok() && sent.error().code() == Code::again) {
      node.blocked = true;
      return;
    }
    if (!sent.ok() && sent.error().code() == Code::agent_lost) return;  // its Closed is on its way
    if (!sent.ok()) fail(node.queue.front(), sent.error());             // too large, or empty
    node.queued_bytes -= node.queue.front().message.size();
    node.queue.pop_front();
  }
}

Status PeerConnections::hand_over(net::PeerId peer, Waiting& waiting) {
  if (!waiting.ended) return transport_->send(peer, waiting.message);
  BACKSTAY_ASSIGN(const net::OfferId offer,
                  transport_->offer(peer, waiting.message, waiting.memory));
  offers_[{peer, offer}] = std::move(waiting.ended);
  return {};
}

void PeerConnections::dial(NodeId to, Node& node) {
  if (node.dialled != 0 || node.address.empty()) return;
  node.dialled = transport_->connect(node.address);
  node_of_[node.dialled] = to;
}

void PeerConnections::fail(Waiting& waiting, const Error& why) {
  if (!waiting.ended) return;
  later_.emplace_back([ended = std::move(waiting.ended), why] { ended(why); });
}

// The other one may have spoken over any of them, so that half of a conversation goes with each.
void PeerConnections::part(Node& node, const Error& why) {
  if (node.dialled != 0) node.open.push_back(std::exchange(node.dialled, 0));
  for (const net::PeerId peer : std::exchange(node.open, {})) {
    node_of_.erase(peer);
    transport_->close(peer);
  }
  for (Waiting& waiting : std::exchange(node.queue, {})) fail(waiting, why);
  node.queued_bytes = 0;
  node.blocked = false;
}

void PeerConnections::lose(NodeId to, Node& node, const Error& why) {
  part(node, why);
  events_.lost(to, why);
}

// --- bulk data ----------------------------------------------------------------------------------

void PeerConnections::fetch(OfferFrom offer, std::span<std::byte> memory, Ended ended) {
  const Status begun = transport_->fetch(offer.connection, offer.offer, memory);
  if (begun.ok()) {
    fetches_[{offer.connection, offer.offer}] = std::move(ended);
    return;
  }
  later_.emplace_back([ended = std::move(ended), begun] { ended(begun); });
}

void PeerConnections::pause(bool on) {
  if (transport_) transport_->pause(on);
}

void PeerConnections::refuse(OfferFrom offer) {
  (void)transport_->refuse(offer.connection, offer.offer);
}

// --- events of the transport --------------------------------------------------------------------

void PeerConnections::on(const net::Connected& event) {
  const auto id = MemberId::parse(event.identity);
  const auto dialled = node_of_.find(event.peer);
  const bool other = !id.ok() || id->run != self_.run || id->node == self_.node ||
                     id->node >= members_ ||
                     (dialled != node_of_.end() && dialled->second != id->node);
  if (other) {
    spdlog::warn("an agent that does not belong here is cut off identity=\"{}\"", event.identity);
    return turn_away(event.peer);
  }
  Node& node = nodes_[id->node];
  if (!node.open.empty() && id->incarnation < node.incarnation) return turn_away(event.peer);
  if (node.dialled == event.peer) node.dialled = 0;
  if (!node.open.empty() && id->incarnation > node.incarnation) {
    lose(id->node, node, Error(Code::agent_lost, "it has started again"));
  }
  node.incarnation = id->incarnation;
  node_of_[event.peer] = id->node;
  node.said.clear();
  node.open.push_back(event.peer);
  if (node.open.size() == 1) events_.reached(id->node);
  flush(id->node, node);
}

// Another agent than the expected one answered at that address, or an unknown one.
void PeerConnections::turn_away(net::PeerId peer) {
  const auto dialled = node_of_.extract(peer);
  transport_->close(peer);
  if (dialled.empty()) return;
  Node& node = nodes_[dialled.mapped()];
  node.dialled = 0;
  if (!node.open.empty()) return;
  lose(dialled.mapped(), node, Error(Code::agent_lost, "another agent answers at its address"));
}

void PeerConnections::on(const net::Message& event) {
  const auto from = node_of_.find(event.peer);
  if (from != node_of_.end()) deliver(from->second, event.bytes);
}

void PeerConnections::deliver(NodeId from, Bytes message) {
  const auto channel = message.empty() ? Channel{} : static_cast<Channel>(message.front());
  const Bytes packet = message.empty() ? message : message.subspan(1);
  if (channel == Channel::tree) {
    auto decoded = wire::tree::decode(packet);
    if (decoded.ok()) return events_.tree_message(from, *decoded);
  } else if (channel == Channel::peers) {
    auto decoded = wire::peer::decode(packet);
    if (decoded.ok()) return events_.message(from, *decoded);
  }
  spdlog::warn("agent of node {} sent what is no message; it is cut off", from);
  lose(from, nodes_[from], Error(Code::agent_lost, "it sent what is no message"));
}

void PeerConnections::on(const net::Offered& event) {
  const auto from = node_of_.find(event.peer);
  if (from == node_of_.end() || event.header.size() != ticket_bytes) {
    (void)transport_->refuse(event.peer, event.offer);
    return;
  }
  const auto ticket = ByteReader(event.header).get<std::uint64_t>();
  events_.offered(from->second, ticket, event.bytes, {event.peer, event.offer});
}

void PeerConnections::on(const net::Fetched& event) {
  auto ended = fetches_.extract({event.peer, event.offer});
  if (!ended.empty()) ended.mapped()(for_owner(event.status));
}

void PeerConnections::on(const net::Taken& event) {
  auto ended = offers_.extract({event.peer, event.offer});
  if (!ended.empty()) ended.mapped()(for_owner(event.status));
}

void PeerConnections::on(const net::Ready& event) {
  const auto found = node_of_.find(event.peer);
  if (found == node_of_.end()) return;
  Node& node = nodes_[found->second];
  node.blocked = false;
  flush(found->second, node);
}

void PeerConnections::on(const net::Closed& event) {
  const auto found = node_of_.find(event.peer);
  if (found == node_of_.end()) return;
  const NodeId to = found->second;
  node_of_.erase(found);
  Node& node = nodes_[to];
  const bool dialled = node.dialled == event.peer;
  if (dialled) node.dialled = 0;
  std::erase(node.open, event.peer);
  const Error why = event.status.ok() ? Error(Code::agent_lost, "the connection was ended")
                                      : event.status.error();
  if (does_not_pass(why.code()) && std::exchange(node.said, why.message()) != why.message()) {
    spdlog::warn("no connection with the agent of node {} at {}: {}", to, node.address,
                 why.to_string());
  }
  if (dialled && !node.open.empty()) return;  // it has dialled us meanwhile
  lose(to, node, why);
}

}  // namespace backstay::agent
