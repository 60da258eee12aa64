// Descriptors that a launcher leaves open in the processes that it starts.
#pragma once

namespace backstay::image {

// Sockets and pipes of this process beside standard input, output and error go no further than to
// it; a program that had them could not be saved. Not the one that PMI_FD names: by it MPI speaks
// with the launcher (Hydra).
void keep_from_program();

}  // namespace backstay::image
