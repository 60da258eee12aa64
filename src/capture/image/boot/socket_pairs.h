// Sockets of the program to itself: pairs of which it has both ends, with what lies in them.
#pragma once

#include "capture/image/boot/tables.h"

namespace backstay::image {

// Called when all descriptors are in the tables. Trouble: the other end is not the program's, a
// name, messages that cannot be looked at without losing where they end, descriptors on their way.
void keep_socket(Tables& tables, Descriptor& one, Trouble& trouble);

// A copy of this end of its pair, which is made with its first end; or a negative error.
long open_socket(const Tables& tables, const Descriptor& one);
// Behind the last one: closes what the pairs were made with.
void end_sockets();

}  // namespace backstay::image
