// Numbers of descriptors. Until a restart has opened all that the image has, it has descriptors of
// its own open, under numbers that the image does not use. One thread.
#pragma once

#include "capture/image/boot/tables.h"

namespace backstay::image {

// Trouble: this process, or at a cut the one that saves it and would start it again, may not have
// as many open as a restart needs. At a restart it also learns the image's numbers.
void check_numbers(const Tables& tables, bool restart, Trouble& trouble);

// As many as this process may have, until it is lowered again.
void raise_descriptor_limit();
void lower_descriptor_limit();
// Copies a descriptor to a number that the image does not use. The new number, or a negative error.
long copy_descriptor(long fd);
// The same, and closes the old one.
long lift_descriptor(long fd);

}  // namespace backstay::image
