#include "agent/redundancy/replica_receiver.h"

#include <algorithm>
#include <set>

#include "agent/disk/links.h"
#include "base/failpoint.h"
#include "base/log.h"

namespace backstay::agent {

namespace {

constexpr std::size_t pulled_max =
    2;  // each with half of the buffers; while one is sealed, the other has all
constexpr std::uint64_t again_ns =
    20'000'000;  // a holder without room is asked again after so long

std::optional<format::CommitRecord> record_of(const wire::peer::Keep& what,
                                              const std::string& job) {
  if (what.recorded == Level::none) return std::nullopt;
  format::CommitRecord record{
      job,        what.recorded,      what.version,       what.run,         what.nodes,
      what.ranks, what.payload_bytes, what.manifests_sum, what.captured_ns, what.committed_ns};
  for (const wire::peer::Need& need : what.needs) record.needs.push_back({need.version, need.run});
  return record;
}

}  // namespace

ReplicaReceiver::ReplicaReceiver(ReplicatorWorld world, std::uint64_t bytes_per_s, Kept kept)
    : world_(world), bytes_per_s_(bytes_per_s), kept_(std::move(kept)) {}

ReplicaReceiver::~ReplicaReceiver() {
  for (const auto& [file, copy] : copies_) {
    if (!copy.is_active()) continue;
    if (copy.step != Step::sealing) world_.peer_files.post(AbandonCopy{file});
  }
}

template <typename Callback>
auto ReplicaReceiver::on_copy(const Copy& copy, Callback callback) {
  return callback_guard_(
      [this, file = copy.file, callback = std::move(callback)](auto&&... arguments) mutable {
        const auto found = copies_.find(file);
        BACKSTAY_CHECK(found != copies_.end());  // it stays as long as something is on its way
        callback(found->second, std::forward<decltype(arguments)>(arguments)...);
      });
}

void ReplicaReceiver::keep(NodeId from, const wire::peer::Keep& what, bool replace) {
  const FileOf file{what.version, what.run, what.node};
  Copy& copy = copies_[file];
  if (copy.step == Step::ended) copy = Copy{};
  copy.file = file;
  copy.what = what;
  copy.replace = copy.replace || replace;
  // A source that failed and returned repeats its request.
  const bool waits = std::ranges::find(copy.askers, from) != copy.askers.end();
  if (!waits || (copy.source_lost && copy.source() == from)) copy.askers.push_back(from);
}

// --- one copy ------------------------------------------------------------------------------------

std::uint64_t ReplicaReceiver::pump() {
  std::erase_if(copies_, [](const auto& entry) { return entry.second.step == Step::ended; });
  for (auto& [file, copy] : copies_) {
    if (copy.is_pulled()) settle(copy);
  }
  const std::vector<Copy*> active = first_ones();
  for (Copy* copy : active) {
    if (copy->step == Step::waiting) start(*copy);
  }
  const auto pulling = std::ranges::count_if(active, [](const Copy* copy) {
    return copy->step == Step::pulling && copy->has_pieces_left();
  });
  const std::size_t buffers = world_.keeping.count();
  const std::size_t share = pulling < 2 ? buffers : (buffers + 1) / 2;
  std::uint64_t next = no_deadline;
  for (Copy* copy : active) {
    if (copy->step == Step::pulling) next = std::min(next, pull(*copy, share));
  }
  return next;
}

// Copies of what it needs were asked for before it, and have not ended yet.
bool ReplicaReceiver::waits_for_needs(const Copy& copy) const {
  return std::ranges::any_of(copies_, [&](const auto& entry) {
    const auto& [file, other] = entry;
    const wire::peer::Need version{file.version, file.run};
    return other.step != Step::ended &&
           std::ranges::find(copy.what.needs, version) != copy.what.needs.end();
  });
}

// A removal that is under way takes no notice of a pin. Behind it the copy is made, or what it
// needs is missing and its owner hears so.
bool ReplicaReceiver::waits_for_removal(const Copy& copy) const {
  const VersionTable& versions = world_.state.versions;
  return is_leaving(versions, copy.file.version) ||
         std::ranges::any_of(copy.what.needs, [&](const wire::peer::Need& need) {
           return is_leaving(versions, need.version);
         });
}

// What is worked on: what was begun, then older versions, then the files of the next higher nodes,
// round the circle. With one order for all, every keeper would begin with the same owner, and wait
// for its link while others idle.
std::vector<ReplicaReceiver::Copy*> ReplicaReceiver::first_ones() {
  const std::uint32_t members = world_.peers.members();
  const auto place = [&](const Copy* copy) {
    const FileOf& file = copy->file;
    const std::uint32_t steps = (file.node % members + members - world_.peers.self()) % members;
    return std::tuple(!copy->is_active(), file.version, file.run, steps, file.node);
  };
  std::vector<Copy*> all;
  for (auto& [file, copy] : copies_) {
    if (copy.is_pulled()) continue;  // it waits for one of the others
    if (copy.is_active() || !waits_for_removal(copy)) all.push_back(&copy);
  }
  const auto end = all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), pulled_max));
  std::ranges::partial_sort(all, end, {}, place);
  all.erase(end, all.end());
  return all;
}

void ReplicaReceiver::start(Copy& copy) {
  copy.step = Step::manifest;
  copy.pin = VersionPin(world_.state.versions, copy.file.version, PinReason::receiving);
  for (const wire::peer::Need& need : copy.what.needs) {
    copy.needs_pins.emplace_back(world_.state.versions, need.version, PinReason::receiving);
  }
  world_.reader.read_manifest(copy.source(), copy.file,
                              on_copy(copy, [this](Copy& of, Result<Buffer> manifest) {
                                got_manifest(of, std::move(manifest));
                              }));
}

void ReplicaReceiver::got_manifest(Copy& copy, Result<Buffer> manifest) {
  if (!manifest.ok()) fail(copy, manifest.error());
  if (copy.failed) return end(copy);
  copy.step = Step::opening;
  world_.peer_files.post(OpenCopy{
      copy.file, std::move(*manifest), copy.what.segment_bytes, world_.keeping.buffer_bytes(),
      on_copy(copy,
              [this](Copy& of, Result<std::vector<store::Piece>> pieces) {
                opened(of, std::move(pieces));
              }),
      copy.replace});
}

void ReplicaReceiver::opened(Copy& copy, Result<std::vector<store::Piece>> pieces) {
  if (!pieces.ok()) {
    fail(copy, pieces.error());
    return end(copy);
  }
  copy.pieces = std::move(*pieces);
  copy.step = Step::pulling;
  settle(copy);
}

// Asks for as many pieces as there are buffers for it. Answers when the rate or the holder allows
// more.
std::uint64_t ReplicaReceiver::pull(Copy& copy, std::size_t buffers) {
  while (!copy.failed && copy.has_pieces_left() && copy.on_way < buffers) {
    const std::uint64_t now = world_.state.clock.monotonic_ns();
    if (bytes_per_s_ != 0 && now < next_ns_) return next_ns_;
    const bool waits = now < copy.not_before_ns;
    if (waits && copy.next == copy.pieces.size()) return copy.not_before_ns;
    Lease lease = world_.keeping.take();
    if (!lease) return no_deadline;  // one comes back with an event
    std::size_t index = 0;
    if (!waits && !copy.again.empty()) {
      index = copy.again.front();
      copy.again.pop_front();
    } else if (copy.next < copy.pieces.size()) {
      index = copy.next++;
    }
    pull_piece(copy, index, std::move(lease));
    if (bytes_per_s_ == 0) continue;
    const double seconds =
        static_cast<double>(copy.pieces[index].bytes) / static_cast<double>(bytes_per_s_);
    next_ns_ = std::max(next_ns_, now) + static_cast<std::uint64_t>(seconds * 1e9);
  }
  return no_deadline;
}

// Leases are given back here, not when the caller forgets the callback: pump() may come before
// that.
void ReplicaReceiver::pull_piece(Copy& copy, std::size_t index, Lease lease) {
  ++copy.on_way;
  const store::Piece piece = copy.pieces[index];
  const auto memory = lease->span().first(piece.bytes);
  auto done = [this, index, lease = std::move(lease)](Copy& of, const Status& status) mutable {
    arrived(of, index, std::move(lease), status);
  };
  world_.reader.read(copy.source(), copy.file, piece.offset, memory,
                     on_copy(copy, std::move(done)));
}

void ReplicaReceiver::arrived(Copy& copy, std::size_t index, Lease lease, const Status& status) {
  if (!status.ok() && status.error().code() == Code::again && !copy.failed) {
    --copy.on_way;
    copy.again.push_back(index);
    copy.not_before_ns = world_.state.clock.monotonic_ns() + again_ns;
    return;
  }
  if (!status.ok()) fail(copy, status.error());
  if (copy.failed) {
    --copy.on_way;
    return settle(copy);
  }
  const store::Piece piece = copy.pieces[index];
  const Bytes memory = lease->span().first(piece.bytes);
  auto done = [this, index, lease = std::move(lease)](Copy& of, const Status& result) mutable {
    lease.reset();
    written(of, index, result);
  };
  world_.peer_files.post(
      WritePiece{copy.file, piece.offset, memory, on_copy(copy, std::move(done))});
}

// A piece that is wrong is read again: the trouble may pass.
void ReplicaReceiver::written(Copy& copy, std::size_t index, const Status& status) {
  --copy.on_way;
  const bool wrong = !status.ok() && status.error().code() == Code::corrupt;
  if (wrong && ++copy.wrong[index] < world_.reader.tries()) {
    copy.again.push_back(index);
  } else if (!status.ok()) {
    fail(copy, status.error());
  }
  settle(copy);
}

void ReplicaReceiver::seal(Copy& copy) {
  copy.step = Step::sealing;
  world_.peer_files.post(SealCopy{
      copy.file, record_of(copy.what, world_.state.name),
      on_copy(copy, [this](Copy& of, const Result<HeldFile>& held) { sealed(of, held); })});
}

void ReplicaReceiver::sealed(Copy& copy, const Result<HeldFile>& held) {
  if (!held.ok()) fail(copy, held.error());
  if (held.ok() && copy.source_lost) copy.failed.reset();  // it is here in spite of that
  if (copy.failed) return end(copy);
  failpoint("keep.6");
  kept_(copy.what, *held);
  end(copy);
}

// --- the end of one ------------------------------------------------------------------------------

void ReplicaReceiver::fail(Copy& copy, const Error& error) {
  if (copy.failed) return;
  copy.failed = error;
  // This agent asks itself to rebuild a file: the lost agent is then one that it reads from.
  copy.source_lost = error.code() == Code::agent_lost && copy.source() != world_.peers.self();
}

// A copy that is being pulled: is it all there, or can it end?
void ReplicaReceiver::settle(Copy& copy) {
  if (copy.step != Step::pulling || copy.on_way > 0) return;
  if (copy.failed) {
    world_.peer_files.post(AbandonCopy{copy.file});
    return end(copy);
  }
  if (!copy.has_pieces_left() && !waits_for_needs(copy)) seal(copy);
}

// Others that asked for the same are answered too, or served from where they are.
void ReplicaReceiver::end(Copy& copy) {
  const wire::peer::Keep what = copy.what;
  const std::deque<NodeId> askers = copy.askers;
  const bool replace = copy.replace;
  copy.pin.release();
  copy.needs_pins.clear();
  copy.step = Step::ended;
  if (!copy.failed) {
    const auto living = askers.begin() + (copy.source_lost ? 1 : 0);
    for (const NodeId asker : std::set(living, askers.end())) answer(copy, asker, {});
    return;
  }
  if (!copy.source_lost) answer(copy, askers.front(), *copy.failed);
  if (askers.size() == 1) return;
  copy = Copy{};
  copy.what = what;
  copy.replace = replace;
  copy.file = {what.version, what.run, what.node};
  copy.askers.assign(askers.begin() + 1, askers.end());
}

void ReplicaReceiver::answer(const Copy& copy, NodeId to, const Status& status) {
  wire::peer::Kept kept{copy.file.version, copy.file.run, copy.file.node, Code::ok, ""};
  if (!status.ok()) {
    kept.code = status.error().code();
    kept.message = status.error().message();
    spdlog::warn("cannot keep a copy job={} version={} node={} error=\"{}\"", world_.state.name,
                 kept.version, kept.node, status.error().to_string());
  }
  world_.peers.send(to, std::move(kept));
}

void ReplicaReceiver::removed(VersionNumber version) {
  for (auto& [file, copy] : copies_) {
    if (file.version != version || copy.step == Step::ended) continue;
    copy.askers.resize(1);
    fail(copy, Error(Code::again, "the version was removed"));
    copy.step == Step::waiting ? end(copy) : settle(copy);
  }
}

}  // namespace backstay::agent
