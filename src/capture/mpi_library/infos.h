// Info objects: their keys and values.
#pragma once

#include "capture/mpi_library/abi.h"
#include "capture/mpi_library/made.h"

namespace backstay::mpi {

struct KeyValue {
  char* key;
  char* value;
};
using KeyValues = Kept<KeyValue>;

// Sets a key as MPI_Info_set does: an existing one keeps its place.
void set_key(KeyValues& all, const char* key, const char* value);
// Those of `more` win.
void merge(KeyValues& all, const KeyValues& more);
void clear(KeyValues& all);

struct InfoMade : Made {
  KeyValues all;
};
// Null: MPI's own one, or none.
inline InfoMade* info(abi::Handle<Class::info> handle) {
  return static_cast<InfoMade*>(made_of<Class::info>(handle));
}

Made* describe_info(uint64_t real);
// A real info object.
uint64_t make_info(const KeyValues& all);
uint64_t renew_info(const Made* made);

}  // namespace backstay::mpi
