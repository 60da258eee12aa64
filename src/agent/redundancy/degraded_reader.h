// The file of a lost node as a reader sees it who makes it out of what the others of its group have
// left (docs/protocol/parity.md, "At a restart"): any k living blocks of each stripe. Who cannot
// give his block is left out from then on. What proved wrong and is read again is made of other
// blocks than before: attempt n does without the block of member n - 1 or, where there are no more
// than k, with the one that another holder of it has.
//
// Main loop's thread; nothing blocks. It may be destroyed at any time: what was asked for is then
// not answered, and its memory has to stay until the stripe coder has gone too.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "agent/redundancy/stripe_coder.h"
#include "format/parity_manifest.h"
#include "protect/stripes.h"

namespace backstay::agent {

// A parity group of one version, and who has what of it now.
struct LivingGroup {
  format::ParityManifest parity;
  std::vector<format::Manifest> members;      // decoded, in the order of the ring
  std::vector<std::vector<NodeId>> segments;  // by member: agents that have his segment
  std::vector<std::vector<NodeId>> parities;  // or his parity
};

class DegradedReader final : public FileReader {
 public:
  // `lost`: whose segment is read. All must live longer. `self`: this agent.
  DegradedReader(StripeCoder& stripe_coder, LivingGroup group, std::uint32_t lost, NodeId self);

  // Both disregard holder and file. Errors: lost (too few blocks are left; says of whom), corrupt
  // (the manifest), again (a member has no room now).
  void read(NodeId holder, const FileOf& file, std::uint64_t offset, std::span<std::byte> memory,
            Done done) override;
  void read_manifest(NodeId holder, const FileOf& file, DoneManifest done) override;
  std::size_t tries() const override { return 2 + group_.members.size() * holders_max_; }

 private:
  struct Reading {
    std::uint64_t offset = 0;
    std::span<std::byte> memory;
    Done done;
    std::size_t attempt = 0;  // how often it was read before
    std::size_t at = 0;       // of the memory: made so far
  };
  struct Candidate {
    std::uint32_t index = 0;   // in the stripe
    std::uint32_t member = 0;  // whose block
    CombinedSource source;
  };
  using ReadingPtr = std::shared_ptr<Reading>;

  void go_on(const ReadingPtr& reading);
  void zero_padding(const Reading& reading) const;
  std::vector<Candidate> candidates(std::uint32_t stripe, std::uint64_t begin,
                                    std::uint64_t bytes) const;
  void doubt(std::size_t attempt, std::vector<Candidate>& from) const;
  Result<protect::Combination> how(std::uint32_t makes, const std::vector<Candidate>& from);
  Error too_few(std::size_t left) const;
  std::vector<NodeId> holders_of(const FileOf& file, std::uint32_t member) const;
  void cannot_give(const CombinedSource& source, const Error& why);

  StripeCoder& stripe_coder_;
  const LivingGroup group_;
  const protect::Stripes stripes_;
  const std::uint32_t lost_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> padding_;  // of that segment: from, to
  const NodeId self_;
  std::set<std::pair<NodeId, FileOf>> out_;  // holders that could not give a file
  std::string why_;                          // the last of them
  Code too_few_ = Code::lost;    // or agent_lost: who has one cannot be reached, and may come back
  std::size_t holders_max_ = 1;  // of one file
  std::map<std::vector<std::uint32_t>, protect::Combination> how_;  // by what is made, then read
  std::map<std::uint64_t, std::size_t> attempts_;                   // by offset
  CallbackGuard callback_guard_;
};

}  // namespace backstay::agent
