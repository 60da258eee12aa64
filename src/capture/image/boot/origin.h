// $ORIGIN: the folder of the program, by which it may name where its libraries lie.
//
// ld.so reads /proc/self/exe for it, which leads to the boot program here. It takes the variable
// LD_ORIGIN_PATH where that cannot be read, so the name in its memory is changed to one that
// cannot, and the variable is set. Only where the program's file has "$ORIGIN" in it: other
// programs find their environment as it was.
#pragma once

#include "capture/image/boot/elf.h"

namespace backstay::image::origin {

inline constexpr const char* variable = "LD_ORIGIN_PATH";

// Whether the mapped program's file names $ORIGIN, and the interpreter took the change.
bool prepare(const Elf& program, const Elf& interpreter);

}  // namespace backstay::image::origin
