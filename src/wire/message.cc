#include "wire/message.h"

#include "wire/codec.h"
#include "wire/cut_fields.h"

namespace backstay::wire {

Message::Message() = default;
Message::Message(const Message& other) = default;
Message::Message(Message&& other) noexcept = default;
Message& Message::operator=(const Message& other) = default;
Message& Message::operator=(Message&& other) noexcept = default;
Message::~Message() = default;

namespace codec {

template <>
constexpr auto fields_of<ChunkInPool> = std::tuple(&ChunkInPool::buffer, &ChunkInPool::length,
                                                   &ChunkInPool::object_offset,
                                                   &ChunkInPool::checksum);
template <>
constexpr auto fields_of<Hello> =
    std::tuple(&Hello::release, &Hello::job, &Hello::run, &Hello::rank, &Hello::ranks,
               &Hello::local_rank, &Hello::local_ranks, &Hello::node, &Hello::nodes, &Hello::pid,
               &Hello::dir, &Hello::keep, &Hello::durable_dir, &Hello::durable_every,
               &Hello::durable_keep, &Hello::durable_bytes_per_s, &Hello::drain_nodes_max,
               &Hello::replicas, &Hello::parity, &Hello::protect_bytes_per_s, &Hello::secret);
template <>
constexpr auto fields_of<Begin> = std::tuple(&Begin::version, &Begin::object_bytes);
template <>
constexpr auto fields_of<Filled> = std::tuple(&Filled::version, &Filled::chunks);
template <>
constexpr auto fields_of<KeptChunk> = std::tuple(&KeptChunk::offset, &KeptChunk::length);
template <>
constexpr auto fields_of<Kept> = std::tuple(&Kept::version, &Kept::base, &Kept::left,
                                            &Kept::chunks);
template <>
constexpr auto fields_of<End> = std::tuple(&End::version, &End::stopped_ns, &End::snapshot);
template <>
constexpr auto fields_of<Query> = std::tuple(&Query::version);
template <>
constexpr auto fields_of<Await> = std::tuple(&Await::version, &Await::level);
template <>
constexpr auto fields_of<Restart> = std::tuple(&Restart::version, &Restart::run);
template <>
constexpr auto fields_of<Verified> = std::tuple(&Verified::version, &Verified::buffers,
                                                &Verified::good, &Verified::why, &Verified::attempt,
                                                &Verified::placed);
template <>
constexpr auto fields_of<Refuse> = std::tuple(&Refuse::version, &Refuse::code, &Refuse::message);
template <>
constexpr auto fields_of<Restored> = std::tuple(&Restored::version, &Restored::code);
template <>
constexpr auto fields_of<Fetch> = std::tuple(&Fetch::version, &Fetch::rank, &Fetch::begin,
                                             &Fetch::bytes, &Fetch::last, &Fetch::run);
template <>
constexpr auto fields_of<Request> = std::tuple(&Request::job, &Request::stop);
template <>
constexpr auto fields_of<Shutdown> = std::tuple(&Shutdown::drain);
template <>
constexpr auto fields_of<Setting> = std::tuple(&Setting::key, &Setting::value);
template <>
constexpr auto fields_of<Welcome> = std::tuple(&Welcome::release, &Welcome::pool_bytes,
                                               &Welcome::buffer_bytes, &Welcome::home_first,
                                               &Welcome::home_count, &Welcome::newest,
                                               &Welcome::finished, &Welcome::address,
                                               &Welcome::settings, &Welcome::run, &Welcome::writer);
template <>
constexpr auto fields_of<Grant> = std::tuple(&Grant::version, &Grant::buffers);
template <>
constexpr auto fields_of<Captured> = std::tuple(&Captured::version, &Captured::code,
                                                &Captured::message);
template <>
constexpr auto fields_of<LevelIs> = std::tuple(&LevelIs::version, &LevelIs::level, &LevelIs::code,
                                               &LevelIs::message);
template <>
constexpr auto fields_of<Plan> = std::tuple(&Plan::version, &Plan::object_bytes, &Plan::from_pool,
                                            &Plan::code, &Plan::message, &Plan::attempt,
                                            &Plan::saved_ranks, &Plan::may_be_base);
template <>
constexpr auto fields_of<Chunks> = std::tuple(&Chunks::version, &Chunks::held, &Chunks::chunks,
                                              &Chunks::attempt);
template <>
constexpr auto fields_of<Deliver> = std::tuple(&Deliver::version);
template <>
constexpr auto fields_of<Withdraw> = std::tuple(&Withdraw::version, &Withdraw::attempt);
template <>
constexpr auto fields_of<Withdrawn> = std::tuple(&Withdrawn::version, &Withdrawn::attempt);
template <>
constexpr auto fields_of<Answer> = std::tuple(&Answer::code, &Answer::json);
template <>
constexpr auto fields_of<Failure> = std::tuple(&Failure::code, &Failure::message);
template <>
constexpr auto fields_of<Forget> = std::tuple(&Forget::job, &Forget::dir, &Forget::version);
template <>
constexpr auto fields_of<AwaitNewer> = std::tuple(&AwaitNewer::job, &AwaitNewer::dir,
                                                  &AwaitNewer::after, &AwaitNewer::level);
template <>
constexpr auto fields_of<Neighbour> = std::tuple(&Neighbour::node, &Neighbour::address,
                                                 &Neighbour::domain);
template <>
constexpr auto fields_of<Neighbours> = std::tuple(&Neighbours::last, &Neighbours::neighbours);
template <>
constexpr auto fields_of<Candidates> = std::tuple(&Candidates::below, &Candidates::below_run);
template <>
constexpr auto fields_of<Candidate> = std::tuple(&Candidate::version, &Candidate::run,
                                                 &Candidate::code, &Candidate::message,
                                                 &Candidate::saved_ranks);
template <>
constexpr auto fields_of<Ready> = std::tuple(&Ready::version, &Ready::attempt);
template <>
constexpr auto fields_of<Proceed> = std::tuple(&Proceed::version, &Proceed::attempt,
                                               &Proceed::good);
template <>
constexpr auto fields_of<Where> = std::tuple(&Where::job, &Where::dir, &Where::version);
template <>
constexpr auto fields_of<EndRanks> = std::tuple(&EndRanks::job, &EndRanks::dir, &EndRanks::run);
template <>
constexpr auto fields_of<Copied> = std::tuple(&Copied::job, &Copied::dir, &Copied::version,
                                              &Copied::run);
template <>
constexpr auto fields_of<Join> = std::tuple(&Join::release, &Join::job, &Join::pid, &Join::dir,
                                            &Join::keep, &Join::durable_dir, &Join::durable_keep,
                                            &Join::durable_bytes_per_s);
template <>
constexpr auto fields_of<Open> = std::tuple(&Open::buffers);
template <>
constexpr auto fields_of<Opened> = std::tuple(&Opened::version, &Opened::code, &Opened::message);
template <>
constexpr auto fields_of<More> = std::tuple(&More::version, &More::buffers);
template <>
constexpr auto fields_of<Finish> = std::tuple(&Finish::version, &Finish::object_bytes);
template <>
constexpr auto fields_of<Abandon> = std::tuple(&Abandon::version, &Abandon::code,
                                               &Abandon::message);
template <>
constexpr auto fields_of<BringHome> = std::tuple(&BringHome::path);
template <>
constexpr auto fields_of<AtHome> = std::tuple(&AtHome::path, &AtHome::code, &AtHome::message);

template <>
constexpr auto fields_of<MoveHome> = std::tuple(&MoveHome::version, &MoveHome::run, &MoveHome::from,
                                                &MoveHome::to, &MoveHome::placed_ns);
template <>
constexpr auto fields_of<MovedHome> = std::tuple(&MovedHome::version, &MovedHome::to,
                                                 &MovedHome::code, &MovedHome::message);

template <>
constexpr auto fields_of<WriteSize> = std::tuple(&WriteSize::below, &WriteSize::writes,
                                                 &WriteSize::bytes, &WriteSize::ns);
template <>
constexpr auto fields_of<CallWait> = std::tuple(&CallWait::call, &CallWait::calls, &CallWait::ns,
                                                &CallWait::longest_ns);
template <>
constexpr auto fields_of<NoteWrites> = std::tuple(&NoteWrites::captured_files,
                                                  &NoteWrites::captured_bytes,
                                                  &NoteWrites::direct_files,
                                                  &NoteWrites::direct_bytes,
                                                  &NoteWrites::real_files, &NoteWrites::real_bytes,
                                                  &NoteWrites::sizes, &NoteWrites::waits);

static_assert(all_described<Message>);

}  // namespace codec

Result<Buffer> encode(const Message& message) { return codec::encode(message, protocol_version); }

Result<Message> decode(Bytes packet) {
  return codec::decode<Message>(packet, protocol_version, "program and agent");
}

}  // namespace backstay::wire
