// SIGUSR1: checkpoint. SIGTERM: checkpoint, then stop.
//
// The handlers only set a flag. A handler that the program had before is called after ours; a
// signal that the program ignores stays ignored. One watch a process; in a forked child signals do
// what they did before the watch.
#pragma once

namespace backstay::client {

// Installs the handlers. Does nothing if they are installed already.
void watch_signals();
// Puts the earlier dispositions back, unless the program has replaced ours meanwhile.
// Async-signal-safe.
void unwatch_signals();

// While one of these lives, the n-th SIGTERM that comes takes its default action, as far as the
// program has no handler of its own: a call that waits for an agent that hangs can be ended. One at
// a time.
class Endable {
 public:
  explicit Endable(int signals);
  ~Endable();
  Endable(const Endable&) = delete;
  Endable& operator=(const Endable&) = delete;
};

bool checkpoint_signalled();
bool stop_signalled();
void clear_checkpoint_signal();

}  // namespace backstay::client
