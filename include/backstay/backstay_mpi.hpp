// Backstay for C++ programs with MPI; see backstay.hpp for the rules and backstay_mpi.h for what
// to link.
#ifndef BACKSTAY_BACKSTAY_MPI_HPP
#define BACKSTAY_BACKSTAY_MPI_HPP

#include <string>

#include "backstay/backstay.hpp"
#include "backstay/backstay_mpi.h"

namespace backstay {
inline namespace cxx {

// Collective over `comm`. The session must end before MPI_Finalize: give it a scope of its own.
inline Expected<Session> open_mpi(MPI_Comm comm, const std::string& config = {}) {
  return Session::adopt(backstay_init_mpi(comm, config.empty() ? nullptr : config.c_str()));
}

}  // namespace cxx
}  // namespace backstay

#endif
