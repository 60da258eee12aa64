// Open MPI's exported objects: which real handle each stands for.
#include "capture/mpi_library/abi_openmpi.h"
#include "capture/mpi_library/call.h"

namespace backstay::mpi {

namespace abi {

uint64_t null_handle[16];

namespace {

struct Range {
  uint32_t first, end;
};
Range of_class[16];

constexpr const char* nulls[] = {"ompi_mpi_comm_null",       "ompi_mpi_group_null",
                                 "ompi_mpi_datatype_null",   "ompi_mpi_file_null",
                                 "ompi_mpi_errhandler_null", "ompi_mpi_op_null",
                                 "ompi_mpi_info_null",       "ompi_mpi_win_null",
                                 "ompi_request_null",        "ompi_message_null"};

bool same(const char* a, const char* b) {
  while (*a != 0 && *a == *b) {
    ++a;
    ++b;
  }
  return *a == *b;
}

}  // namespace

Slot* find_object(Class type, uint64_t real) {
  const Objects all = objects();
  const Range range = of_class[static_cast<uint32_t>(type)];
  for (uint32_t i = range.first; i < range.end; ++i) {
    if (all.first[i].place->real == real) return all.first[i].place;
  }
  return nullptr;
}

}  // namespace abi

// The real library may lack one: its handle is 0 then, which the real MPI refuses.
void learn_objects() {
  const abi::Objects all = abi::objects();
  for (uint32_t i = 0; i < all.count; ++i) {
    const abi::Object& one = all.first[i];
    const auto type = static_cast<uint32_t>(one.type);
    one.place->real = call_inside<uint64_t>(reinterpret_cast<void*>(lower::table().find), one.name);
    abi::Range& range = abi::of_class[type];
    if (range.end == 0) range.first = i;
    range.end = i + 1;
    for (const char* name : abi::nulls) {
      if (abi::same(one.name, name)) abi::null_handle[type] = one.place->real;
    }
  }
}

}  // namespace backstay::mpi
