// The ABI for which this library is built: one of two.
#pragma once

#ifdef BACKSTAY_ABI_OPENMPI
#include "capture/mpi_library/abi_openmpi.h"
#else
#include "capture/mpi_library/abi_mpich.h"
#endif
