#include "wire/tree_message.h"

#include "wire/codec.h"

namespace backstay::wire {

namespace codec {

template <>
constexpr auto fields_of<tree::Peer> = std::tuple(&tree::Peer::node, &tree::Peer::address);
template <>
constexpr auto fields_of<tree::Range> = std::tuple(&tree::Range::first, &tree::Range::count);
template <>
constexpr auto fields_of<tree::LinkId> = std::tuple(&tree::LinkId::child,
                                                    &tree::LinkId::incarnation,
                                                    &tree::LinkId::attempt);
template <>
constexpr auto fields_of<tree::Key> = std::tuple(&tree::Key::kind, &tree::Key::run,
                                                 &tree::Key::number);
template <>
constexpr auto fields_of<tree::Row> = std::tuple(&tree::Row::key, &tree::Row::floor,
                                                 &tree::Row::lowest, &tree::Row::nodes);
template <>
constexpr auto fields_of<tree::Floor> = std::tuple(&tree::Floor::key, &tree::Floor::floor);
template <>
constexpr auto fields_of<tree::Fact> = std::tuple(&tree::Fact::node, &tree::Fact::incarnation,
                                                  &tree::Fact::sequence, &tree::Fact::name,
                                                  &tree::Fact::value);
template <>
constexpr auto fields_of<tree::Join> = std::tuple(&tree::Join::link, &tree::Join::run,
                                                  &tree::Join::nodes, &tree::Join::arity,
                                                  &tree::Join::below, &tree::Join::address);
template <>
constexpr auto fields_of<tree::Report> = std::tuple(&tree::Report::link, &tree::Report::change,
                                                    &tree::Report::seen, &tree::Report::present,
                                                    &tree::Report::rows, &tree::Report::facts_seen,
                                                    &tree::Report::lower_roots);
template <>
constexpr auto fields_of<tree::Accept> = std::tuple(&tree::Accept::link, &tree::Accept::path,
                                                    &tree::Accept::age);
template <>
constexpr auto fields_of<tree::Refuse> = std::tuple(&tree::Refuse::link, &tree::Refuse::why,
                                                    &tree::Refuse::instead);
template <>
constexpr auto fields_of<tree::Beat> = std::tuple(&tree::Beat::link, &tree::Beat::change,
                                                  &tree::Beat::seen, &tree::Beat::path,
                                                  &tree::Beat::age, &tree::Beat::floors,
                                                  &tree::Beat::lost_changed, &tree::Beat::lost,
                                                  &tree::Beat::facts_seen);
template <>
constexpr auto fields_of<tree::Facts> = std::tuple(&tree::Facts::link, &tree::Facts::after,
                                                   &tree::Facts::upto, &tree::Facts::facts);
template <>
constexpr auto fields_of<tree::Leave> = std::tuple(&tree::Leave::link);

static_assert(all_described<tree::Message>);

}  // namespace codec

namespace tree {

Result<Buffer> encode(const Message& message) { return codec::encode(message, protocol_version); }

Result<Message> decode(Bytes packet) {
  return codec::decode<Message>(packet, protocol_version, "these two agents");
}

}  // namespace tree

}  // namespace backstay::wire
