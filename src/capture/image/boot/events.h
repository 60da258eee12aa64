// Event counters (eventfd), timers (timerfd), signal sets (signalfd) and epoll sets (epoll_sets.h):
// their state is read from /proc/self/fdinfo, and goes into the contents of the image. One thread.
#pragma once

#include "capture/image/boot/tables.h"

namespace backstay::image {

// The kind of descriptor to which the kernel gives this name; `inherited`: none of these.
DescriptorKind event_kind(const char* name);
inline bool is_event(uint32_t kind) {
  return kind >= static_cast<uint32_t>(DescriptorKind::counter) &&
         kind <= static_cast<uint32_t>(DescriptorKind::signal_set);
}

// Keeps its state. Called when all descriptors are in the tables.
void keep_event(Tables& tables, Descriptor& one, Trouble& trouble);

// A new descriptor with that state, or a negative error. An epoll set watches nothing yet.
long open_event(const Tables& tables, const Descriptor& one);

}  // namespace backstay::image
