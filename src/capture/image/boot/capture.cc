#include "capture/image/boot/capture.h"

#include "capture/image/boot/areas.h"
#include "capture/image/boot/asyncio.h"
#include "capture/image/boot/attributes.h"
#include "capture/image/boot/children.h"
#include "capture/image/boot/contents.h"
#include "capture/image/boot/describe.h"
#include "capture/image/boot/gate.h"
#include "capture/image/boot/handlers.h"
#include "capture/image/boot/kept.h"
#include "capture/image/boot/lower_half.h"
#include "capture/image/boot/mpi_files.h"
#include "capture/image/boot/nameless.h"
#include "capture/image/boot/notes.h"
#include "capture/image/boot/personality.h"
#include "capture/image/boot/posix_timers.h"
#include "capture/image/boot/queued_signals.h"
#include "capture/image/boot/rights.h"
#include "capture/image/boot/snapshot.h"
#include "capture/image/boot/watch.h"

namespace backstay::image {

namespace {

Tables tables;
Stopped stopped;
uint64_t begun_ns = 0;

// How far the image was read.
struct Position {
  uint64_t run = 0, inside = 0;  // in its pages
  uint64_t kept_bytes = 0;       // runs before this offset are not read
  const uint8_t* tail = nullptr;
  uint64_t tail_bytes = 0;
  bool is_copy = false;  // a snapshot, which has copies of the files, too
};
Position position;

// With those of our own, so that a restart knows which MPI the process needs and which process id
// its event loops remember; and of the threads and their attributes.
void describe_notes(const char* given, Trouble& trouble) {
  NotesWriter notes(tables);
  notes.add(given);
  Text own;
  if (lower_library() != nullptr) {
    own << "mpi=" << lower_library() << "\n";
    mpi_files::add_notes(own);
  }
  asyncio::add_note(own);
  personality::add_note(own);
  notes.add(own.c_str());
  describe_threads(stopped, tables, notes);
  posix_timers::check(tables, trouble);
  if (trouble.empty()) queued_signals::add_notes(tables, notes, trouble);
  rights::add_others(notes);
  attributes::add_notes(stopped, notes);
  notes.end(trouble);
}

void describe_all(const char* notes, Watching watching, Trouble& trouble) {
  tables.begin();
  describe_signals(tables, trouble);
  const KernelAction lent =
      handlers::seen_by_program(static_cast<int>(stopped.signal), stopped.action);
  tables.handlers[stopped.signal - 1] = Handler{lent.handler, lent.flags, lent.restorer, lent.mask};
  if (trouble.empty()) describe_process(stopped, tables, trouble);
  asyncio::begin();
  if (trouble.empty()) describe_descriptors(tables, trouble);
  if (trouble.empty()) describe_notes(notes, trouble);
  if (trouble.empty()) contents::open(tables, trouble);
  if (trouble.empty()) describe_areas(tables, watching, trouble);
  if (trouble.empty()) nameless::refuse_many(tables, trouble);
}

// Pages that may not be read are made readable meanwhile: no other thread runs.
bool read_pages(uint64_t address, uint64_t bytes, uint32_t protection, const Visitor& visitor) {
  const bool hidden = (protection & protection_read) == 0;
  if (hidden) sys_protect(address, bytes, protection_read);
  const bool good = visitor.visit(visitor.context, reinterpret_cast<const void*>(address), bytes);
  if (hidden) sys_protect(address, bytes, static_cast<int>(protection));
  return good;
}

bool read_content(const Area& area, uint64_t address, uint64_t bytes, const Visitor& visitor) {
  static uint8_t piece[64 << 10];
  for (uint64_t at = 0; at < bytes;) {
    const uint64_t size = bytes - at < sizeof piece ? bytes - at : sizeof piece;
    if (!contents::read(area, address + at, piece, size)) return false;
    if (!visitor.visit(visitor.context, piece, size)) return false;
    at += size;
  }
  return true;
}

// Pages of one run; never more than to its end.
uint64_t read_of_run(uint64_t size, const Visitor& visitor, bool& good) {
  const Run& run = tables.runs[position.run];
  const Area& area = area_of(tables.areas, run);
  const uint64_t left = bytes_of(run) - position.inside;
  const uint64_t bytes = size < left ? size : left;
  const uint64_t from = run.address + position.inside;
  good = is_content(area) && !position.is_copy ? read_content(area, from, bytes, visitor)
                                               : read_pages(from, bytes, area.protection, visitor);
  position.inside += bytes;
  if (position.inside == bytes_of(run)) {
    ++position.run;
    position.inside = 0;
  }
  return bytes;
}

struct ToSink {
  const Sink& sink;
  Trouble& trouble;
};

bool write_piece(void* context, const void* bytes, uint64_t size) {
  const auto* to = static_cast<const ToSink*>(context);
  return to->sink.write(to->sink.context, bytes, size, to->trouble);
}

bool any_at_a_door() {
  for (uint64_t i = 0; i < stopped.count; ++i) {
    const uint64_t at = stopped.threads[i].context->registers[reg_rip];
    if (in_window(at, at)) return true;
  }
  return false;
}

constexpr uint64_t patience_ns = 2'000'000'000;
constexpr uint64_t pause_ns = 500'000;

// Nothing tells when a call of MPI returns; a thread that is in one must get time to run.
void pause(uint64_t ns) {
  const uint64_t time[2] = {0, ns};
  system_call(__NR_nanosleep, address_of(time), 0);
}

void name_the_call(bool in_mpi, Trouble& trouble) {
  if (in_mpi) {
    trouble << "the program has been in a call of MPI (" << lower_library() << ")";
  } else {
    trouble << "a thread of the program has been in the boot program";
  }
  trouble << " for " << patience_ns / 1'000'000'000 << " s: it can be saved between two calls";
}

// A thread at a door is in code of this build, which no image may name. It is outside soon. One in
// a call of MPI may stay there.
void stop_outside(Trouble& trouble) {
  const uint64_t end = now_ns(1) + patience_ns;
  do {
    stopped = Stopped();
    stop_threads(stopped, trouble);
    if (!trouble.empty()) return;
    const bool in_mpi = in_lower_half();
    if (!in_mpi && !any_at_a_door()) return;
    resume_threads(stopped);
    if (now_ns(1) > end) {
      return name_the_call(in_mpi, trouble);
    }
    if (in_mpi) pause(pause_ns);
  } while (!gate::is_wanted());
  trouble << exec_under_way;
}

// Before threads are stopped: one that has just started a child does not stop before its exec.
Refused refuse_at_once(bool tersely, Trouble& trouble) {
  refuse_children(!tersely, trouble);
  return trouble.empty() ? Refused::no : Refused::child;
}

Watching watching_for(const CutWishes& wishes) {
  if (!wishes.watches && !wishes.keeps) return Watching::off;
  if (writes_come_unseen() || !watch::begin()) return Watching::off;
  return wishes.keeps && kept::any() ? Watching::goes_on : Watching::begins;
}

// Where each page lies in the object, and the tables behind them.
void lay_out(const CutWishes& wishes, Watching watching, CutResult& result, Trouble& trouble) {
  uint64_t kept_bytes = 0;
  if (watching == Watching::goes_on) {
    kept_bytes = kept::place(tables.areas, tables.runs, trouble);
    if (!trouble.empty()) return;
  }
  if (kept_bytes > 0) tables.format = format_kept;
  uint64_t end = kept_bytes;
  for (const Run& run : tables.runs) {
    result.pages += run.pages;
    const uint64_t run_end = run.offset + bytes_of(run);
    if (run_end > end) end = run_end;
  }
  uint8_t* tail = nullptr;
  const uint64_t tail_bytes = encode(tables, end, &tail);
  position = Position{0, 0, kept_bytes, tail, tail_bytes};
  result.bytes = end + tail_bytes;
  result.kept_bytes = kept_bytes;
  result.table_bytes = tail_bytes;
  kept::forget();
  if (watching != Watching::off) kept::remember(tables.runs, kept_bytes, end, wishes.chunk_bytes);
}

// The first such file stands for all.
const char* find_not_in_image() {
  for (const Area& area : tables.areas) {
    if ((area.flags & area_may_become_writable) == 0) continue;
    const char* path = tables.text(tables.files[area.file].path);
    if (!contents::holds(tables, path)) return path;
  }
  return "";
}

}  // namespace

void begin_cut(const CutWishes& wishes, CutResult& result, Trouble& trouble) {
  result.refused = refuse_at_once(wishes.tersely, trouble);
  if (!trouble.empty()) return;
  arena::end();  // what is left of a restart
  if (const long wrong = arena::begin(); wrong != 0) {
    trouble << "memory for the image's tables cannot be mapped (error " << -wrong
            << "); is the program's memory limited (ulimit)?";
    result.refused = Refused::now;
    return;
  }
  learn_files();
  begun_ns = now_ns(1);
  if (!gate::begin_cut()) {
    trouble << exec_under_way;
  } else {
    stop_outside(trouble);
    if (!trouble.empty()) gate::end_cut();
  }
  if (!trouble.empty()) {
    const bool again = gate::is_wanted() || same_text(trouble.c_str(), exec_under_way);
    result.refused = again ? Refused::again : Refused::now;
    return arena::end();
  }
  if (stopped.leader_ended) trouble << "the program's first thread has ended before the others";
  const uint64_t agreed = now_ns(1);
  const Watching watching = watching_for(wishes);
  if (trouble.empty()) describe_all(wishes.notes, watching, trouble);
  if (trouble.empty()) lay_out(wishes, watching, result, trouble);
  if (!trouble.empty()) result.refused = Refused::now;
  if (trouble.empty()) refuse_children(!wishes.tersely, trouble);  // one that was started meanwhile
  if (!trouble.empty()) {
    if (result.refused == Refused::no) result.refused = Refused::child;
    kept::forget();
    return end_cut(result);
  }
  result.contents = contents::count();
  copy_text(result.not_in_image, sizeof result.not_in_image, find_not_in_image());
  result.agreeing_ns = agreed - begun_ns;
  result.describing_ns = now_ns(1) - agreed;
}

bool read_cut(uint64_t size, const Visitor& visitor) {
  bool good = true;
  while (good && size > 0 && position.run < tables.runs.size()) {
    if (tables.runs[position.run].offset < position.kept_bytes) {
      ++position.run;
    } else {
      size -= read_of_run(size, visitor, good);
    }
  }
  if (!good || size == 0) return good;
  if (size > position.tail_bytes) return false;
  good = visitor.visit(visitor.context, position.tail, size);
  position.tail += size;
  position.tail_bytes -= size;
  return good;
}

void check_cut(bool read, Trouble& trouble) {
  const bool ended = position.tail_bytes == 0 || !read;
  if (ended && !position.is_copy) contents::compare(tables, trouble);
}

void end_cut(CutResult& result) {
  contents::close();
  resume_threads(stopped);
  gate::end_cut();
  result.stopped_ns = now_ns(1) - begun_ns;
  arena::end();
}

long fork_cut(long channel, Refused& refused, Trouble& trouble) {
  const long process = snapshot::fork(channel, tables, position.kept_bytes, refused, trouble);
  if (process == 0) {
    position.is_copy = true;
    if (trouble.empty()) contents::compare(tables, trouble);
  }
  return process;
}

void cut(const Sink& sink, CutResult& result, Trouble& trouble) {
  begin_cut({}, result, trouble);
  if (!trouble.empty()) return;
  ToSink to{sink, trouble};
  read_cut(result.bytes, Visitor{&to, write_piece});
  if (trouble.empty()) check_cut(true, trouble);
  end_cut(result);
}

}  // namespace backstay::image
