// How a thread that replaces the program gets the control descriptor, which the program's
// descriptors do not hold: the control thread listens on a socket without a place in the file
// system, and hands it to its own process alone.
#pragma once

#include "capture/image/boot/system.h"

namespace backstay::image::handover {

// Of the control thread. open(): before requests are served. wait(): until a request may be read
// from the control descriptor; hands it over meanwhile, and then returns only where the program was
// not replaced.
void open();
void wait(long control);
// No companion is there any more: the kernel replaces the program.
void end();

// Of a thread that replaces the program: the control descriptor, to be inherited, or -errno. `line`
// tells the control thread how it ends: close it where the program was not replaced.
long take(long& line);

}  // namespace backstay::image::handover
