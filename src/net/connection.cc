#include "net/connection.h"

#include <string>

#include "net/secret.h"

namespace backstay::net {

namespace {

constexpr std::size_t read_budget_bytes = std::size_t{2} << 20;
constexpr std::size_t write_budget_bytes = std::size_t{2} << 20;

Error out_of_turn(const char* what, OfferId offer) {
  return Error(Code::protocol, std::string("it ") + what + " offer " + std::to_string(offer) +
                                   ", which is not open");
}

Error no_such_offer(OfferId offer) {
  return Error(Code::not_found, "the peer has no offer " + std::to_string(offer) + " open");
}

}  // namespace

Connection::Connection(Fd socket, PeerId peer, ConnectionLimits limits, BulkLane* lane,
                       std::vector<Event>& events)
    : socket_(std::move(socket)), peer_(peer), limits_(limits), lane_(lane), events_(events) {
  if (!lane_) return;
  fill_random(token_.data(), token_.size());
  const Bytes address = lane_->address();
  const auto length = static_cast<std::uint32_t>(token_.size() + address.size());
  writer_.put({length, FrameKind::bulk, 0}, token_, address);
}

Status Connection::read() {
  auto count = reader_.read(socket_.get(), *this, read_budget_bytes);
  if (!count.ok()) return count.error();
  if (*count > 0) heard_ = true;
  return {};
}

Status Connection::write() {
  auto count = writer_.write(socket_.get(), write_budget_bytes);
  if (!count.ok()) return count.error();
  if (*count > 0) spoke_ = true;
  tell_ready();
  return {};
}

void Connection::ping() {
  if (writer_.empty()) writer_.put({0, FrameKind::ping, 0}, {});
}

Status Connection::writable(std::size_t bytes, std::size_t bytes_max) {
  if (bytes > bytes_max)
    return Error(Code::too_large, std::to_string(bytes) + " bytes where at most " +
                                      std::to_string(bytes_max) + " are allowed");
  if (writer_.queued_bytes() + frame_header_bytes + bytes > limits_.queued_bytes_max) {
    wants_ready_ = true;
    return Error(Code::again, "the queue to this peer is full");
  }
  return {};
}

Status Connection::send(Bytes bytes) {
  BACKSTAY_TRY(writable(bytes.size(), message_bytes_max));
  writer_.put({static_cast<std::uint32_t>(bytes.size()), FrameKind::message, 0}, bytes);
  return {};
}

Result<OfferId> Connection::offer(Bytes header, Bytes memory) {
  if (memory.empty()) return Error(Code::invalid, "an offer of no bytes");
  if (memory.size() > offer_bytes_max) return Error(Code::too_large, "an offer is too large");
  BACKSTAY_TRY(writable(header.size(), offer_header_bytes_max));
  if (ours_.size() >= limits_.offers_max) {
    wants_ready_ = true;
    return Error(Code::again, "too many offers to this peer have not ended");
  }
  const OfferId number = ++last_ours_;
  ours_.emplace(number, Ours{memory});
  const std::uint64_t size = memory.size();
  const auto length = static_cast<std::uint32_t>(sizeof size + header.size());
  writer_.put({length, FrameKind::offer, number}, std::as_bytes(std::span(&size, 1)), header);
  return number;
}

Status Connection::fetch(OfferId offer, std::span<std::byte> memory) {
  const auto at = theirs_.find(offer);
  if (at == theirs_.end()) return no_such_offer(offer);
  if (memory.size() != at->second)
    return Error(Code::invalid, "the memory has " + std::to_string(memory.size()) +
                                    " bytes and the offer " + std::to_string(at->second));
  theirs_.erase(at);
  fetching_.emplace(offer, Fetching{memory, attached_});
  if (attached_) lane_->expect(peer_, offer, memory);
  writer_.put({0, attached_ ? FrameKind::fetch_bulk : FrameKind::fetch, offer}, {});
  return {};
}

Status Connection::refuse(OfferId offer) {
  if (theirs_.erase(offer) == 0) return no_such_offer(offer);
  writer_.put({0, FrameKind::refuse, offer}, {});
  return {};
}

Result<std::span<std::byte>> Connection::place(const FrameHeader& header) {
  const auto at = fetching_.find(header.offer);
  if (at == fetching_.end() || at->second.by_lane) return out_of_turn("sends", header.offer);
  auto& left = at->second.left;
  if (header.length > left.size()) return Error(Code::protocol, "it sends more than it offered");
  const auto place = left.first(header.length);
  left = left.subspan(header.length);
  return place;
}

Status Connection::data(const FrameHeader& header) {
  if (fetching_.at(header.offer).left.empty()) fetched(header.offer);
  return {};
}

void Connection::fetched(OfferId offer) {
  fetching_.erase(offer);
  writer_.put({0, FrameKind::taken, offer}, {});
  say(Fetched{peer_, offer, {}});
}

Status Connection::frame(const FrameHeader& header, Bytes body) {
  switch (header.kind) {
    case FrameKind::message: say(Message{peer_, Buffer(body.begin(), body.end())}); return {};
    case FrameKind::offer: return offered(header, body);
    case FrameKind::bulk: return attach(body);
    case FrameKind::fetch:
    case FrameKind::fetch_bulk:
    case FrameKind::refuse:
    case FrameKind::taken: return asked(header);
    case FrameKind::ping:
    case FrameKind::data: break;  // the reader hands data over by data()
  }
  return {};
}

Status Connection::offered(const FrameHeader& header, Bytes body) {
  BACKSTAY_ASSIGN(const OfferBody offer, decode_offer(body));
  if (header.offer != last_theirs_ + 1) return out_of_turn("numbers wrongly", header.offer);
  if (theirs_.size() + fetching_.size() >= limits_.offers_max)
    return Error(Code::protocol,
                 "it has more than " + std::to_string(limits_.offers_max) + " offers open");
  last_theirs_ = header.offer;
  theirs_.emplace(header.offer, offer.bytes);
  say(Offered{peer_, header.offer, Buffer(offer.header.begin(), offer.header.end()), offer.bytes});
  return {};
}

// The peer fetches, refuses or has taken what we offered.
Status Connection::asked(const FrameHeader& header) {
  const auto at = ours_.find(header.offer);
  const bool has_taken = header.kind == FrameKind::taken;
  if (at == ours_.end() || at->second.asked != has_taken || at->second.has_taken)
    return out_of_turn("answers", header.offer);
  if (has_taken) {
    at->second.has_taken = true;
    taken(header.offer);
  } else if (header.kind == FrameKind::refuse) {
    ours_.erase(at);
    say(Taken{peer_, header.offer, Error(Code::again, "the peer refused the offer")});
    tell_ready();
  } else {
    return serve(header.offer, header.kind == FrameKind::fetch_bulk);
  }
  return {};
}

Status Connection::serve(OfferId offer, bool by_lane) {
  if (by_lane && !attached_) return out_of_turn("wants by another way", offer);
  Ours& ours = ours_.at(offer);
  ours.asked = true;
  ours.on_lane = by_lane;
  if (by_lane && paused_)
    for_lane_.push_back(offer);
  else if (by_lane)
    lane_->send(peer_, offer, ours.memory);
  else
    writer_.serve(offer, ours.memory);
  return {};
}

void Connection::pause(bool on) {
  paused_ = on;
  writer_.pause(on);
  if (on) return;
  for (const OfferId offer : std::exchange(for_lane_, {}))
    lane_->send(peer_, offer, ours_.at(offer).memory);
}

// Our memory is free once the peer has all of it and the lane has let go of it.
void Connection::taken(OfferId offer) {
  const Ours& ours = ours_.at(offer);
  if (!ours.has_taken || ours.on_lane) return;
  ours_.erase(offer);
  say(Taken{peer_, offer, {}});
  tell_ready();
}

Status Connection::attach(Bytes body) {
  BACKSTAY_ASSIGN(const BulkBody bulk, decode_bulk(body));
  if (!lane_) return {};
  if (attached_) return Error(Code::protocol, "it gave two addresses for bulk data");
  BACKSTAY_TRY(lane_->attach(peer_, token_, bulk.token, bulk.address));
  attached_ = true;
  return {};
}

Status Connection::bulk(const BulkEvent& event) {
  if (event.what == BulkEvent::What::sent) ours_.at(event.offer).on_lane = false;
  if (!event.status.ok()) return event.status;
  if (event.what == BulkEvent::What::sent) taken(event.offer);
  if (event.what == BulkEvent::What::received) fetched(event.offer);
  return {};
}

void Connection::leave() {
  if (lane_) lane_->detach(peer_);
  socket_.reset();
}

void Connection::tell_ready() {
  if (!wants_ready_ || ours_.size() >= limits_.offers_max ||
      writer_.queued_bytes() > limits_.queued_bytes_max / 2)
    return;
  wants_ready_ = false;
  say(Ready{peer_});
}

void Connection::end(const Error& why) {
  for (const auto& [offer, ours] : ours_) say(Taken{peer_, offer, why});
  for (const auto& [offer, fetching] : fetching_) say(Fetched{peer_, offer, why});
}

}  // namespace backstay::net
