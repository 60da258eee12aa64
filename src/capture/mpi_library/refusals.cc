#include "capture/mpi_library/refusals.h"

#include <string.h>

#include "capture/mpi_library/call.h"

namespace backstay::mpi {

namespace {

struct Reason {
  const char* why;
  uint32_t open;
};
// By `Open`.
Reason reasons[] = {{"it has a file of MPI open", 0},
                    {"it has a window of MPI open", 0},
                    {"it has an open request of its own (MPI_Grequest_start)", 0},
                    {"it has freed a communicator with an open receive", 0},
                    {"it is duplicating a communicator (MPI_Comm_idup)", 0},
                    {nullptr, 0}};
const char* for_life = nullptr;

Reason& of(Open what) { return reasons[static_cast<uint32_t>(what)]; }

const char* first_reason() {
  if (for_life != nullptr) return for_life;
  for (const Reason& one : reasons) {
    if (one.open != 0) return one.why;
  }
  return nullptr;
}

// `refuses` is another number with each reason, and 0 while the text changes: so the companion
// knows that it has read one text.
void show() {
  lower::Channel& channel = lower::channel();
  static uint32_t shown = 0;
  const char* why = first_reason();
  if (why == nullptr) return __atomic_store_n(&channel.refuses, 0, __ATOMIC_SEQ_CST);
  if (channel.refuses != 0 && strcmp(channel.why, why) == 0) return;
  __atomic_store_n(&channel.refuses, 0, __ATOMIC_SEQ_CST);
  strncpy(channel.why, why, sizeof channel.why - 1);
  shown = shown + 1 == 0 ? 1 : shown + 1;
  __atomic_store_n(&channel.refuses, shown, __ATOMIC_SEQ_CST);
  // The call may block, and a cut that is under way holds those for whom it waits.
  if (is_asked()) tell();
}

}  // namespace

void refuse(const char* why) {
  if (for_life == nullptr) for_life = why;
  show();
}

void hold_back(Open what) {
  ++of(what).open;
  show();
}

void hold_back(Open what, const char* why) {
  of(what).why = why;
  hold_back(what);
}

void let_go(Open what) {
  --of(what).open;
  show();
}

void renew_refusals() { show(); }

}  // namespace backstay::mpi
