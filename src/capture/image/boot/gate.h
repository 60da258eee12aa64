// Either a cut is under way or a thread replaces the program, never both. The control thread does
// not wait here: it answers that it is to be asked again.
#pragma once

#include "capture/image/boot/system.h"

namespace backstay::image::gate {

// Of the control thread. False: a thread replaces the program, or is about to.
bool begin_cut();
void end_cut();
// A thread waits for the end of the cut: it does not park.
bool is_wanted();

// Of a thread of the program. The first waits for a cut to end; all signals are blocked then.
void begin_exec();
void end_exec();

}  // namespace backstay::image::gate
