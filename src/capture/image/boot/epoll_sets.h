// Epoll sets: which descriptors they watch, for what, with which data.
//
// A set watches open files, each under the number by which it was added, also after that number was
// closed or given to another file, as long as a copy of the descriptor keeps the file open. An
// event on an edge (EPOLLET) of which the program has heard may be told to it once more.
#pragma once

#include "capture/image/boot/tables.h"

namespace backstay::image {

// Trouble: it watches what the image does not have, or belongs to Python's asyncio. Called when all
// descriptors are in the tables.
void keep_epoll(Tables& tables, Descriptor& one, Trouble& trouble);

// Sets watch again what they watched. Called when all descriptors have their numbers.
void watch_again(const Tables& tables, Trouble& trouble);

}  // namespace backstay::image
