// The ABI for which this library is built: one of three.
#pragma once

#ifdef BACKSTAY_ABI_OPENMPI
#include "capture/mpi_library/abi_openmpi.h"
#elif defined BACKSTAY_ABI_STANDARD
#include "capture/mpi_library/abi_standard.h"
#else
#include "capture/mpi_library/abi_mpich.h"
#endif
