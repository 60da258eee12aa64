// POSIX timers (timer_create(2)). The kernel tells what a timer is, but not whether it was set to a
// moment, nor how often it ran off while its signal waited. So a timer comes back with what is
// left, and a signal of it that waits comes back as all others do.
#pragma once

#include "capture/image/boot/tables.h"

namespace backstay::image::posix_timers {

// A cut: first the timers, then the signals that wait: one that runs off between is not lost.
// Trouble: a timer that could not come back.
void describe(Tables& tables, Trouble& trouble);
// Once the process is described.
void check(const Tables& tables, Trouble& trouble);
// Takes the signals of timers out of those that wait, where only their numbers are known. Such a
// timer runs off at once behind a restart.
void take_signals(Tables& tables);

// A restart, once the new threads' ids are known: makes them, under the numbers that they had.
void make(const Tables& tables, Trouble& trouble);
// Lets them run.
void start(const Tables& tables);

}  // namespace backstay::image::posix_timers
