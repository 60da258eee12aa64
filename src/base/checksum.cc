#include "base/checksum.h"

#define XXH_STATIC_LINKING_ONLY  // the state lives inside ours
#include <xxhash.h>
#if defined(__x86_64__)
#include <xxh_x86dispatch.h>  // replaces XXH3_64bits* by the dispatching functions
#endif

#include <algorithm>

#include "base/stream_copy.h"

namespace backstay {

namespace {

// Small enough that the block stays in the first level cache between hashing and copying, large
// enough that the calls do not show. Hashing only reads memory and streaming only writes it: left
// alone they take turns and half of the bandwidth rests. So each block is fetched while the one
// before it is stored.
constexpr std::size_t block_bytes = 16 * 1024;

}  // namespace

struct Checksum::State {
  XXH3_state_t xxh;
};

std::uint64_t checksum(Bytes bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

Checksum::Checksum() : state_(new State) { reset(); }
Checksum::~Checksum() = default;

void Checksum::reset() { XXH3_64bits_reset(&state_->xxh); }

void Checksum::update(Bytes bytes) { XXH3_64bits_update(&state_->xxh, bytes.data(), bytes.size()); }

void Checksum::update_copy(std::byte* to, Bytes from) {
  for (std::size_t at = 0; at < from.size(); at += block_bytes) {
    const std::size_t size = std::min(block_bytes, from.size() - at);
    XXH3_64bits_update(&state_->xxh, from.data() + at, size);
    stream_copy_and_fetch_next(to + at, from.subspan(at, size));
  }
  stream_fence();
}

std::uint64_t Checksum::digest() const { return XXH3_64bits_digest(&state_->xxh); }

}  // namespace backstay
