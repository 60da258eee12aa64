#include "agent/checkpoint/writers.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "agent/checkpoint/written_files.h"
#include "agent/disk/links.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "format/footer.h"
#include "format/names.h"

namespace backstay::agent {

namespace {

// A full disk is not asked again for each of many small versions.
constexpr std::uint64_t retry_after_ns = 1'000'000'000;
// More at once would only be taken from other writers.
constexpr std::uint32_t wanted_max = 64;

}  // namespace

// --- the run and its writers ---------------------------------------------------------------------

void Writers::begin_run() {
  run_began_ = true;
  next_number_ = 0;
  for (const auto& [number, row] : state_.versions.rows()) pin(number);
}

void Writers::pin(VersionNumber version) {
  if (!state_.files_come_home) return;
  not_home_.try_emplace(version, state_.versions, version, PinReason::not_home);
}

std::uint32_t Writers::join(ConnectionId connection, std::int32_t pid) {
  Member& writer = writers_[connection];
  writer.number = next_number_++;
  writer.pid = pid;
  state_.record("writer_joined", {{"writer", writer.number}, {"pid", pid}});
  return writer.number;
}

void Writers::disconnected(ConnectionId connection, bool goodbye) {
  const auto node = writers_.extract(connection);
  if (node.empty()) return;
  Member writer = node.mapped();
  state_.record("writer_left", {{"writer", writer.number}, {"lost", !goodbye}});
  return_buffers(writer);
  const auto open = open_.find(writer.version);
  if (open == open_.end()) return;
  open->second.writer = 0;
  if (open->second.finished) return;
  give_up(writer.version,
          Error(Code::rank_lost, fmt::format("writer {} (process {}) ended before it had finished "
                                             "version {}",
                                             writer.number, writer.pid, writer.version)));
}

// --- messages of writers -------------------------------------------------------------------------

Status Writers::receive(ConnectionId connection, const wire::Message& message) {
  Member& writer = writers_.at(connection);
  if (const auto* begun = std::get_if<wire::Open>(&message)) {
    return open(connection, writer, *begun);
  }
  if (const auto* wanted = std::get_if<wire::More>(&message)) return more(writer, *wanted);
  if (const auto* chunks = std::get_if<wire::Filled>(&message)) return filled(writer, *chunks);
  if (const auto* last = std::get_if<wire::Finish>(&message)) return finish(writer, *last);
  if (const auto* given_up = std::get_if<wire::Abandon>(&message)) {
    return abandon(writer, *given_up);
  }
  if (const auto* noted = std::get_if<wire::NoteWrites>(&message)) {
    record_writes(state_, *noted);
    return {};
  }
  return Error(Code::invalid, "a writer may not send this message");
}

Status Writers::open(ConnectionId connection, Member& writer, const wire::Open& open) {
  if (writer.version != 0) {
    return Error(Code::state, fmt::format("open before version {} was captured", writer.version));
  }
  if (open.buffers == 0) return Error(Code::invalid, "a version needs a buffer");
  if (state_.newest >= format::version_max) {
    const std::string why = fmt::format(
        "the numbers of versions end at {}, and job {} has used them up: give the job "
        "another name",
        format::version_max, state_.name);
    state_.outbox.send(connection, wire::Opened{0, Code::too_large, why});
    return {};
  }
  failpoint("writers.open");
  return_buffers(writer);
  retry();
  const VersionNumber number = state_.newest + 1;
  const format::ObjectId object(format::OwnerKind::writer, writer.number,
                                format::ObjectKind::files);
  output_.begin(number).captures[object].begin_ns = state_.clock.wall_ns();
  pin(number);
  open_[number] = {.writer = connection, .object = object};
  writer.version = number;
  writer.wanted = std::min(open.buffers, wanted_max);
  writer.waits_since = ++asked_;
  state_.outbox.send(connection, wire::Opened{number, Code::ok, ""});
  grant();
  return {};
}

Writers::OpenVersionOf* Writers::filling_of(const Member& writer, VersionNumber version) {
  if (version == 0 || version != writer.version) return nullptr;
  const auto found = open_.find(version);
  return found == open_.end() || found->second.finished ? nullptr : &found->second;
}

Status Writers::more(Member& writer, const wire::More& more) {
  if (more.buffers == 0) return Error(Code::invalid, "a writer asks for no buffer");
  if (filling_of(writer, more.version) == nullptr) return {};  // given up meanwhile
  if (writer.wanted == 0) writer.waits_since = ++asked_;
  writer.wanted = std::min<std::uint64_t>(std::uint64_t{writer.wanted} + more.buffers, wanted_max);
  grant();
  return {};
}

Status Writers::filled(Member& writer, const wire::Filled& filled) {
  const bool counts = filling_of(writer, filled.version) != nullptr;
  for (const wire::ChunkInPool& chunk : filled.chunks) {
    if (writer.granted.erase(chunk.buffer) == 0) {
      return Error(Code::invalid, fmt::format("writer {} handed over a buffer that it does not own",
                                              writer.number));
    }
    if (!counts) {  // given up meanwhile
      state_.pool.give_back(chunk.buffer);
    } else if (const Status taken = take_in(writer, chunk); !taken.ok()) {
      state_.pool.give_back(chunk.buffer);
      return taken;
    }
  }
  grant();
  return {};
}

// The store opens the version with the first chunk: a program may open one and write much later.
Status Writers::take_in(const Member& writer, const wire::ChunkInPool& chunk) {
  OpenVersionOf& open = open_.at(writer.version);
  if (chunk.length == 0 || chunk.length > state_.pool.buffer_bytes() ||
      chunk.object_offset != open.received_bytes) {
    return Error(Code::invalid, fmt::format("writer {} handed over a buffer that is empty, or out "
                                            "of order",
                                            writer.number));
  }
  MemoryVersion& version = *state_.in_memory(writer.version);
  if (!open.in_store) output_.open(version, chunk.length, hoped_bytes(chunk));
  open.in_store = true;
  open.received_bytes += chunk.length;
  output_.take_in(version, open.object, chunk);
  return {};
}

// Programs write files of one size again and again, and what is reserved together may lie on blocks
// of a version that was removed.
std::uint64_t Writers::hoped_bytes(const wire::ChunkInPool& first) const {
  return first.length < state_.pool.buffer_bytes() ? first.length : last_bytes_;
}

Status Writers::finish(Member& writer, const wire::Finish& finish) {
  OpenVersionOf* open = filling_of(writer, finish.version);
  if (open == nullptr) return {};  // given up meanwhile
  if (finish.object_bytes != open->received_bytes ||
      finish.object_bytes < format::object_footer_bytes) {
    return Error(Code::invalid,
                 fmt::format("writer {} says {} bytes and handed over {}", writer.number,
                             finish.object_bytes, open->received_bytes));
  }
  return_buffers(writer);
  MemoryVersion& version = *state_.in_memory(finish.version);
  version.object_bytes[open->object] = finish.object_bytes;
  version.captured_ns = version.captures[open->object].end_ns = state_.clock.wall_ns();
  open->finished = true;
  last_bytes_ = finish.object_bytes;
  failpoint("writers.finish");
  if (version.failed && !version.whole) {
    give_up(finish.version, *version.failed);
    return {};
  }
  if (!version.failed) output_.seal(version);
  if (version.whole) captured(finish.version);  // else once it is local
  return {};
}

Status Writers::abandon(Member& writer, const wire::Abandon& abandon) {
  if (writer.version != 0 && writer.version != abandon.version) {
    return Error(Code::invalid, fmt::format("writer {} gives up version {} and has {}",
                                            writer.number, abandon.version, writer.version));
  }
  if (OpenVersionOf* open = filling_of(writer, abandon.version)) {
    open->writer = 0;  // it need not be told
    give_up(abandon.version, Error(Code::none, "its writer gave it up"));
    writer.version = 0;
  }
  return_buffers(writer);
  grant();
  return {};
}

void Writers::return_buffers(Member& writer) {
  for (const std::uint32_t buffer : writer.granted) state_.pool.give_back(buffer);
  writer.granted.clear();
  writer.wanted = 0;
}

// --- the end of a version ------------------------------------------------------------------------

void Writers::captured(VersionNumber number) {
  const auto node = open_.extract(number);
  const OpenVersionOf& open = node.mapped();
  MemoryVersion& version = *state_.in_memory(number);
  version.captured = true;
  failpoint("writers.captured");
  if (const auto at = writers_.find(open.writer); at != writers_.end()) {
    at->second.version = 0;
    state_.outbox.send(open.writer, wire::Captured{number, Code::ok, ""});
  }
  output_.record_captured(version);
  state_.versions.changed(number);
}

// What the writer still holds stays its own until it answers.
void Writers::give_up(VersionNumber number, const Error& why) {
  const auto node = open_.extract(number);
  not_home_.erase(number);
  const ConnectionId connection = node.mapped().writer;
  if (const auto at = writers_.find(connection); at != writers_.end()) {
    at->second.version = 0;
    at->second.wanted = 0;
    state_.outbox.send(connection, wire::Captured{number, why.code(), why.message()});
  }
  output_.give_up(number, why);
}

void Writers::local(const StoredVersion& stored) {
  output_.local(stored);
  failpoint("commit.6");
  if (open_.contains(stored.version)) captured(stored.version);
  // Ranks would want it for a restart. What is brought home is read from the pool.
  if (!state_.files_come_home) state_.release(stored.version);
}

void Writers::on(const VersionFailed& event) {
  if (!output_.on(event)) return;
  const MemoryVersion& version = *state_.in_memory(event.version);
  if (open_.contains(event.version) && !version.whole) return give_up(event.version, event.error);
  state_.versions.changed(event.version);
}

// --- buffers -------------------------------------------------------------------------------------

std::size_t Writers::held() const {
  std::size_t sum = 0;
  for (const auto& [connection, writer] : writers_) sum += writer.granted.size();
  return sum;
}

Writers::Member* Writers::next_to_grant() {
  const auto less = [](const Member& a, const Member& b) {
    return std::pair(a.granted.size(), a.waits_since) < std::pair(b.granted.size(), b.waits_since);
  };
  Member* next = nullptr;
  for (auto& [connection, writer] : writers_) {
    if (writer.wanted > 0 && (next == nullptr || less(writer, *next))) next = &writer;
  }
  return next;
}

void Writers::grant() {
  const std::size_t most = std::max(state_.pool.count() / 2, 1u);
  for (std::size_t sum = held(); sum < most; ++sum) {
    Member* writer = next_to_grant();
    if (writer == nullptr) return;
    const auto buffer = state_.take_buffer({});
    if (!buffer) return refuse_waiting();
    writer->granted.insert(*buffer);
    --writer->wanted;
    state_.outbox.send(open_.at(writer->version).writer, wire::Grant{writer->version, {*buffer}});
  }
}

bool Writers::waits_for_buffers() const {
  return std::ranges::any_of(writers_, [](const auto& one) { return one.second.wanted > 0; });
}

// True where there was something to try.
bool Writers::retry() {
  const std::uint64_t now = state_.clock.monotonic_ns();
  if (retried_ns_ != 0 && now < retried_ns_ + retry_after_ns) return false;
  retried_ns_ = now;
  output_.retry_failed();
  return output_.store_has_buffers();
}

// The pool is full, and nothing in it can be written: no buffer will come back.
void Writers::refuse_waiting() {
  if (output_.store_has_buffers() || output_.failure() == nullptr || retry()) return;
  const Error why = output_.failure()->context("the pool is full with data that cannot be written");
  std::vector<VersionNumber> waiting;
  for (const auto& [connection, writer] : writers_) {
    if (writer.wanted > 0 && writer.granted.empty()) waiting.push_back(writer.version);
  }
  for (const VersionNumber version : waiting) give_up(version, why);
}

}  // namespace backstay::agent
