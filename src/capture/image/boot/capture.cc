#include "capture/image/boot/capture.h"

#include "capture/image/boot/describe.h"

namespace backstay::image {

namespace {

Tables tables;

void describe_all(const Stopped& stopped, Trouble& trouble) {
  tables.begin();
  describe_signals(tables);  // timers before what is pending: one that fires between is not lost
  const KernelAction& lent = stopped.action;
  tables.handlers[stopped.signal - 1] = Handler{lent.handler, lent.flags, lent.restorer, lent.mask};
  describe_process(stopped, tables, trouble);
  describe_threads(stopped, tables);
  if (trouble.empty()) describe_descriptors(tables, trouble);
  if (trouble.empty()) describe_areas(tables, trouble);
}

// Pages that may not be read are made readable meanwhile: no other thread runs.
bool write_run(const Sink& sink, const Run& run, uint32_t protection, Trouble& trouble) {
  const uint64_t bytes = run.pages * page_bytes;
  const bool hidden = (protection & protection_read) == 0;
  if (hidden) sys_protect(run.address, bytes, protection_read);
  const bool good =
      sink.write(sink.context, reinterpret_cast<const void*>(run.address), bytes, trouble);
  if (hidden) sys_protect(run.address, bytes, static_cast<int>(protection));
  return good;
}

void write_all(const Sink& sink, CutResult& result, Trouble& trouble) {
  uint64_t offset = 0;
  const Area* area = tables.areas.begin();
  for (const Run& run : tables.runs) {
    while (area->end <= run.address) ++area;
    if (!write_run(sink, run, area->protection, trouble)) return;
    offset += run.pages * page_bytes;
  }
  uint8_t* tail = nullptr;
  const uint64_t tail_bytes = encode(tables, offset, &tail);
  if (!sink.write(sink.context, tail, tail_bytes, trouble)) return;
  result.pages = offset / page_bytes;
  result.bytes = offset + tail_bytes;
}

}  // namespace

void cut(const Sink& sink, CutResult& result, Trouble& trouble) {
  arena::begin();
  learn_files();
  const uint64_t begin = now_ns(1);
  Stopped stopped;
  stop_threads(stopped, trouble);
  if (trouble.empty()) {
    if (stopped.leader_ended) trouble << "the program's first thread has ended before the others";
    const uint64_t agreed = now_ns(1);
    if (trouble.empty()) describe_all(stopped, trouble);
    result.describing_ns = now_ns(1) - agreed;
    if (trouble.empty()) write_all(sink, result, trouble);
    resume_threads(stopped);
    result.agreeing_ns = agreed - begin;
    result.stopped_ns = now_ns(1) - begin;
  }
  arena::end();
}

}  // namespace backstay::image
