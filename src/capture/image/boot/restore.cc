// 1. Read footer and table; compare machine, files and descriptors: refuse here, nothing has
// changed.
// 2. Unmap what the kernel gave this process; only the boot program's window is left.
// 3. Start as many threads as there were; they wait in the window.
// 4. Map the areas where they were, fill them, renew thread ids, put heap and vdso in place.
// 5. Descriptors, working directory, handlers, timers.
// 6. Start the control thread; each thread returns from the signal that stopped it.
#include "capture/image/boot/restore.h"

#include "capture/image/boot/bring_back.h"
#include "capture/image/boot/control.h"
#include "capture/image/boot/files.h"

namespace backstay::image {

namespace {

constexpr int refused = 78;

Tables tables;
char image_path[4096];

void check(const Trouble& trouble) {
  if (!trouble.empty()) give_up(Text() << "cannot restart: " << trouble.c_str(), refused);
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

void remember_process() {
  process.layout = tables.identity;
  copy_text(process.program, sizeof process.program, tables.text(tables.identity.program));
  copy_text(process.interpreter, sizeof process.interpreter,
            tables.text(tables.identity.interpreter));
}

void bring_memory_back(const Source& source) {
  Trouble trouble;
  const Identity& identity = tables.identity;
  clear_memory();
  start_threads(tables, trouble);
  check(trouble);
  map_areas(tables, source, trouble);
  check(trouble);
  renew_thread_ids(tables);
  protect_areas(tables);
  place_vdso(tables);
  auto* auxv = reinterpret_cast<uint64_t*>(identity.auxv_start);
  const long layout = set_layout(identity, auxv, identity.auxv_bytes);
  if (layout != 0) {
    trouble << "this kernel does not set the heap's place (PR_SET_MM_MAP, error " << -layout << ")";
  }
  check(trouble);
}

}  // namespace

void restore(const Options& asked, const Start&) {
  Options options = asked;  // the arguments lie in memory that goes away
  if (options.image != nullptr) {
    copy_text(image_path, sizeof image_path, options.image);
    options.image = image_path;
  }
  Trouble trouble;
  FileSource file;
  file.begin(options.restore, trouble);
  check(trouble);
  const Source source = file.source();
  arena::begin();
  read_tables(source, trouble);
  check(trouble);
  check_machine(tables, trouble);
  if (trouble.empty()) check_files(tables, trouble);
  if (trouble.empty()) check_descriptors(tables, trouble);
  check(trouble);
  set_mask(~0ULL);
  remember_process();
  bring_memory_back(source);
  sys_close(file.fd);
  open_descriptors(tables, options.control, trouble);
  check(trouble);
  set_signals(tables);
  start_control(options);
  set_timers(tables);
  go_on(tables);
}

}  // namespace backstay::image
