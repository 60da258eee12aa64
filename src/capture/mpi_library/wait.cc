// Waiting for one request and looking at one; what else a program does with one.

#include "capture/mpi_library/loop.h"
#include "capture/mpi_library/names.h"

namespace backstay::mpi {

namespace {

// Not by the real MPI alone: it is done already, or was cancelled.
bool is_held_back(RequestHandle handle) {
  const Request* request = request_of(handle);
  return request != nullptr && (request->is_done || request->is_cancelled);
}

// Behind a call that may have completed it: counts, and gives the slot back.
void settle_one(RequestHandle& handle, uint64_t before, uint64_t after, int source) {
  complete(handle, source);
  settle<Class::request>(handle, before, after);
}

// The status that a call of the real MPI writes: the program's, or one of ours.
class StatusPlace {
 public:
  explicit StatusPlace(void* of)
      : at_(abi::is_ignored(of) ? &own_ : static_cast<abi::Status*>(of)) {}
  abi::Status* place() { return at_; }
  int source() const { return at_->source; }

 private:
  abi::Status own_{};
  abi::Status* at_;
};

int test(RequestHandle& handle, int* flag, void* status) {
  if (held_back_requests() > 0 && is_held_back(handle)) {
    *flag = poll(handle) ? 1 : 0;
    return *flag != 0 ? hand_over(handle, status) : 0;
  }
  const uint64_t before = abi::real<Class::request>(handle);
  uint64_t real = before;
  StatusPlace place(status);
  const int result = inside(index_MPI_Test, &real, flag, place.place());
  if (*flag != 0 || result != 0) {
    settle_one(handle, before, real, place.source());
    stop_waiting();
  } else if (is_asked()) {
    Awaited awaited;
    add_awaited(handle, awaited);
    found_nothing(awaited);
  }
  return result;
}

int wait(RequestHandle& handle, void* status) {
  if (held_back_requests() > 0 && is_held_back(handle)) return wait_slowly(handle, status);
  const uint64_t before = abi::real<Class::request>(handle);
  uint64_t real = before;
  int is_complete = 0;
  StatusPlace place(status);
  const int result = test_in_lower(
      is_complete, [&] { return native(index_MPI_Test, &real, &is_complete, place.place()); });
  if (is_complete == 0 && result == 0) return wait_slowly(handle, status);
  settle_one(handle, before, real, place.source());
  return result;
}

}  // namespace

extern "C" {

int PMPI_Wait(void* request, void* status) {
  const InCall in_call;
  return wait(*static_cast<RequestHandle*>(request), status);
}
BACKSTAY_MPI_NAME(MPI_Wait)

int PMPI_Test(void* request, int* flag, void* status) {
  const InCall in_call;
  return test(*static_cast<RequestHandle*>(request), flag, status);
}
BACKSTAY_MPI_NAME(MPI_Test)

int PMPI_Request_get_status(RequestHandle handle, int* flag, void* status) {
  const InCall in_call;
  if (held_back_requests() > 0 && is_held_back(handle)) {
    *flag = poll(handle) ? 1 : 0;
    if (*flag != 0) copy_status(request_of(handle)->status, status);
    return 0;
  }
  return inside(index_MPI_Request_get_status, abi::real<Class::request>(handle), flag, status);
}
BACKSTAY_MPI_NAME(MPI_Request_get_status)

int PMPI_Request_free(void* request) {
  const InCall in_call;
  auto& handle = *static_cast<RequestHandle*>(request);
  if (request_of(handle) == nullptr) {
    uint64_t real = abi::real<Class::request>(handle);
    return inside(index_MPI_Request_free, &real);  // MPI says what is wrong
  }
  free_request(handle);
  return 0;
}
BACKSTAY_MPI_NAME(MPI_Request_free)

int PMPI_Cancel(void* request) {
  const InCall in_call;
  const auto handle = *static_cast<RequestHandle*>(request);
  if (request_of(handle) != nullptr) return cancel_request(handle);
  uint64_t real = abi::real<Class::request>(handle);
  return inside(index_MPI_Cancel, &real);
}
BACKSTAY_MPI_NAME(MPI_Cancel)

}  // extern "C"

}  // namespace backstay::mpi
