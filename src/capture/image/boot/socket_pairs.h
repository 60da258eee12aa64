// Sockets of the program to itself: pairs (socketpair) of which it has both ends, or one while the
// other is closed, with what waits in them. One thread.
#pragma once

#include "capture/image/boot/tables.h"

namespace backstay::image {

// Keeps its state. Called when all descriptors are in the tables. Trouble: the other end is not the
// program's; the socket has a name, or an offset for looking (SO_PEEK_OFF); or messages,
// descriptors, credentials or more than 128 KiB wait in it.
void keep_socket(Tables& tables, Descriptor& one, Trouble& trouble);

// A new descriptor of this end, or a negative error. The first end of a pair makes both.
long open_socket(const Tables& tables, const Descriptor& one);
// Called after the last open_socket(): closes the descriptors with which the pairs were made.
void end_sockets();

}  // namespace backstay::image
