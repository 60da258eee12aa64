// Children of the program: while one lives, or has ended and was not waited for, the program cannot
// be saved.
#pragma once

#include "capture/image/boot/text.h"

namespace backstay::image {

// Trouble: there is one. `named`: says which, for which all processes of the machine are looked at.
void refuse_children(bool named, Trouble& trouble);

}  // namespace backstay::image
