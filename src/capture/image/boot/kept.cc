#include "capture/image/boot/kept.h"

#include "capture/image/boot/areas.h"

namespace backstay::image::kept {

namespace {

// Images with more are not remembered: the next one is whole.
constexpr uint64_t runs_max = 1 << 20;
constexpr uint64_t pieces_max = 1 << 16;
constexpr uint64_t place_bytes = runs_max * sizeof(Run) + pieces_max * sizeof(Piece);

// Of the image before: in memory of its own, as the arena ends with each cut.
Row<Run> runs_before;
Row<Piece> pieces_before;
bool mapped = false;
bool known = false;
// Of the image that is made: in the arena.
Row<Piece> kept_pieces;

bool map() {
  if (mapped) return true;
  mapped = map_own(before_place, place_bytes) == 0;
  if (!mapped) return false;
  runs_before.adopt(reinterpret_cast<Run*>(before_place), 0);
  pieces_before.adopt(reinterpret_cast<Piece*>(before_place + runs_max * sizeof(Run)), 0);
  return true;
}

// The piece that holds this offset; null: none does. Pieces follow each other from 0 on.
Piece* piece_at(uint64_t offset) {
  Piece* found = find_first(
      pieces_before, [&](const Piece& piece) { return piece.offset + piece.bytes <= offset; });
  return found == pieces_before.end() ? nullptr : found;
}

// Adds pages that lie in the image before at `offset`, cut where its pieces end. Their `version` is
// the number of the piece, from 1; 0: in none, so they are written again.
bool add_pages(Row<Run>& out, uint64_t start, uint64_t end, uint64_t offset) {
  while (start < end) {
    Piece* piece = piece_at(offset);
    uint64_t bytes = end - start;
    if (piece != nullptr) {
      const uint64_t left = piece->offset + piece->bytes - offset;
      if (left < bytes) bytes = left;
      piece->live += bytes;
    }
    Run* run = out.add();
    if (run == nullptr) return false;
    const auto number = piece == nullptr ? 0 : static_cast<uint64_t>(piece - &pieces_before[0]) + 1;
    *run = Run{start, bytes / page_bytes, offset, number};
    start += bytes;
    offset += bytes;
  }
  return true;
}

// What of it the image before has; what that has not is zeros. `at`: the first run there that may
// meet it.
bool add_unwritten(Row<Run>& out, const Run& run, uint64_t& at) {
  const uint64_t end = end_of(run);
  while (at < runs_before.size() && end_of(runs_before[at]) <= run.address) ++at;
  for (; at < runs_before.size() && runs_before[at].address < end; ++at) {
    const Run& old = runs_before[at];
    const uint64_t first = old.address > run.address ? old.address : run.address;
    const uint64_t last = end_of(old) < end ? end_of(old) : end;
    if (!add_pages(out, first, last, old.offset + (first - old.address))) return false;
    if (end_of(old) > end) break;  // the rest of it may meet the next one
  }
  return true;
}

// Those of which at least half is alive stay. Returns their bytes.
uint64_t choose() {
  uint64_t next = 0;
  for (Piece& piece : pieces_before) {
    if (piece.live * 2 < piece.bytes) continue;
    piece.moved = next;
    next += piece.bytes;
    *kept_pieces.add() = piece;
  }
  return next;
}

void give_offsets(const Row<Area>& areas, Row<Run>& runs, uint64_t kept_bytes) {
  uint64_t next = kept_bytes;
  uint64_t count = 0;
  for (Run run : runs) {
    const Piece* piece = run.version == 0 ? nullptr : &pieces_before[run.version - 1];
    if (piece != nullptr && piece->moved != not_kept) {
      run.offset = piece->moved + (run.offset - piece->offset);
    } else {
      run.offset = next;
      next += bytes_of(run);
    }
    run.version = 0;
    Run* last = count > 0 ? &runs[count - 1] : nullptr;
    const bool follows = last != nullptr && end_of(*last) == run.address &&
                         last->offset + bytes_of(*last) == run.offset &&
                         last->address >= area_of(areas, run).start;
    // The first new page begins a run of its own: runs that begin among kept ones are not read.
    if (follows && run.offset != kept_bytes) {
      last->pages += run.pages;
    } else {
      runs[count++] = run;
    }
  }
  runs.resize(count);
}

bool remember_pieces(uint64_t kept_bytes, uint64_t pages_end, uint64_t chunk_bytes) {
  uint64_t count = 0;
  for (uint64_t i = 0; kept_bytes > 0 && i < kept_pieces.size(); ++i) {
    pieces_before[count++] = Piece{kept_pieces[i].moved, kept_pieces[i].bytes, 0, not_kept};
  }
  // The last chunk holds the table too: it is not kept.
  for (uint64_t at = kept_bytes; at + chunk_bytes <= pages_end; at += chunk_bytes) {
    if (count == pieces_max) return false;
    pieces_before[count++] = Piece{at, chunk_bytes, 0, not_kept};
  }
  pieces_before.resize(count);
  return true;
}

bool remember_runs(const Row<Run>& runs) {
  if (runs.size() > runs_max) return false;
  memcpy(runs_before.begin(), runs.begin(), runs.size() * sizeof(Run));
  runs_before.resize(runs.size());
  return true;
}

}  // namespace

bool any() { return known; }

uint64_t place(const Row<Area>& areas, Row<Run>& runs, Trouble& trouble) {
  Row<Run> out;
  out.begin(runs.room());
  uint64_t at = 0;
  for (const Run& run : runs) {
    bool good = true;
    if (run.version == unwritten) {
      good = add_unwritten(out, run, at);
    } else {
      Run* added = out.add();
      good = added != nullptr;
      if (good) *added = Run{run.address, run.pages, 0, 0};
    }
    if (!good) {
      trouble << "the memory has more pieces than an image can name";
      return 0;
    }
  }
  kept_pieces.begin(pieces_max);
  const uint64_t bytes = choose();
  give_offsets(areas, out, bytes);
  runs = out;
  return bytes;
}

const Row<Piece>& pieces() { return kept_pieces; }

void remember(const Row<Run>& runs, uint64_t kept_bytes, uint64_t pages_end, uint64_t chunk_bytes) {
  known = chunk_bytes != 0 && map() && remember_pieces(kept_bytes, pages_end, chunk_bytes) &&
          remember_runs(runs);
}

bool remember_restored(const Row<Run>& runs, const Row<KeptChunk>& chunks, uint64_t pages_end) {
  known = false;
  if (!map()) return false;
  uint64_t count = 0;
  uint64_t end = 0;
  for (const KeptChunk& chunk : chunks) {
    const bool follows = chunk.offset == end && chunk.bytes > 0 && chunk.bytes % page_bytes == 0;
    if (!follows || chunk.bytes > pages_end - end) break;
    if (count == pieces_max) return false;
    pieces_before[count++] = Piece{chunk.offset, chunk.bytes, 0, not_kept};
    end += chunk.bytes;
  }
  pieces_before.resize(count);
  known = remember_runs(runs);
  return known;
}

void forget() { known = false; }

}  // namespace backstay::image::kept
