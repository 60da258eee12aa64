#include "capture/mpi_library/absent.h"

#include <stdio.h>

#include "capture/mpi_library/slots.h"

namespace backstay::mpi {

void end_at_absent(const char* name) {
  char text[256];
  snprintf(text, sizeof text,
           "the program has called %s, which --transparent does not support; run it without "
           "--transparent",
           name);
  end_program(text);
}

extern "C" {

// Memory of a device is not part of an image, so none is for MPI.
int MPIX_Query_cuda_support() { return 0; }
int PMPIX_Query_cuda_support() { return 0; }
int MPIX_Query_hip_support() { return 0; }
int PMPIX_Query_hip_support() { return 0; }
int MPIX_Query_ze_support() { return 0; }
int PMPIX_Query_ze_support() { return 0; }
int MPIX_GPU_query_support(int /*kind*/, int* is_supported) { return *is_supported = 0; }
int PMPIX_GPU_query_support(int /*kind*/, int* is_supported) { return *is_supported = 0; }

}  // extern "C"

}  // namespace backstay::mpi
