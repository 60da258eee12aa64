// Epoll sets: which descriptors they watch, for what, with which data.
//
// A set watches open files, each under the number by which it was added. It goes on to do so after
// that number was closed or given to another file, as long as another descriptor keeps the file
// open. After a restart an edge-triggered event (EPOLLET) may be told to the program once more.
#pragma once

#include "capture/image/boot/tables.h"

namespace backstay::image {

// Trouble: the set watches what the image does not have, or the program uses Python's asyncio with
// a libc that is not known. Called when all descriptors are in the tables.
void keep_epoll(Tables& tables, Descriptor& one, Trouble& trouble);

// Has all sets watch again what they watched. Called when all descriptors have their numbers.
void watch_again(const Tables& tables, Trouble& trouble);

}  // namespace backstay::image
