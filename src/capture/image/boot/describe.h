// What a cut writes down of a stopped process, one function a section. Each stops at the first
// thing that an image cannot hold, with a message that names it; nothing is changed in the process.
// Called by the control thread, while all others are parked.
#pragma once

#include "capture/image/boot/notes.h"
#include "capture/image/boot/pages.h"
#include "capture/image/boot/stop.h"
#include "capture/image/boot/tables.h"

namespace backstay::image {

void describe_process(const Stopped& stopped, Tables& tables, Trouble& trouble);  // identity
// Also their rights, as notes.
void describe_threads(const Stopped& stopped, Tables& tables, NotesWriter& notes);
void describe_signals(Tables& tables, Trouble& trouble);  // handlers, timers
void describe_descriptors(Tables& tables, Trouble& trouble);
void describe_areas(Tables& tables, Watching watching, Trouble& trouble);  // areas, files, runs

// Of MPI too: a device, such as a network card, or the kernel by io_uring may write into memory
// that it keeps pinned. No page table tells.
bool writes_come_unseen();

// Learns by what the mapped files are known, so that a cut need not while the program stands still.
void learn_files();

// What restart compares with the machine that it finds.
void read_features(uint32_t* features, uint64_t* xfeatures, uint32_t* xstate_bytes);

}  // namespace backstay::image
