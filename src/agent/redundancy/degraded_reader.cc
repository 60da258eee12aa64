#include "agent/redundancy/degraded_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "format/segment.h"

namespace backstay::agent {

namespace {

protect::Stripes stripes_of(const LivingGroup& group) {
  std::vector<std::uint64_t> lengths;
  for (const format::Manifest& member : group.members) lengths.push_back(member.segment_bytes);
  return {{group.parity.data, group.parity.parity}, std::move(lengths)};
}

}  // namespace

DegradedReader::DegradedReader(StripeCoder& stripe_coder, LivingGroup group, std::uint32_t lost,
                               NodeId self)
    : stripe_coder_(stripe_coder),
      group_(std::move(group)),
      stripes_(stripes_of(group_)),
      lost_(lost),
      self_(self) {
  for (const format::ChunkEntry& chunk : group_.members[lost_].chunks) {
    if (!chunk.here()) continue;
    const std::uint64_t slot = format::slot_bytes(chunk.length);
    if (slot == chunk.length) continue;
    padding_.emplace_back(chunk.segment_offset + chunk.length, chunk.segment_offset + slot);
  }
  std::ranges::sort(padding_);
  for (const auto* files : {&group_.segments, &group_.parities}) {
    for (const std::vector<NodeId>& holders : *files) {
      holders_max_ = std::max(holders_max_, holders.size());
    }
  }
}

void DegradedReader::read_manifest(NodeId, const FileOf&, DoneManifest done) {
  stripe_coder_.later(callback_guard_(
      [this, done = std::move(done)] { done(Buffer(group_.parity.manifests[lost_])); }));
}

void DegradedReader::read(NodeId, const FileOf&, std::uint64_t offset, std::span<std::byte> memory,
                          Done done) {
  go_on(
      std::make_shared<Reading>(Reading{offset, memory, std::move(done), attempts_[offset]++, 0}));
}

// What lies in one block of it at a time.
void DegradedReader::go_on(const ReadingPtr& reading) {
  if (reading->at == reading->memory.size()) {
    zero_padding(*reading);
    return reading->done({});
  }
  const std::uint64_t block_bytes = stripes_.block_bytes();
  const std::uint64_t place = reading->offset + reading->at;
  const auto index = static_cast<std::uint32_t>(group_.parity.parity + place / block_bytes);
  const std::uint64_t begin = place % block_bytes;
  const std::uint64_t bytes =
      std::min<std::uint64_t>(block_bytes - begin, reading->memory.size() - reading->at);
  const std::uint32_t stripe = (lost_ + stripes_.count() - index) % stripes_.count();

  const auto fail = [&](const Error& why) {
    stripe_coder_.later(callback_guard_([reading, why] { reading->done(why); }));
  };
  std::vector<Candidate> from = candidates(stripe, begin, bytes);
  if (from.size() < stripes_.shape().data) return fail(too_few(from.size()));
  doubt(reading->attempt, from);
  from.resize(stripes_.shape().data);
  auto combination = how(index, from);
  if (!combination.ok()) return fail(combination.error());
  std::vector<CombinedSource> sources;
  for (const Candidate& one : from) sources.push_back(one.source);
  auto done = callback_guard_(
      [this, reading, bytes, sources](const Status& status, std::optional<std::size_t> source) {
        if (!status.ok() && status.error().code() == Code::again) {
          attempts_[reading->offset] = reading->attempt;  // it was not wrong
          return reading->done(status);
        }
        if (status.ok()) {
          reading->at += bytes;
        } else {
          cannot_give(sources.at(source.value_or(0)), status.error());
        }
        go_on(reading);
      });
  stripe_coder_.combine(std::move(*combination), std::move(sources),
                        {reading->memory.subspan(reading->at, bytes)}, std::move(done));
}

// No checksum covers it, so other bytes than zeros would go unnoticed; and other lost files of the
// group may be made of this one.
void DegradedReader::zero_padding(const Reading& reading) const {
  const std::uint64_t end = reading.offset + reading.memory.size();
  for (auto at = std::ranges::lower_bound(padding_, reading.offset, {},
                                          &std::pair<std::uint64_t, std::uint64_t>::second);
       at != padding_.end() && at->first < end; ++at) {
    const std::uint64_t from = std::max(at->first, reading.offset);
    const std::uint64_t to = std::min(at->second, end);
    if (from >= to) continue;
    std::ranges::fill(reading.memory.subspan(from - reading.offset, to - from), std::byte{0});
  }
}

// Zeros first, then what is on this node, then the others: from another one on in each stripe.
std::vector<DegradedReader::Candidate> DegradedReader::candidates(std::uint32_t stripe,
                                                                  std::uint64_t begin,
                                                                  std::uint64_t bytes) const {
  const format::ParityManifest& parity = group_.parity;
  std::vector<Candidate> found;
  for (std::uint32_t at = 0; at < stripes_.count(); ++at) {
    const protect::Block block = stripes_.block(stripe, (at + stripe) % stripes_.count());
    if (block.member == lost_) continue;
    Candidate one{block.index, block.member, {}};
    one.source.bytes = block.bytes > begin ? std::min(bytes, block.bytes - begin) : 0;
    one.source.offset = block.offset + begin;
    one.source.file = {parity.version, parity.run, group_.members[block.member].node,
                       stripes_.is_parity(block.index)};
    const std::vector<NodeId> holders = holders_of(one.source.file, block.member);
    if (one.source.bytes > 0 && holders.empty()) continue;
    one.source.holder = holders.empty() ? self_ : holders.front();
    found.push_back(one);
  }
  std::ranges::stable_sort(found, {}, [this](const Candidate& one) {
    return one.source.bytes == 0 ? 0 : one.source.holder == self_ ? 1 : 2;
  });
  return found;
}

// What was made of these blocks was wrong, and it is unknown which block is: each attempt leaves
// out another one.
void DegradedReader::doubt(std::size_t attempt, std::vector<Candidate>& from) const {
  if (attempt == 0) return;
  const std::size_t member = (attempt - 1) % group_.members.size();
  const auto doubted = std::ranges::find(from, member, &Candidate::member);
  if (doubted == from.end()) return;
  if (from.size() > stripes_.shape().data) {
    from.erase(doubted);
    return;
  }
  const std::vector<NodeId> holders =
      holders_of(doubted->source.file, static_cast<std::uint32_t>(member));
  if (holders.empty()) return;  // zeros
  const std::size_t round = (attempt - 1) / group_.members.size();
  doubted->source.holder = holders[(1 + round) % holders.size()];
}

// The same few again and again: a matrix is inverted for each.
Result<protect::Combination> DegradedReader::how(std::uint32_t makes,
                                                 const std::vector<Candidate>& from) {
  std::vector<std::uint32_t> key{makes};
  for (const Candidate& one : from) key.push_back(one.index);
  if (const auto known = how_.find(key); known != how_.end()) return known->second;
  const std::span<const std::uint32_t> indexes(key);
  BACKSTAY_ASSIGN(
      protect::Combination made,
      protect::Combination::make(stripes_.shape(), indexes.subspan(1), indexes.first(1)));
  how_.emplace(std::move(key), made);
  return made;
}

// This agent first, where it is one.
std::vector<NodeId> DegradedReader::holders_of(const FileOf& file, std::uint32_t member) const {
  std::vector<NodeId> all = file.parity ? group_.parities[member] : group_.segments[member];
  std::erase_if(all, [&](NodeId holder) { return out_.contains({holder, file}); });
  std::stable_partition(all.begin(), all.end(), [this](NodeId holder) { return holder == self_; });
  return all;
}

void DegradedReader::cannot_give(const CombinedSource& source, const Error& why) {
  spdlog::warn("a block of a parity group cannot be read version={} file_of_node={} {} at={}: {}",
               source.file.version, source.file.node, source.file.parity ? "parity" : "segment",
               source.holder, why.to_string());
  out_.insert({source.holder, source.file});
  why_ = why.message();
  if (why.code() == Code::agent_lost) too_few_ = Code::agent_lost;
}

Error DegradedReader::too_few(std::size_t left) const {
  std::string text = fmt::format(
      "what node {} saved cannot be rebuilt: {} of the {} blocks that it takes are left in its "
      "group",
      group_.members[lost_].node, left, stripes_.shape().data);
  if (!why_.empty()) text += "; " + why_;
  return Error(too_few_, text);
}

}  // namespace backstay::agent
