// The one thread of ours in the program's process: it waits for requests, stops the others, has the
// image written, and lets them go on. It blocks all signals, has descriptors of its own (a program
// that closes all of its cannot close them), and runs on a stack in the boot program's window.
//
// Requests of a companion are those of format/requests.h. By hand and in tests, without a
// companion, one byte `c` on the control descriptor asks for a cut into a file. The answer is one
// line:
//   ok IMAGE_BYTES PAGES STOPPED_US AGREEING_US DESCRIBING_US
//   refused WHY
#pragma once

#include "capture/image/boot/options.h"

namespace backstay::image {

// Starts it. Without a control descriptor there is nothing to wait for, and no thread.
void start_control(const Options& options);
// Requests are served from now on: the program is there, whole. Before, they wait.
// Behind a restart the control thread has the rights that it had from here on.
void open_control();
// Returns once the control thread has closed its copies of the program's descriptors. A restart
// waits for that before the program goes on.
void wait_for_control();

}  // namespace backstay::image
