// What lies in a pipe, without taking it out; and putting it back.
#pragma once

#include "capture/image/boot/tables.h"

namespace backstay::image {

// Copies the content of the pipe that a reading end belongs to into the image.
void keep_pipe(Tables& tables, Descriptor& reader, Trouble& trouble);

}  // namespace backstay::image
