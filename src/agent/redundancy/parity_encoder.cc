#include "agent/redundancy/parity_encoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "agent/disk/links.h"
#include "agent/redundancy/network_pause.h"
#include "agent/version/unprotected.h"
#include "base/log.h"
#include "format/names.h"

namespace backstay::agent {

namespace {

constexpr std::uint64_t parity_rest_ns = 30'000'000'000;  // before it is tried again
constexpr std::uint32_t checked_bytes_max = 64 * 1024;

// How to make blocks of parity out of the data blocks, in their order.
Result<protect::Combination> to_encode(ParityShape shape, std::uint32_t first,
                                       std::uint32_t blocks) {
  std::vector<std::uint32_t> reads(shape.data), makes(blocks);
  std::iota(reads.begin(), reads.end(), shape.parity);
  std::iota(makes.begin(), makes.end(), first);
  return protect::Combination::make(shape, reads, makes);
}

// The member that stores a slice that is made here asks for it at once, if it works on the same
// version; with a limited rate as soon as that allows. Of the largest slices that there may be.
std::uint64_t parity_sender_patience_ns(const ParitySettings& settings,
                                        std::uint32_t buffer_bytes) {
  constexpr std::uint64_t patience_ns = 3'000'000'000;
  static_assert(patience_ns >
                2 * NetworkPause::max_ns);  // meanwhile a member's answers may be held back
  if (settings.bytes_per_s == 0) return patience_ns;
  const double pulled = 2.0 * buffer_bytes * settings.shape.members();
  return patience_ns +
         static_cast<std::uint64_t>(1e9 * pulled / static_cast<double>(settings.bytes_per_s));
}

}  // namespace

Result<ParityShape> check_parity(const std::string& text, std::uint32_t nodes) {
  BACKSTAY_ASSIGN(const ParityShape shape, parse_parity(text));
  if (nodes <= 1) return shape;
  BACKSTAY_TRY(protect::make_groups(shape, std::vector<std::string>(nodes)));
  BACKSTAY_TRY(to_encode(shape, 0, 1));
  return shape;
}

ParityEncoder::ParityEncoder(ReplicatorWorld world, StripeCoder& stripe_coder,
                             const ParitySettings& settings, FileEvents& events)
    : world_(world),
      stripe_coder_(stripe_coder),
      events_(events),
      bytes_per_s_(settings.bytes_per_s),
      parity_sender_(world.peers, world.state.clock,
                     parity_sender_patience_ns(settings, world.keeping.buffer_bytes())) {
  std::vector<std::string> domains = settings.domains;
  if (domains.size() != world.peers.members()) domains.assign(world.peers.members(), "");
  const auto groups = protect::make_groups(settings.shape, domains);
  BACKSTAY_CHECK(groups.ok());
  for (const auto& group : *groups) {
    const auto at = std::ranges::find(group, world.peers.self());
    if (at == group.end()) continue;
    group_ = group;
    self_ = static_cast<std::uint32_t>(at - group.begin());
  }
  BACKSTAY_CHECK(!group_.empty());
  const auto members = static_cast<std::uint32_t>(group_.size());
  shape_ = {members - settings.shape.parity, settings.shape.parity};
  for (std::uint32_t block = 0; block < shape_.parity; ++block) {
    how_.push_back(std::move(to_encode(shape_, block, 1).value()));
  }
  const std::uint32_t buffers = world.keeping.count();
  if (buffers > 1) makes_ = shape_.parity;
  how_own_ = std::move(to_encode(shape_, 0, makes_).value());
  making_.emplace(world.keeping, hands_out() ? buffers - buffers / 2 : buffers);
  asking_.emplace(world.keeping, hands_out() ? buffers / 2 : buffers);
  const std::string text = protect::groups_relaxed(*groups, settings.shape.parity, domains);
  if (text.empty()) return;
  spdlog::warn("domains job={}: {}", world_.state.name, text);
  world_.state.record("domains_relaxed", {{"why", text}});
  world_.state.notes.push_back(text);
}

ParityEncoder::~ParityEncoder() {
  for (auto& [version, task] : tasks_) {
    if (task.is_active() && task.step != Step::sealing) {
      world_.peer_files.post(AbandonCopy{parity(task)});
    }
  }
}

template <typename Callback>
auto ParityEncoder::on_task(const Task& task, Callback callback) {
  return callback_guard_(
      [this, version = task.version, callback = std::move(callback)](auto&&... arguments) mutable {
        const auto found = tasks_.find(version);
        BACKSTAY_CHECK(found != tasks_.end());  // it stays as long as something is on its way
        callback(found->second, std::forward<decltype(arguments)>(arguments)...);
      });
}

FileOf ParityEncoder::segment(const Task& task, NodeId node) const {
  return {task.version, world_.state.run, node};
}

FileOf ParityEncoder::parity(const Task& task) const {
  return {task.version, world_.state.run, group_[self_], /*parity=*/true};
}

// --- what is to be done --------------------------------------------------------------------------

void ParityEncoder::recorded(const format::CommitRecord& record) {
  if (record.run != world_.state.run || record.level >= Level::protected_) return;
  Task& task = tasks_[record.version];
  task.version = record.version;
  newest_ = std::max(newest_, record.version);
}

void ParityEncoder::listed(std::span<const HeldFile> files) {
  for (const HeldFile& held : files) {
    const FileOf& file = held.file;
    if (file.run != world_.state.run || file.node != group_[self_] || file.parity || !held.record) {
      continue;
    }
    recorded(*held.record);
    const FileOf parity{file.version, file.run, file.node, /*parity=*/true};
    if (std::ranges::find(files, parity, &HeldFile::file) == files.end()) continue;
    Task& task = tasks_[file.version];
    task.version = file.version;
    if (held.record->level >= Level::protected_) {
      task.step = Step::done;  // nothing is left to do but to say what it still bears
    } else if (task.step == Step::waiting) {
      task.there = true;
    }
  }
}

void ParityEncoder::removed(VersionNumber version) {
  const auto found = tasks_.find(version);
  if (found == tasks_.end()) return;
  Task& task = found->second;
  task.removed = true;
  parity_sender_.forget(version);
  if (!task.is_active()) {
    tasks_.erase(found);
  } else if (task.step != Step::sealing) {
    fail(task, Error(Code::again, "the version was removed"));
    settle(task);
  }
}

void ParityEncoder::membership(std::span<const NodeId> lost, std::span<const NodeId> back) {
  for (const NodeId node : back) lost_.erase(node);
  for (const NodeId node : lost) {
    if (node != world_.peers.self()) lost_.insert(node);
  }
  for (auto& [version, task] : tasks_) {
    task.not_before_ns = 0;
    if (task.step == Step::done) tell_weak(task);
  }
}

// The version is there, but what it can bear is not what it was.
void ParityEncoder::tell_weak(Task& task) {
  std::vector<NodeId> gone;
  std::ranges::copy_if(group_, std::back_inserter(gone),
                       [this](NodeId node) { return lost_.contains(node); });
  if (gone.size() <= std::exchange(task.told_lost, gone.size())) return;
  const std::size_t left = gone.size() > shape_.parity ? 0 : shape_.parity - gone.size();
  spdlog::warn("nodes of a parity group are lost job={} version={} nodes={}: {}", world_.state.name,
               task.version, fmt::join(gone, ","),
               gone.size() > shape_.parity
                   ? "without their disks what they saved cannot be brought back"
                   : fmt::format("if it was protected, what they saved can be rebuilt without "
                                 "their disks; {} more may be lost until then",
                                 left));
  world_.state.record("parity_weakened",
                      {{"version", task.version}, {"lost", gone}, {"left", left}});
}

std::uint64_t ParityEncoder::pump() {
  std::erase_if(
      tasks_, [](const auto& entry) { return entry.second.removed && !entry.second.is_active(); });
  std::uint64_t next = no_deadline;
  Task* const task = task_now(next);
  next = std::min(
      next, parity_sender_.pump(task == nullptr ? std::nullopt : std::optional(task->version)));
  if (task != nullptr && task->step == Step::encoding) next = std::min(next, encode(*task));
  return next;
}

// The one that is worked on: another is begun only once it has ended, or members might wait for
// each other in a circle.
ParityEncoder::Task* ParityEncoder::task_now(std::uint64_t& next) {
  const auto active =
      std::ranges::find_if(tasks_, [](const auto& entry) { return entry.second.is_active(); });
  if (active != tasks_.end()) return &active->second;
  const std::uint64_t now = world_.state.clock.monotonic_ns();
  for (auto& [version, task] : tasks_) {
    if (task.step != Step::waiting) continue;
    if (now >= task.not_before_ns) {
      start(task);
      return &task;
    }
    next = std::min(next, task.not_before_ns);
  }
  return nullptr;
}

// --- one version ---------------------------------------------------------------------------------

void ParityEncoder::start(Task& task) {
  if (!task.pin) task.pin = VersionPin(world_.state.versions, task.version, PinReason::encoding);
  if (std::exchange(task.there, false)) return sync(task);
  task.step = Step::manifests;
  parity_sender_.begun(task.version);
  task.failed.reset();
  task.manifest = {};
  task.manifest.manifests.resize(group_.size());
  task.on_way = group_.size();
  for (std::size_t member = 0; member < group_.size(); ++member) {
    world_.reader.read_manifest(group_[member], segment(task, group_[member]),
                                on_task(task, [this, member](Task& of, Result<Buffer> manifest) {
                                  got_manifest(of, member, std::move(manifest));
                                }));
  }
}

// Its files are synced, or there would be no manifest; the manifest's name may not be.
void ParityEncoder::sync(Task& task) {
  task.step = Step::sealing;
  parity_sender_.ended(task.version);
  task.failed.reset();
  world_.peer_files.post(
      SyncFile{parity(task), on_task(task, [this](Task& of, const Result<HeldFile>& held) {
                 if (held.ok() || of.removed) return sealed(of, held);
                 spdlog::warn("parity is made again job={} version={} error=\"{}\"",
                              world_.state.name, of.version, held.error().to_string());
                 of.pin.release();
                 of.step = Step::waiting;
               })});
}

void ParityEncoder::got_manifest(Task& task, std::size_t member, Result<Buffer> manifest) {
  --task.on_way;
  if (manifest.ok()) {
    task.manifest.manifests[member] = std::move(*manifest);
  } else {
    fail(task, manifest.error());
  }
  if (task.on_way > 0) return;
  if (!task.failed) open(task);
  settle(task);
}

void ParityEncoder::open(Task& task) {
  std::vector<std::uint64_t> lengths;
  for (std::size_t member = 0; member < group_.size(); ++member) {
    const auto manifest = format::decode_manifest(task.manifest.manifests[member]);
    if (!manifest.ok()) return fail(task, manifest.error());
    if (manifest->node != group_[member]) {
      return fail(task, Error(Code::corrupt, "a manifest belongs to another node"));
    }
    lengths.push_back(manifest->segment_bytes);
  }
  const std::uint64_t block = format::parity_block_bytes(std::ranges::max(lengths), shape_.data);
  if (block == 0 || block > UINT64_MAX / format::parity_blocks_max / 2) {
    return fail(task, Error(Code::corrupt, "a manifest says that its segment has no such length"));
  }
  task.stripes.emplace(shape_, std::move(lengths));
  format::ParityManifest& manifest = task.manifest;
  manifest.job = world_.state.name;
  manifest.node = group_[self_];
  manifest.version = task.version;
  manifest.run = world_.state.run;
  manifest.data = shape_.data;
  manifest.parity = shape_.parity;
  manifest.block_bytes = task.stripes->block_bytes();
  // All blocks that are made of a slice share a buffer.
  const std::uint64_t share = world_.keeping.buffer_bytes() / makes_ / protect::Stripes::alignment *
                              protect::Stripes::alignment;
  manifest.checked_bytes =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(checked_bytes_max, share));
  task.slice_bytes = share / manifest.checked_bytes * manifest.checked_bytes;
  const std::uint64_t slices = (manifest.block_bytes - 1) / task.slice_bytes + 1;
  task.own = {0, 1, slices, 0, {}};
  task.others = {1, shape_.parity - 1, slices * (shape_.parity - 1), 0, {}};
  task.withheld.clear();
  task.step = Step::opening;
  ++task.on_way;
  world_.peer_files.post(
      OpenParity{std::move(manifest), on_task(task, [this](Task& of, const Status& s) {
                   --of.on_way;
                   if (!s.ok()) fail(of, s.error());
                   if (s.ok()) of.step = Step::encoding;
                   settle(of);
                 })});
}

// Begins as many slices as there is memory for. Answers when the rate or a member allows more.
std::uint64_t ParityEncoder::encode(Task& task) {
  while (!task.failed) {
    const std::uint64_t now = world_.state.clock.monotonic_ns();
    const std::uint64_t from =
        bytes_per_s_ == 0 ? task.not_before_ns : std::max(task.not_before_ns, next_ns_);
    if (now < from) return task.has_slices_left() ? from : no_deadline;
    const bool own = begin_own(task);
    const bool other = begin_other(task);
    if (!own && !other) break;
  }
  return no_deadline;  // memory comes back with an event
}

ParityEncoder::Slice ParityEncoder::next_slice(const Task& task, Line& line) {
  if (!line.again.empty()) {
    const Slice slice = line.again.front();
    line.again.pop_front();
    return slice;
  }
  const std::uint64_t index = line.next++;
  const std::uint64_t offset = index / line.blocks * task.slice_bytes;
  return {line.first_block + static_cast<std::uint32_t>(index % line.blocks), offset,
          std::min(task.slice_bytes, task.stripes->block_bytes() - offset)};
}

// In the parity file of the member that stores it.
std::uint64_t ParityEncoder::place(const Task& task, const Slice& slice) const {
  return slice.block * task.stripes->block_bytes() + slice.offset;
}

// What the slices of parity at that place of a stripe are made of, and what is read of it from now
// on.
std::vector<CombinedSource> ParityEncoder::sources(const Task& task, std::uint32_t stripe,
                                                   const Slice& slice) {
  std::vector<CombinedSource> sources;
  std::uint64_t pulled = 0;
  for (std::uint32_t index = shape_.parity; index < task.stripes->count(); ++index) {
    const protect::Block block = task.stripes->block(stripe, index);
    const std::uint64_t bytes =
        block.bytes > slice.offset ? std::min(slice.bytes, block.bytes - slice.offset) : 0;
    const NodeId node = group_[block.member];
    sources.push_back({node, segment(task, node), block.offset + slice.offset, bytes});
    pulled += bytes;
  }
  count_pulled(pulled);
  return sources;
}

void ParityEncoder::count_pulled(std::uint64_t bytes) {
  if (bytes_per_s_ == 0) return;
  const double seconds = static_cast<double>(bytes) / static_cast<double>(bytes_per_s_);
  next_ns_ = std::max(next_ns_, world_.state.clock.monotonic_ns()) +
             static_cast<std::uint64_t>(1e9 * seconds);
}

// The stripe that is this node's work: block 0 is stored here, block q by the member q places on.
bool ParityEncoder::begin_own(Task& task) {
  if (task.own.is_empty() || stripe_coder_.under_way() >= StripeCoder::at_once) return false;
  Lease lease = making_->take();
  if (!lease) return false;
  const Slice slice = next_slice(task, task.own);
  StripeCoder::Outs outs;
  for (std::uint32_t block = 0; block < makes_; ++block) {
    outs.push_back(lease->span().subspan(block * task.slice_bytes, slice.bytes));
  }
  ++task.on_way;
  stripe_coder_.combine(
      *how_own_, sources(task, self_, slice), std::move(outs),
      on_task(task, [this, slice, lease = std::move(lease)](Task& of, const Status& status,
                                                            std::optional<std::size_t>) mutable {
        made_own(of, slice, std::move(lease), status);
      }));
  return true;
}

void ParityEncoder::made_own(Task& task, const Slice& slice, Lease lease, const Status& status) {
  if (try_again(task, task.own, slice, status)) return;
  for (std::uint32_t block = 1; block < makes_ && !task.failed; ++block) {
    const Slice piece{block, slice.offset, slice.bytes};
    parity_sender_.made({task.version, member(self_ + block), place(task, piece)}, lease,
                        lease->span().subspan(block * task.slice_bytes, slice.bytes));
  }
  write(task, slice, std::move(lease));
}

// A block that the member before us makes, that many places back.
bool ParityEncoder::begin_other(Task& task) {
  if (task.others.is_empty()) return false;
  const bool may_make = stripe_coder_.under_way() < StripeCoder::at_once;
  if (!may_make && (!hands_out() || !task.withheld.empty())) return false;
  Lease lease = asking_->take();
  if (!lease) return false;
  const Slice slice = next_slice(task, task.others);
  ++task.on_way;
  if (hands_out() && !task.withheld.contains(slice.block)) {
    ask_for(task, slice, std::move(lease));
  } else {
    make_other(task, slice, std::move(lease));
  }
  return true;
}

void ParityEncoder::ask_for(Task& task, const Slice& slice, Lease lease) {
  count_pulled(slice.bytes);
  const NodeId maker = member(self_ + task.stripes->count() - slice.block);
  const auto memory = lease->span().first(slice.bytes);
  world_.reader.read(maker, parity(task), place(task, slice), memory,
                     on_task(task, [this, slice, lease = std::move(lease)](
                                       Task& of, const Status& status) mutable {
                       if (status.ok() || of.failed) return write(of, slice, std::move(lease));
                       of.withheld.insert(slice.block);
                       make_other(of, slice, std::move(lease));
                     }));
}

void ParityEncoder::make_other(Task& task, const Slice& slice, Lease lease) {
  const std::uint32_t members = task.stripes->count();
  const std::uint32_t stripe = (self_ + members - slice.block) % members;
  const auto memory = lease->span().first(slice.bytes);
  stripe_coder_.combine(
      how_[slice.block], sources(task, stripe, slice), {memory},
      on_task(task, [this, slice, lease = std::move(lease)](Task& of, const Status& status,
                                                            std::optional<std::size_t>) mutable {
        if (try_again(of, of.others, slice, status)) return;
        write(of, slice, std::move(lease));
      }));
}

// A slice was not made: what is to be done about it is done.
bool ParityEncoder::try_again(Task& task, Line& line, const Slice& slice, const Status& status) {
  if (status.ok()) return false;
  if (status.error().code() == Code::again && !task.failed) {  // for lack of room
    line.again.push_back(slice);
    constexpr std::uint64_t no_room_ns = 20'000'000;
    task.not_before_ns = world_.state.clock.monotonic_ns() + no_room_ns;
  } else {
    fail(task, status.error());
  }
  --task.on_way;
  settle(task);
  return true;
}

void ParityEncoder::write(Task& task, const Slice& slice, Lease lease) {
  if (task.failed) {
    --task.on_way;
    return settle(task);
  }
  const Bytes memory = lease->span().first(slice.bytes);
  world_.peer_files.post(WritePiece{
      parity(task), place(task, slice), memory,
      on_task(task, [this, lease = std::move(lease)](Task& of, const Status& written) mutable {
        lease.reset();
        --of.on_way;
        if (!written.ok()) fail(of, written.error());
        settle(of);
      })});
}

// --- what others ask for -------------------------------------------------------------------------

// Slices of that version are made now or later, as far as is known.
bool ParityEncoder::may_be_made(VersionNumber version) const {
  const auto found = tasks_.find(version);
  if (found == tasks_.end()) return version > newest_;  // else it has gone
  const Task& task = found->second;
  return !task.there && !task.failed && task.step < Step::sealing;
}

bool ParityEncoder::on(NodeId from, const wire::peer::Get& get) {
  if (!get.parity || get.manifest || get.run != world_.state.run || get.node == group_[self_] ||
      get.node != from) {
    return false;
  }
  parity_sender_.asked({get.version, from, get.offset}, get.ticket, get.bytes,
                       hands_out() && may_be_made(get.version));
  return true;
}

void ParityEncoder::seal(Task& task) {
  task.step = Step::sealing;
  parity_sender_.ended(task.version);
  world_.peer_files.post(SealCopy{
      parity(task), std::nullopt,
      on_task(task, [this](Task& of, const Result<HeldFile>& held) { sealed(of, held); })});
}

void ParityEncoder::sealed(Task& task, const Result<HeldFile>& held) {
  if (!held.ok()) {
    fail(task, held.error());
    return give_up(task);
  }
  task.pin.release();
  task.step = Step::done;
  task.blocker.reset();
  task.stripes.reset();
  if (task.removed) return;
  events_.kept(*held);
  events_.protected_here(task.version);
  tell_weak(task);
}

// --- the end of one ------------------------------------------------------------------------------

void ParityEncoder::fail(Task& task, const Error& error) {
  if (task.failed) return;
  task.failed = error;
  // Release what peers wait for, or two members may deadlock.
  parity_sender_.ended(task.version);
}

void ParityEncoder::settle(Task& task) {
  if (task.on_way > 0 || !task.is_active() || task.step == Step::sealing) return;
  if (task.failed) {
    if (task.step != Step::manifests) world_.peer_files.post(AbandonCopy{parity(task)});
    return give_up(task);
  }
  if (task.step == Step::encoding && !task.has_slices_left()) seal(task);
}

void ParityEncoder::give_up(Task& task) {
  task.pin.release();
  task.step = Step::waiting;
  task.manifest = {};
  task.not_before_ns = world_.state.clock.monotonic_ns() + parity_rest_ns;
  if (task.removed) return;
  const bool said = task.blocker.has_value();
  task.blocker = task.failed->context("no parity is kept here");
  if (said) return;
  const Code code = task.failed->code();
  // Newer ones took its place on another node, which may be ahead of this one.
  const bool gone_there = code == Code::not_found && world_.state.newest > task.version;
  record_unprotected(world_.state, task.version, group_[self_], *task.blocker,
                     gone_there || is_overtaken(world_.state, task.version, code));
}

std::vector<Blocker> ParityEncoder::blockers() const {
  std::vector<Blocker> all;
  for (const auto& [version, task] : tasks_) {
    if (!task.blocker) continue;
    all.push_back({version, Level::protected_, task.blocker->code(), task.blocker->message()});
  }
  return all;
}

}  // namespace backstay::agent
