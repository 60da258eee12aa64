// The memory by which our MPI library and the companion tell each other of cuts
// (capture/lower/channel.h): mapped in each process that has a lower half.
#pragma once

#include "capture/image/boot/text.h"

namespace backstay::image {

// `--channel PATH`: a file of channel_bytes_max bytes, which the companion has mapped too. Null:
// memory of this process alone. Before map_channel(); `path` stays readable.
void name_channel(const char* path);
const char* channel_name();
void map_channel(Trouble& trouble);

}  // namespace backstay::image
