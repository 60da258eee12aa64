#include "agent/redundancy/transfers.h"

#include <fmt/format.h>

#include "format/manifest.h"
#include "format/segment.h"

namespace backstay::agent {

namespace {

constexpr std::size_t line_max = 4096;  // requests that wait here

FileOf file_of(const wire::peer::Get& get) { return {get.version, get.run, get.node, get.parity}; }

}  // namespace

Transfers::Transfers(Peers& peers, PeerFileLink& peer_files, StagingBuffers& serving,
                     std::uint64_t first_ticket)
    : peers_(peers), peer_files_(peer_files), serving_(serving), asked_(first_ticket) {}

// --- reader --------------------------------------------------------------------------------------

void Transfers::read(NodeId holder, const FileOf& file, std::uint64_t offset,
                     std::span<std::byte> memory, Done done) {
  if (holder != peers_.self()) {
    wire::peer::Get get;
    get.offset = offset;
    get.bytes = memory.size();
    return ask(holder, file, get, {memory, std::move(done), nullptr});
  }
  ++from_peer_files_;
  peer_files_.post(ReadPiece{file, offset, memory,
                             callback_guard_([this, done = std::move(done)](const Status& status) {
                               --from_peer_files_;
                               done(status);
                             })});
}

void Transfers::read_manifest(NodeId holder, const FileOf& file, DoneManifest done) {
  if (holder != peers_.self()) {
    wire::peer::Get get;
    get.manifest = true;
    return ask(holder, file, get, {{}, nullptr, std::move(done)});
  }
  ++from_peer_files_;
  peer_files_.post(ReadFileManifest{
      file, callback_guard_([this, done = std::move(done)](Result<Buffer> manifest) {
        --from_peer_files_;
        done(std::move(manifest));
      })});
}

void Transfers::ask(NodeId holder, const FileOf& file, wire::peer::Get get, Asked asked) {
  get.ticket = asked_.add(holder, std::move(asked));
  get.version = file.version;
  get.run = file.run;
  get.node = file.node;
  get.parity = file.parity;
  peers_.send(holder, get);
}

void Transfers::Asked::fail(const Error& error) {
  if (done) {
    done(error);
  } else {
    done_manifest(error);
  }
}

void Transfers::on(NodeId from, const wire::peer::No& no) {
  auto asked = asked_.take(from, no.ticket);
  if (!asked) return;
  const Code code = no.code == Code::ok ? Code::protocol : no.code;
  asked->fail(Error(code, fmt::format("node {}: {}", from, no.message)));
}

void Transfers::offered(NodeId from, std::uint64_t ticket, std::uint64_t bytes, OfferFrom offer) {
  auto asked = asked_.take(from, ticket);
  if (!asked) return peers_.refuse(offer);
  const bool fits =
      asked->done ? bytes == asked->memory.size() : bytes <= format::manifest_bytes_max;
  if (!fits) {
    peers_.refuse(offer);
    return asked->fail(
        Error(Code::protocol,
              fmt::format("node {} offers {} bytes that were not asked for", from, bytes)));
  }
  if (asked->done) return fetch(offer, std::move(*asked));
  fetch_manifest(bytes, offer, std::move(asked->done_manifest));
}

void Transfers::fetch(OfferFrom offer, Asked asked) {
  ++fetching_;
  peers_.fetch(offer, asked.memory,
               callback_guard_([this, done = std::move(asked.done)](const Status& status) {
                 --fetching_;
                 done(status);
               }));
}

void Transfers::fetch_manifest(std::uint64_t bytes, OfferFrom offer, DoneManifest done) {
  ++fetching_;
  auto manifest = std::make_shared<Buffer>(bytes);
  peers_.fetch(offer, *manifest,
               callback_guard_([this, manifest, done = std::move(done)](const Status& status) {
                 --fetching_;
                 done(status.ok() ? Result<Buffer>(std::move(*manifest)) : status.error());
               }));
}

// --- holder --------------------------------------------------------------------------------------

void Transfers::on(NodeId from, const wire::peer::Get& get) {
  const bool aligned = (get.offset | get.bytes) % format::segment_alignment == 0;
  if (!get.manifest && (!aligned || get.bytes == 0 || get.bytes > serving_.buffer_bytes())) {
    return refuse(from, get.ticket,
                  Error(Code::invalid,
                        fmt::format("{} bytes from {} on cannot be given: multiples of 4096, at "
                                    "most {} (pool.buffer_mib must be the same on all nodes)",
                                    get.bytes, get.offset, serving_.buffer_bytes())));
  }
  if (line_.size() >= line_max) {
    return refuse(from, get.ticket, Error(Code::again, "too many are waiting"));
  }
  line_.emplace_back(from, get);
  serve();
}

void Transfers::serve() {
  while (!line_.empty()) {
    Lease lease = serving_.take();
    if (!lease) return;
    const auto [to, get] = line_.front();
    line_.pop_front();
    auto answer = std::make_shared<Answer>();
    answer->to = to;
    answer->ticket = get.ticket;
    answer->losses = losses_[to];
    answer->lease = std::move(lease);
    serve_one(answer, get);
  }
}

// A manifest has memory of its own; the lease bounds how many there are at once.
void Transfers::serve_one(const std::shared_ptr<Answer>& answer, const wire::peer::Get& get) {
  if (get.manifest) {
    return peer_files_.post(
        ReadFileManifest{file_of(get), callback_guard_([this, answer](Result<Buffer> manifest) {
                           if (!manifest.ok()) return give(answer, manifest.error(), {});
                           answer->manifest = std::move(*manifest);
                           give(answer, {}, answer->manifest);
                         })});
  }
  const auto memory = answer->lease->span().first(get.bytes);
  peer_files_.post(ReadPiece{file_of(get), get.offset, memory,
                             callback_guard_([this, answer, memory](const Status& status) {
                               give(answer, status, memory);
                             })});
}

void Transfers::give(const std::shared_ptr<Answer>& answer, const Status& read, Bytes memory) {
  // Who asked has gone; who has come back in its place knows nothing of the ticket.
  const bool gone = answer->losses != losses_[answer->to];
  if (read.ok() && !gone) {
    return peers_.offer(answer->to, answer->ticket, memory,
                        callback_guard_([this, answer](const Status&) {
                          answer->lease.reset();
                          serve();
                        }));
  }
  if (!gone) refuse(answer->to, answer->ticket, read.error());
  answer->lease.reset();
  serve();
}

void Transfers::refuse(NodeId to, std::uint64_t ticket, const Error& error) {
  peers_.send(to, wire::peer::No{ticket, error.code(), error.message()});
}

// --- events --------------------------------------------------------------------------------------

void Transfers::lost(NodeId peer, const Error& why) {
  ++losses_[peer];
  std::erase_if(line_, [peer](const auto& entry) { return entry.first == peer; });
  const Error error(Code::agent_lost, fmt::format("node {}: {}", peer, why.message()));
  for (Asked& asked : asked_.take_all(peer)) asked.fail(error);
}

}  // namespace backstay::agent
