// Functions that complete requests. Open MPI's read a request's number in the request.

#include "capture/mpi_library/mpifh.h"

extern "C" {
extern int mpi_fortran_status_ignore_[], mpi_fortran_statuses_ignore_[];
void* PMPI_Request_f2c(int number);
int PMPI_Request_c2f(void* request);
int PMPI_Request_free(void* request);
int PMPI_Test(void* request, int* flag, int* status);
int PMPI_Testall(int count, void* requests, int* flag, int* statuses);
int PMPI_Testany(int count, void* requests, int* at, int* flag, int* status);
int PMPI_Testsome(int count, void* requests, int* done, int* at, int* statuses);
int PMPI_Wait(void* request, int* status);
int PMPI_Waitall(int count, void* requests, int* statuses);
int PMPI_Waitany(int count, void* requests, int* at, int* status);
int PMPI_Waitsome(int count, void* requests, int* done, int* at, int* statuses);
}

namespace backstay::mpifh {

namespace {

// Null is C's MPI_STATUS_IGNORE and MPI_STATUSES_IGNORE. Both modules give the other one, too.
int* statuses(int* given) {
  const bool ignored = given == mpi_fortran_status_ignore_ || given == mpi_fortran_statuses_ignore_;
  return ignored ? nullptr : given;
}

// The program's array of numbers as C has it, and back.
class Requests {
 public:
  Requests(int* numbers, int count) : numbers_(numbers), count_(count > 0 ? count : 0) {
    const auto requests = static_cast<size_t>(count_);
    if (requests > sizeof here_ / sizeof here_[0]) {
      all_ = static_cast<Handle*>(malloc(requests * sizeof(Handle)));
      if (all_ == nullptr) abort();
    }
    for (int i = 0; i < count_; ++i) all_[i] = PMPI_Request_f2c(numbers_[i]);
  }
  ~Requests() {
    if (all_ != here_) free(static_cast<void*>(all_));
  }
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;

  Handle* all() { return all_; }
  void put(int at) { numbers_[at] = PMPI_Request_c2f(all_[at]); }
  void put_all() {
    for (int i = 0; i < count_; ++i) put(i);
  }

 private:
  int* numbers_;
  int count_;
  Handle here_[32];
  Handle* all_ = here_;
};

// Places count from 1 in Fortran.
void put_some(Requests& requests, const int* done, int* at) {
  if (*done == undefined) return;
  for (int i = 0; i < *done; ++i) requests.put(at[i]++);
}
void put_any(Requests& requests, int* at) {
  if (*at == undefined) return;
  requests.put((*at)++);
}

}  // namespace

extern "C" {

void ompi_wait_f(int* request, int* status, int* ierror) {
  Requests one(request, 1);
  give(ierror, PMPI_Wait(one.all(), statuses(status)));
  one.put_all();
}
BACKSTAY_MPIFH_NAMES(wait, WAIT, Wait)

void ompi_test_f(int* request, int* flag, int* status, int* ierror) {
  Requests one(request, 1);
  give(ierror, PMPI_Test(one.all(), flag, statuses(status)));
  one.put_all();
}
BACKSTAY_MPIFH_NAMES(test, TEST, Test)

void ompi_waitall_f(int* count, int* requests, int* status, int* ierror) {
  Requests all(requests, *count);
  give(ierror, PMPI_Waitall(*count, all.all(), statuses(status)));
  all.put_all();
}
BACKSTAY_MPIFH_NAMES(waitall, WAITALL, Waitall)

void ompi_testall_f(int* count, int* requests, int* flag, int* status, int* ierror) {
  Requests all(requests, *count);
  give(ierror, PMPI_Testall(*count, all.all(), flag, statuses(status)));
  all.put_all();
}
BACKSTAY_MPIFH_NAMES(testall, TESTALL, Testall)

void ompi_waitany_f(int* count, int* requests, int* at, int* status, int* ierror) {
  Requests all(requests, *count);
  *at = undefined;
  give(ierror, PMPI_Waitany(*count, all.all(), at, statuses(status)));
  put_any(all, at);
}
BACKSTAY_MPIFH_NAMES(waitany, WAITANY, Waitany)

void ompi_testany_f(int* count, int* requests, int* at, int* flag, int* status, int* ierror) {
  Requests all(requests, *count);
  *at = undefined;
  *flag = 0;
  give(ierror, PMPI_Testany(*count, all.all(), at, flag, statuses(status)));
  if (*flag != 0) put_any(all, at);
}
BACKSTAY_MPIFH_NAMES(testany, TESTANY, Testany)

void ompi_waitsome_f(int* count, int* requests, int* done, int* at, int* status, int* ierror) {
  Requests all(requests, *count);
  *done = undefined;
  give(ierror, PMPI_Waitsome(*count, all.all(), done, at, statuses(status)));
  put_some(all, done, at);
}
BACKSTAY_MPIFH_NAMES(waitsome, WAITSOME, Waitsome)

void ompi_testsome_f(int* count, int* requests, int* done, int* at, int* status, int* ierror) {
  Requests all(requests, *count);
  *done = undefined;
  give(ierror, PMPI_Testsome(*count, all.all(), done, at, statuses(status)));
  put_some(all, done, at);
}
BACKSTAY_MPIFH_NAMES(testsome, TESTSOME, Testsome)

void ompi_request_free_f(int* request, int* ierror) {
  Requests one(request, 1);
  give(ierror, PMPI_Request_free(one.all()));
  one.put_all();
}
BACKSTAY_MPIFH_NAMES(request_free, REQUEST_FREE, Request_free)

}  // extern "C"

}  // namespace backstay::mpifh
