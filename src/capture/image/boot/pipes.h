// What lies in a pipe, without taking it out; and putting it back.
#pragma once

#include "capture/image/boot/tables.h"

namespace backstay::image {

// Whether no process can write to it any more: it ends with what lies in it.
bool is_finished(const Descriptor& reader);

// Copies the content of the pipe that a reading end belongs to into the image.
void keep_pipe(Tables& tables, Descriptor& reader, Trouble& trouble);

}  // namespace backstay::image
