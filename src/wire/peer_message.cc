#include "wire/peer_message.h"

#include "wire/codec.h"
#include "wire/cut_fields.h"

namespace backstay::wire {

namespace codec {

template <>
constexpr auto fields_of<peer::Holder> = std::tuple(&peer::Holder::agent, &peer::Holder::node);
template <>
constexpr auto fields_of<peer::Need> = std::tuple(&peer::Need::version, &peer::Need::run);
template <>
constexpr auto fields_of<peer::Get> = std::tuple(&peer::Get::ticket, &peer::Get::version,
                                                 &peer::Get::run, &peer::Get::node,
                                                 &peer::Get::parity, &peer::Get::manifest,
                                                 &peer::Get::offset, &peer::Get::bytes);
template <>
constexpr auto fields_of<peer::No> = std::tuple(&peer::No::ticket, &peer::No::code,
                                                &peer::No::message);
template <>
constexpr auto fields_of<peer::Keep> = std::tuple(
    &peer::Keep::version, &peer::Keep::run, &peer::Keep::node, &peer::Keep::segment_bytes,
    &peer::Keep::nodes, &peer::Keep::ranks, &peer::Keep::recorded, &peer::Keep::payload_bytes,
    &peer::Keep::manifests_sum, &peer::Keep::captured_ns, &peer::Keep::committed_ns,
    &peer::Keep::holders, &peer::Keep::needs);
template <>
constexpr auto fields_of<peer::Kept> = std::tuple(&peer::Kept::version, &peer::Kept::run,
                                                  &peer::Kept::node, &peer::Kept::code,
                                                  &peer::Kept::message);
template <>
constexpr auto fields_of<peer::Holds> = std::tuple(&peer::Holds::batch, &peer::Holds::version,
                                                   &peer::Holds::run, &peer::Holds::node,
                                                   &peer::Holds::parity, &peer::Holds::gone,
                                                   &peer::Holds::ranks);
template <>
constexpr auto fields_of<peer::HoldsSeen> = std::tuple(&peer::HoldsSeen::batch);
template <>
constexpr auto fields_of<peer::Lookup> = std::tuple(&peer::Lookup::ticket, &peer::Lookup::version,
                                                    &peer::Lookup::run, &peer::Lookup::rank,
                                                    &peer::Lookup::parity);
template <>
constexpr auto fields_of<peer::Holders> = std::tuple(&peer::Holders::ticket,
                                                     &peer::Holders::holders);
template <>
constexpr auto fields_of<peer::Due> = std::tuple(&peer::Due::version, &peer::Due::run,
                                                 &peer::Due::nodes, &peer::Due::ranks,
                                                 &peer::Due::captured_ns, &peer::Due::waited);
template <>
constexpr auto fields_of<peer::Which> = std::tuple(&peer::Which::ticket, &peer::Which::version,
                                                   &peer::Which::run);
template <>
constexpr auto fields_of<peer::Parts> = std::tuple(&peer::Parts::ticket, &peer::Parts::nodes);
template <>
constexpr auto fields_of<peer::Turn> = std::tuple(&peer::Turn::ticket, &peer::Turn::version,
                                                  &peer::Turn::run, &peer::Turn::node);
template <>
constexpr auto fields_of<peer::TurnOver> =
    std::tuple(&peer::TurnOver::ticket, &peer::TurnOver::code, &peer::TurnOver::message,
               &peer::TurnOver::damaged, &peer::TurnOver::payload_bytes, &peer::TurnOver::digest,
               &peer::TurnOver::needs);
template <>
constexpr auto fields_of<peer::Durable> =
    std::tuple(&peer::Durable::version, &peer::Durable::run, &peer::Durable::nodes,
               &peer::Durable::ranks, &peer::Durable::payload_bytes, &peer::Durable::manifests_sum,
               &peer::Durable::captured_ns, &peer::Durable::committed_ns, &peer::Durable::needs);
template <>
constexpr auto fields_of<peer::NotDurable> = std::tuple(&peer::NotDurable::version,
                                                        &peer::NotDurable::run,
                                                        &peer::NotDurable::code,
                                                        &peer::NotDurable::message);
template <>
constexpr auto fields_of<peer::DurableGone> = std::tuple(&peer::DurableGone::version,
                                                         &peer::DurableGone::run);

template <>
constexpr auto fields_of<peer::WhoIsLate> = std::tuple(&peer::WhoIsLate::cut,
                                                       &peer::WhoIsLate::seconds);
template <>
constexpr auto fields_of<peer::Rebuild> = std::tuple(&peer::Rebuild::ticket,
                                                     &peer::Rebuild::version, &peer::Rebuild::run,
                                                     &peer::Rebuild::rank);
template <>
constexpr auto fields_of<peer::Rebuilt> = std::tuple(&peer::Rebuilt::ticket, &peer::Rebuilt::code,
                                                     &peer::Rebuilt::message, &peer::Rebuilt::node);
template <>
constexpr auto fields_of<peer::Doubt> = std::tuple(&peer::Doubt::version, &peer::Doubt::run,
                                                   &peer::Doubt::node);

template <>
constexpr auto fields_of<peer::Look> = std::tuple(&peer::Look::ticket, &peer::Look::version,
                                                  &peer::Look::run);
template <>
constexpr auto fields_of<peer::Seen> =
    std::tuple(&peer::Seen::ticket, &peer::Seen::host, &peer::Seen::pid, &peer::Seen::ranks,
               &peer::Seen::connected, &peer::Seen::resident_bytes, &peer::Seen::buffer_bytes,
               &peer::Seen::buffers, &peer::Seen::busy, &peer::Seen::written_bytes,
               &peer::Seen::read_bytes, &peer::Seen::newest, &peer::Seen::level, &peer::Seen::lacks,
               &peer::Seen::lacks_level, &peer::Seen::lacks_code, &peer::Seen::files,
               &peer::Seen::parity_of, &peer::Seen::parity_blocks, &peer::Seen::parity_group);

static_assert(all_described<peer::Message>);

}  // namespace codec

namespace peer {

Result<Buffer> encode(const Message& message) { return codec::encode(message, protocol_version); }

Result<Message> decode(Bytes packet) {
  return codec::decode<Message>(packet, protocol_version, "these two agents");
}

}  // namespace peer

}  // namespace backstay::wire
