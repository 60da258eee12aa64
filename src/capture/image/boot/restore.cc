// 1. Read footer and table; compare machine, files and descriptors: refuse here, nothing has
// changed.
// 2. Unmap what the kernel gave this process; only the boot program's window is left.
// 3. Start as many threads as there were; they wait in the window.
// 4. Map the areas where they were, fill them, renew thread ids, put heap and vdso in place.
// 5. The lower half, where the program had one; descriptors, working directory, handlers, timers.
// 6. With a companion: wait until all ranks have come so far, as each may still go back.
// 7. Start the control thread; each thread returns from the signal that stopped it.
#include "capture/image/boot/restore.h"

#include <linux/mman.h>

#include "capture/image/boot/areas.h"
#include "capture/image/boot/asyncio.h"
#include "capture/image/boot/attributes.h"
#include "capture/image/boot/bring_back.h"
#include "capture/image/boot/companion.h"
#include "capture/image/boot/control.h"
#include "capture/image/boot/copy_sum.h"
#include "capture/image/boot/doors.h"
#include "capture/image/boot/files.h"
#include "capture/image/boot/huge_pages.h"
#include "capture/image/boot/kept.h"
#include "capture/image/boot/lower_half.h"
#include "capture/image/boot/mpi_files.h"
#include "capture/image/boot/outputs.h"
#include "capture/image/boot/posix_timers.h"
#include "capture/image/boot/program.h"
#include "capture/image/boot/rights.h"
#include "capture/image/boot/watch.h"

namespace backstay::image {

namespace {

constexpr int refused = 78;

Tables tables;
char image_path[4096];

bool by_companion = false;
long control = -1;

// A companion says why, in its own words. `how`: image, where an older one may do.
void check(const Trouble& trouble, Refused how = Refused::ends) {
  if (trouble.empty()) return;
  if (!by_companion) give_up(Text() << "cannot restart: " << trouble.c_str(), refused);
  companion::refuse(control, trouble, how, refused);
}

void read_tables(const Source& source, Trouble& trouble) {
  Footer footer{};
  if (source.bytes < sizeof footer) {
    trouble << "this is no image of a process";
    return;
  }
  if (!source.read(source.context, &footer, sizeof footer, source.bytes - sizeof footer, trouble)) {
    return;
  }
  check_footer(footer, source.bytes, trouble);
  if (!trouble.empty()) return;
  auto* table = static_cast<uint8_t*>(arena::take(footer.table_bytes));
  if (!source.read(source.context, table, footer.table_bytes, footer.table_offset, trouble)) return;
  decode(footer, table, tables, trouble);
}

// The image's end, in memory that the companion hands over.
struct TailSource {
  const uint8_t* bytes = nullptr;
  uint64_t at = 0;  // in the object
  uint64_t end = 0;
};

bool read_tail(void* context, void* to, uint64_t size, uint64_t at, Trouble& trouble) {
  const auto* tail = static_cast<const TailSource*>(context);
  if (at < tail->at || at > tail->end || size > tail->end - at) {
    trouble << "the image's table is not where its footer says";
    return false;
  }
  memcpy(to, tail->bytes + (at - tail->at), size);
  return true;
}

// The file that the program's code was mapped from; where it was removed, the program's name.
void remember_own_file() {
  const uint64_t code = tables.identity.code_start;
  const Area* area = find_first(tables.areas, [&](const Area& one) { return one.end <= code; });
  const bool has_file = area != tables.areas.end() && area->file != no_index;
  const char* path =
      has_file ? tables.text(tables.files[area->file].path) : tables.text(tables.identity.program);
  copy_text(process.own_file, sizeof process.own_file, path[0] == '/' ? path : "");
  FileStatus status;
  file_status(path, status);
  process.own_device = status.device;
  process.own_inode = status.inode;
}

void remember_process() {
  process.layout = tables.identity;
  copy_text(process.program, sizeof process.program, tables.text(tables.identity.program));
  copy_text(process.interpreter, sizeof process.interpreter,
            tables.text(tables.identity.interpreter));
  remember_own_file();
}

Text missing;  // what the program had, and is not allowed here

// Of the real MPI; empty: the program had no lower half.
char real_library[64];

void check_library(Trouble& trouble) {
  if (note_of(tables, "mpi", real_library, sizeof real_library)) {
    mpi_files::take_notes(tables);
    check_lower_half(real_library, trouble);
  }
}

// What all images of the program need comes first.
void check_all() {
  Trouble trouble;
  check_library(trouble);
  if (trouble.empty()) check_machine(tables, trouble);
  if (trouble.empty()) check_folder(tables, trouble);
  if (trouble.empty()) check_programs(tables, trouble);
  check(trouble);
  check_files(tables, trouble);
  if (trouble.empty()) check_descriptors(tables, trouble);
  if (trouble.empty()) rights::check(tables, trouble, missing);
  check(trouble, Refused::image);
}

void make_room() {
  Trouble trouble;
  set_mask(~0ULL);
  remember_process();
  clear_memory();
  start_threads(tables, trouble);
  check(trouble);
  map_areas(tables, trouble);
  check(trouble);
  ask_for_huge_pages(tables);
}

void complete_memory() {
  Trouble trouble;
  const Identity& identity = tables.identity;
  write_contents(tables, trouble);
  if (trouble.empty()) map_written_files(tables, trouble);
  check(trouble, Refused::image);
  renew_thread_ids(tables);
  asyncio::bring_back(tables);
  end_huge_pages(tables);
  protect_areas(tables);
  place_vdso(tables);
  auto* auxv = reinterpret_cast<uint64_t*>(identity.auxv_start);
  const long layout = set_layout(identity, auxv, identity.auxv_bytes);
  if (layout != 0) {
    trouble << "this kernel does not set the heap's place (PR_SET_MM_MAP, error " << -layout << ")";
  }
  check(trouble);
}

// The companion ends this process where another rank could not be brought back.
void wait_for_others() {
  Request request{};
  long descriptor = -1;
  const bool came = companion::next(control, request, descriptor);
  if (!came || request.kind != static_cast<uint32_t>(Ask::go)) sys_exit(refused);
}

[[noreturn]] void start_again(Options& options) {
  Trouble trouble;
  const bool lower = real_library[0] != 0;
  attributes::take_limits(tables, /*at_last=*/false, missing);
  clear_descriptors(tables, lower, options.control, trouble);
  control = options.control;
  check(trouble);
  posix_timers::make(tables, trouble);  // before others may take their numbers
  check(trouble, Refused::image);
  if (lower) restart_lower_half(real_library, trouble);
  check(trouble);
  open_descriptors(tables, trouble);
  check(trouble, Refused::image);
  set_signals(tables);
  attributes::take(tables, missing);
  if (by_companion) {
    static Answer said;
    copy_text(said.why, sizeof said.why, missing.c_str());
    companion::answer(control, said);
    wait_for_others();
  }
  start_control(options);
  wait_for_control();
  set_timers(tables);
  go_on(tables);
}

// --- from a file ---------------------------------------------------------------------------------

void fill_from(const Source& source, Trouble& trouble) {
  for (const Run& run : tables.runs) {
    if (!source.read(source.context, place_of(tables, run), bytes_of(run), run.offset, trouble)) {
      return;
    }
  }
}

[[noreturn]] void restore_from_file(Options& options) {
  Trouble trouble;
  if (options.image != nullptr) {
    copy_text(image_path, sizeof image_path, options.image);
    options.image = image_path;
  }
  FileSource file;
  file.begin(options.restore, trouble);
  check(trouble);
  const Source source = file.source();
  read_tables(source, trouble);
  check(trouble);
  check_all();
  make_room();
  fill_from(source, trouble);
  check(trouble);
  complete_memory();
  sys_close(file.fd);
  start_again(options);
}

// --- from a companion ----------------------------------------------------------------------------

// The runs in the order of the object, which may be another one than that of their addresses.
Row<const Run*> by_offset;

void sink_down(uint64_t at, uint64_t size) {
  for (uint64_t child = 2 * at + 1; child < size; at = child, child = 2 * at + 1) {
    if (child + 1 < size && by_offset[child]->offset < by_offset[child + 1]->offset) ++child;
    if (by_offset[at]->offset >= by_offset[child]->offset) return;
    const Run* other = by_offset[at];
    by_offset[at] = by_offset[child];
    by_offset[child] = other;
  }
}

// By a heap: there is no library that sorts.
void sort_runs() {
  by_offset.begin(tables.runs.size());
  for (const Run& run : tables.runs) *by_offset.add() = &run;
  if (tables.format == format_whole) return;
  const uint64_t size = by_offset.size();
  for (uint64_t at = size / 2; at > 0; --at) sink_down(at - 1, size);
  for (uint64_t left = size; left > 1; --left) {
    const Run* last = by_offset[left - 1];
    by_offset[left - 1] = by_offset[0];
    by_offset[0] = last;
    sink_down(0, left - 1);
  }
}

void take_table(const Request& request, long descriptor, Trouble& trouble) {
  const long at = sys_map(0, request.bytes, PROT_READ, MAP_SHARED, descriptor);
  sys_close(descriptor);
  if (at < 0 || request.bytes > request.object) {
    trouble << "the image's table cannot be mapped (error " << -at << ")";
    return;
  }
  TailSource tail{reinterpret_cast<const uint8_t*>(at), request.object - request.bytes,
                  request.object};
  read_tables(Source{&tail, request.object, read_tail}, trouble);
  sys_unmap(static_cast<uint64_t>(at), request.bytes);
  if (trouble.empty()) sort_runs();
}

// All pages by one call: a fault for each one takes longer than the copy. Older kernels refuse.
void touch(uint64_t start, uint64_t end) {
  constexpr long populate_for_writing = 23;  // MADV_POPULATE_WRITE
  start &= ~(page_bytes - 1);
  if (start >= end) return;
  system_call(__NR_madvise, static_cast<long>(start), static_cast<long>(end - start),
              populate_for_writing);
}

// What lies before and behind the part that comes in huge pages.
void touch_small(const Run& run, const uint8_t* to, uint64_t bytes) {
  const auto start = reinterpret_cast<uint64_t>(to);
  const uint64_t end = start + bytes;
  const Span huge = huge_part(tables, run);
  if (huge.start == huge.end) return touch(start, end);
  touch(start, end < huge.start ? end : huge.start);
  touch(start > huge.end ? start : huge.end, end);
}

// What belongs to no page is the table, which is here already.
void take(const Request& request, Trouble& trouble) {
  const uint8_t* from = companion::pool(request.at, request.bytes, trouble);
  if (!trouble.empty()) return;
  const uint64_t end = request.object + request.bytes;
  const auto ends_before = [&](const Run* run) {
    return run->offset + bytes_of(*run) <= request.object;
  };
  for (auto at = find_first(by_offset, ends_before); at != by_offset.end(); ++at) {
    const Run& run = **at;
    if (run.offset >= end) return;
    const uint64_t run_end = run.offset + bytes_of(run);
    const uint64_t first = run.offset < request.object ? request.object : run.offset;
    const uint64_t last = run_end < end ? run_end : end;
    uint8_t* to = place_of(tables, run) + (first - run.offset);
    touch_small(run, to, last - first);
    memcpy(to, from + (first - request.object), last - first);
  }
}

// Remembers the chunks that hold pages, and has the memory watched before the program, or the real
// MPI that is started for it, changes anything there.
void take_base(const Request& request, long descriptor, Answer& said) {
  const long at = sys_map(0, request.bytes, PROT_READ, MAP_PRIVATE, descriptor);
  sys_close(descriptor);
  if (at < 0) return;
  Row<KeptChunk> chunks;
  chunks.adopt(reinterpret_cast<KeptChunk*>(at), request.bytes / sizeof(KeptChunk));
  if (watch::begin() && kept::remember_restored(tables.runs, chunks, tables.pages_end)) {
    for (const Area& area : tables.areas) {
      if (area.kind == static_cast<uint32_t>(AreaKind::anonymous)) watch::start(area);
    }
    said.bytes = 1;
  }
  sys_unmap(static_cast<uint64_t>(at), request.bytes);
}

[[noreturn]] void restore_from_companion(Options& options) {
  static Request request;
  long descriptor = -1;
  bool mapped = false;
  while (companion::next(control, request, descriptor)) {
    static Answer said;
    said = Answer();
    Trouble trouble;
    switch (static_cast<Ask>(request.kind)) {
      case Ask::pool: companion::map_pool(descriptor, request, trouble); break;
      case Ask::table:
        take_table(request, descriptor, trouble);
        check(trouble, Refused::image);
        check_all();
        make_room();
        mapped = true;
        break;
      case Ask::take:
        if (!mapped) trouble << "no table has come";
        if (mapped) take(request, trouble);
        break;
      case Ask::base:
        if (mapped) take_base(request, descriptor, said);
        break;
      case Ask::ready: complete_memory(); start_again(options);
      default: trouble << "this process does not run yet"; break;
    }
    if (!trouble.empty()) said.refused = static_cast<uint32_t>(Refused::now);
    copy_text(said.why, sizeof said.why, trouble.c_str());
    companion::answer(control, said);
  }
  sys_exit(refused);
}

}  // namespace

void restore(const Options& asked, const Start& start) {
  Options options = asked;  // the arguments lie in memory that goes away
  by_companion = options.companion;
  outputs::keeps = by_companion;
  control = options.control;
  if (options.mpi != nullptr) {
    prepare_lower_half(options, start);
    keep_for_lower_half(start);
    options.mpi = lower_folder();
  }
  if (const long wrong = arena::begin(); wrong != 0) {
    give_up(Text() << "memory for the image's tables cannot be mapped (error " << -wrong << ")",
            78);
  }
  Trouble trouble;
  doors::build(trouble);
  check(trouble);
  if (by_companion) restore_from_companion(options);
  restore_from_file(options);
}

}  // namespace backstay::image
