// vfork cannot be wrapped by a function of C: the child returns from it on the parent's stack.
#pragma once

namespace backstay::files {

// What is done in the parent, before the child is there.
void before_vfork();

}  // namespace backstay::files
