// Reading files of nodes from other agents, and answering those that read from this one: both sides
// of "Reading" in docs/protocol/peers.md. What lies on this node is read through the peer file
// thread, without the network.
//
// As holder: requests wait in line for one of `serving`'s buffers; a line that is too long is
// answered with `again`. As reader: nothing is bounded or tried again here; the reader has the
// memory, and knows the other holders of the file.
//
// Main loop's thread. May be destroyed while it answers others; the reader must keep the memory
// until the peer file thread and the peers have gone too, or wait until reading() is 0.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>

#include "agent/disk/peer_files.h"
#include "agent/group/callback_guard.h"
#include "agent/group/peers.h"
#include "agent/group/pending_requests.h"
#include "agent/memory/staging_buffers.h"

namespace backstay::agent {

class Transfers final : public FileReader {
 public:
  // All must live longer. `first_ticket`: larger than any that this agent has used in an earlier
  // life, so that an answer to that one matches no request.
  Transfers(Peers& peers, PeerFileLink& peer_files, StagingBuffers& serving,
            std::uint64_t first_ticket);

  void read(NodeId holder, const FileOf& file, std::uint64_t offset, std::span<std::byte> memory,
            Done done) override;
  void read_manifest(NodeId holder, const FileOf& file, DoneManifest done) override;

  void on(NodeId from, const wire::peer::Get& get);
  void on(NodeId from, const wire::peer::No& no);
  void offered(NodeId from, std::uint64_t ticket, std::uint64_t bytes, OfferFrom offer);
  void lost(NodeId peer, const Error& why);
  // Answers what waits for a buffer, as far as there are any. To be called now and then: answers of
  // an earlier run of the job may hold the buffers, and give them back without a word.
  void serve();

  // Calls whose `done` has not come yet.
  std::size_t reading() const { return asked_.size() + fetching_ + from_peer_files_; }

 private:
  struct Asked {  // of another agent
    std::span<std::byte> memory;
    Done done;  // one of the two
    DoneManifest done_manifest;
    void fail(const Error& error);
  };
  struct Answer {  // to another agent
    NodeId to = 0;
    std::uint64_t ticket = 0;
    std::uint64_t losses = 0;  // of that peer when it asked
    Lease lease;
    Buffer manifest;
  };

  void ask(NodeId holder, const FileOf& file, wire::peer::Get get, Asked asked);
  void fetch(OfferFrom offer, Asked asked);
  void fetch_manifest(std::uint64_t bytes, OfferFrom offer, DoneManifest done);

  void serve_one(const std::shared_ptr<Answer>& answer, const wire::peer::Get& get);
  void give(const std::shared_ptr<Answer>& answer, const Status& read, Bytes memory);
  void refuse(NodeId to, std::uint64_t ticket, const Error& error);

  Peers& peers_;
  PeerFileLink& peer_files_;
  StagingBuffers& serving_;
  PendingRequests<Asked> asked_;
  std::size_t fetching_ = 0;
  std::size_t from_peer_files_ = 0;
  std::deque<std::pair<NodeId, wire::peer::Get>> line_;
  std::map<NodeId, std::uint64_t> losses_;  // how often a peer was lost
  CallbackGuard callback_guard_;
};

}  // namespace backstay::agent
