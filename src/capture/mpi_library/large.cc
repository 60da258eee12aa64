#include "capture/mpi_library/large.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/mpi_library/names.h"

namespace backstay::mpi {

extern "C" {
int backstay_op_create_large(void* function, int commutes, void* op);
int PMPI_Comm_call_errhandler(abi::Handle<Class::comm> comm, int code);
int PMPI_Type_commit(void* type);
int PMPI_Type_contiguous(int count, abi::Handle<Class::datatype> type, void* made);
int PMPI_Type_create_struct(int count, void* lengths, void* places, void* types, void* made);
int PMPI_Type_free(void* type);
int PMPI_Type_get_contents(abi::Handle<Class::datatype> type, int integers_max, int addresses_max,
                           int types_max, void* integers, void* addresses, void* types);
int PMPI_Type_get_envelope(abi::Handle<Class::datatype> type, void* integers, void* addresses,
                           void* types, void* combiner);
int PMPI_Type_get_extent(abi::Handle<Class::datatype> type, void* first, void* extent);
int PMPI_Type_size_x(abi::Handle<Class::datatype> type, void* size);
}

int at_root(abi::Handle<Class::comm> comm, int root) {
  const uint64_t real = abi::real<Class::comm>(comm);
  int inter = 0;
  int own = 0;
  inside(index_MPI_Comm_test_inter, real, &inter);
  inside(index_MPI_Comm_rank, real, &own);
  return root == (inter != 0 ? abi::root : own) ? peers_of(comm).in : 0;
}

int members_of(abi::Handle<Class::comm> comm) {
  int size = 0;
  inside(index_MPI_Comm_size, abi::real<Class::comm>(comm), &size);
  return size;
}

namespace {

constexpr int64_t block = 1 << 30;  // elements of one part of a larger datatype

struct Numbers {
  Numbers* next;
  int64_t count;
  void* all;
};
Numbers* numbers_kept[1 << 16];  // by a sum of them; guarded by a call's lock

Numbers*& kept_with(const int* all, int64_t count) {
  uint32_t sum = static_cast<uint32_t>(count);
  for (int64_t i = 0; i < count; ++i) sum = (sum ^ static_cast<uint32_t>(all[i])) * 0x9e3779b1;
  return numbers_kept[sum >> 16];
}

}  // namespace

Narrow::~Narrow() {
  for (int i = 0; i < types_count_; ++i) PMPI_Type_free(&types_[i]);
  for (int i = 0; i < arrays_count_; ++i) free(arrays_[i]);
}

int Narrow::one(int64_t number) {
  if (number > INT_MAX || number < INT_MIN) fits_ = false;
  return static_cast<int>(number);
}

// Blocks of 2^30 elements, and the rest behind them.
Elements Narrow::elements(int64_t count, abi::Handle<Class::datatype> type) {
  if (count <= INT_MAX) return {one(count), type};
  int64_t first = 0;
  int64_t extent = 0;
  abi::Handle<Class::datatype> parts[2]{};
  abi::Handle<Class::datatype> whole{};
  const int64_t blocks = count / block;
  // A caller need not have a datatype if MPI does not look at the count.
  if (type == abi::predefined<Class::datatype>(abi::null<Class::datatype>())) return {0, type};
  if (blocks > INT_MAX || PMPI_Type_get_extent(type, &first, &extent) != 0)
    return {one(count), type};
  abi::Handle<Class::datatype> one_block{};
  PMPI_Type_contiguous(static_cast<int>(block), type, &one_block);
  PMPI_Type_contiguous(static_cast<int>(blocks), one_block, &parts[0]);
  PMPI_Type_contiguous(static_cast<int>(count % block), type, &parts[1]);
  int lengths[] = {1, 1};
  int64_t places[] = {0, blocks * block * extent};
  PMPI_Type_create_struct(2, lengths, places, parts, &whole);
  PMPI_Type_commit(&whole);
  PMPI_Type_free(&one_block);
  for (auto& part : parts) PMPI_Type_free(&part);
  types_[types_count_++] = whole;
  return {1, whole};
}

void* Narrow::array(const void* numbers, int64_t count) {
  if (numbers == nullptr || count <= 0) return nullptr;
  auto* copy = static_cast<int*>(malloc(static_cast<size_t>(count) * sizeof(int)));
  if (copy == nullptr) abort();
  for (int64_t i = 0; i < count; ++i) copy[i] = one(static_cast<const int64_t*>(numbers)[i]);
  arrays_[arrays_count_++] = copy;
  return copy;
}

void* Narrow::kept(const void* numbers, int64_t count) {
  void* copy = array(numbers, count);
  if (copy == nullptr) return nullptr;
  const InCall in_call;
  Numbers*& first = kept_with(static_cast<const int*>(copy), count);
  for (const Numbers* at = first; at != nullptr; at = at->next) {
    if (at->count == count && memcmp(at->all, copy, static_cast<size_t>(count) * sizeof(int)) == 0)
      return at->all;
  }
  auto* made = static_cast<Numbers*>(malloc(sizeof(Numbers)));
  if (made == nullptr) abort();
  *made = {first, count, copy};
  first = made;
  --arrays_count_;  // no longer this object's to free
  return copy;
}

int Narrow::refuse() const {
  dprintf(2, "backstay: %s with numbers above %d is not supported under --transparent\n", function_,
          INT_MAX);
  PMPI_Comm_call_errhandler(abi::predefined<Class::comm>(abi::world()), abi::err_count);
  return abi::err_count;
}

extern "C" {

int PMPI_Get_count_c(void* status, abi::Handle<Class::datatype> type, void* count) {
  int64_t size = 0;
  const int result = PMPI_Type_size_x(type, &size);
  if (result != 0) return result;
  const auto bytes = static_cast<int64_t>(
      ask_in_call([&] { return abi::bytes_of(*static_cast<const abi::Status*>(status)); }));
  auto& to = *static_cast<int64_t*>(count);
  to = size == 0 ? 0 : bytes % size == 0 ? bytes / size : abi::undefined;
  return 0;
}
BACKSTAY_MPI_NAME(MPI_Get_count_c)

int PMPI_Op_create_c(void* function, int commutes, void* op) {
  return backstay_op_create_large(function, commutes, op);
}
BACKSTAY_MPI_NAME(MPI_Op_create_c)

// No datatype of ours was made with large counts, so there are none to tell.
int PMPI_Type_get_envelope_c(abi::Handle<Class::datatype> type, void* integers, void* addresses,
                             void* large, void* types, void* combiner) {
  int counts[3]{};
  const int result = PMPI_Type_get_envelope(type, &counts[0], &counts[1], &counts[2], combiner);
  *static_cast<int64_t*>(integers) = counts[0];
  *static_cast<int64_t*>(addresses) = counts[1];
  *static_cast<int64_t*>(large) = 0;
  *static_cast<int64_t*>(types) = counts[2];
  return result;
}
BACKSTAY_MPI_NAME(MPI_Type_get_envelope_c)

int PMPI_Type_get_contents_c(abi::Handle<Class::datatype> type, int64_t integers_max,
                             int64_t addresses_max, int64_t /*large_max*/, int64_t types_max,
                             void* integers, void* addresses, void* /*large*/, void* types) {
  Narrow narrow("MPI_Type_get_contents_c");
  return PMPI_Type_get_contents(type, narrow.one(integers_max), narrow.one(addresses_max),
                                narrow.one(types_max), integers, addresses, types);
}
BACKSTAY_MPI_NAME(MPI_Type_get_contents_c)

}  // extern "C"

}  // namespace backstay::mpi
