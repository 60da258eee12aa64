#include "client/pieces.h"

#include <algorithm>
#include <utility>

namespace backstay::client {

void Pieces::add(Rank from, std::uint64_t begin, std::uint64_t bytes, ObjectReader::Take take) {
  if (bytes > 0) objects_[from][begin] = {begin + bytes, std::move(take)};
}

Status Pieces::verify(SavedObjects& saved) const { return read(saved, /*take=*/false); }

Status Pieces::take(SavedObjects& saved) const { return read(saved, /*take=*/true); }

// A gap shorter than a buffer costs at most the one chunk that may lie inside of it.
Status Pieces::read(SavedObjects& saved, bool take) const {
  const ObjectReader::Take only_verify = [](std::uint64_t, Bytes) { return Status(); };
  for (const auto& [rank, object] : objects_) {
    const ObjectReader::Take all = [&pieces = object](std::uint64_t offset, Bytes bytes) {
      return hand_out(pieces, offset, bytes);
    };
    for (auto piece = object.begin(); piece != object.end();) {
      const std::uint64_t begin = piece->first;
      std::uint64_t end = piece->second.end;
      for (++piece; piece != object.end() && piece->first < end + saved.piece_bytes(); ++piece) {
        end = piece->second.end;
      }
      BACKSTAY_TRY(saved.of(rank)->range(begin, end - begin, take ? all : only_verify));
    }
  }
  return {};
}

Status Pieces::hand_out(const Object& object, std::uint64_t offset, Bytes bytes) {
  auto piece = object.upper_bound(offset);
  if (piece != object.begin()) --piece;
  for (; piece != object.end() && piece->first < offset + bytes.size(); ++piece) {
    const std::uint64_t from = std::max(offset, piece->first);
    const std::uint64_t end = std::min(offset + bytes.size(), piece->second.end);
    if (from >= end) continue;
    BACKSTAY_TRY(piece->second.take(from, bytes.subspan(from - offset, end - from)));
  }
  return {};
}

}  // namespace backstay::client
