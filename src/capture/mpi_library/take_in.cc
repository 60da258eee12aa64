#include "capture/mpi_library/take_in.h"

#include <stdlib.h>
#include <string.h>

#include "capture/mpi_library/attend.h"
#include "capture/mpi_library/messages.h"
#include "capture/mpi_library/names.h"
#include "capture/mpi_library/own_errors.h"
#include "capture/mpi_library/requests.h"

namespace backstay::mpi {

Store store;

namespace {

// A message of any length as bytes: MPI counts with 31 bits.
class Bytes {
 public:
  explicit Bytes(uint64_t bytes) {
    constexpr uint64_t block = 1 << 20;
    type_ = abi::byte();
    count_ = static_cast<int>(bytes);
    if (bytes <= INT32_MAX) return;
    uint64_t large = 0;
    int lengths[] = {static_cast<int>(bytes / block), static_cast<int>(bytes % block)};
    int64_t places[] = {0, static_cast<int64_t>(bytes / block * block)};
    inside(index_MPI_Type_contiguous, static_cast<int>(block), type_, &large);
    abi::RealElement types[] = {static_cast<abi::RealElement>(large),
                                static_cast<abi::RealElement>(type_)};
    uint64_t whole = 0;
    inside(index_MPI_Type_create_struct, 2, lengths, places, types, &whole);
    inside(index_MPI_Type_commit, &whole);
    inside(index_MPI_Type_free, &large);
    type_ = whole;
    count_ = 1;
    is_made_ = true;
  }
  ~Bytes() {
    if (is_made_) inside(index_MPI_Type_free, &type_);
  }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  int count() const { return count_; }
  uint64_t type() const { return type_; }

 private:
  uint64_t type_ = 0;
  int count_ = 0;
  bool is_made_ = false;
};

// The communicator over which a stored message is sent to the program: its own process alone.
uint64_t own_communicator() {
  static uint64_t own = 0;
  static uint64_t of_fs = 0;  // of this life of the process
  if (own == 0 || of_fs != lives()) {
    of_fs = lives();
    own = 0;
    inside(index_MPI_Comm_dup, abi::self(), &own);
    inside(index_MPI_Comm_set_errhandler, own, abi::errors_return());
  }
  return own;
}

bool take_in(const Communicator& in) {
  bool has_news = false;
  if (in.size == 0) return false;  // it is being made
  const uint64_t real = abi::real<Class::comm>(in.handle);
  for (;;) {
    int is_there = 0;
    uint64_t message = 0;
    abi::Status status;
    memset(&status, 0, sizeof status);
    inside(index_MPI_Improbe, abi::any_source, abi::any_tag, real, &is_there, &message, &status);
    if (is_there == 0) return has_news;
    Stored* one = begin_taking(message, &in, status);
    drive(*one);
    store.add(one);
    has_news = true;
  }
}

}  // namespace

Stored* begin_taking(uint64_t real_message, const Communicator* in, const abi::Status& status) {
  const uint64_t bytes = abi::bytes_of(status);
  auto* one = static_cast<Stored*>(calloc(1, sizeof(Stored)));
  char* data = static_cast<char*>(malloc(bytes + 1));
  if (one == nullptr || data == nullptr) abort();
  one->communicator = in;
  one->source = status.source;
  one->tag = status.tag;
  one->bytes = bytes;
  one->data = data;
  memcpy(one->status, &status, sizeof status);
  const Bytes form(bytes);
  inside(index_MPI_Imrecv, data, form.count(), form.type(), &real_message, &one->arriving);
  one->is_arriving = true;
  return one;
}

// True: it has arrived just now.
bool drive(Stored& one) {
  if (!one.is_arriving) return false;
  int is_complete = 0;
  abi::Status status;
  inside(index_MPI_Test, &one.arriving, &is_complete, &status);
  if (is_complete == 0) return false;
  one.is_arriving = false;
  count_taken_in(one.communicator, one.source);
  return true;
}

bool take_in_all() {
  bool has_news = drive_requests();
  if (drive_messages()) has_news = true;
  for (Communicator* one = first_communicator(); one != nullptr; one = one->next) {
    if (take_in(*one)) has_news = true;
  }
  for (Stored* one = store.first(); one != nullptr; one = one->next) {
    if (drive(*one)) has_news = true;
  }
  return has_news;
}

Stored* take_stored(const Communicator* in, int source, int tag) {
  Stored* one = store.find(pattern_of(in, source, tag));
  if (one != nullptr) store.remove(one);
  return one;
}

// This process sends the first bytes of the message once more, to itself. They fit.
int send_again(const Stored& one, uint64_t bytes, void* buffer, int count, uint64_t real_type,
               abi::Status& status) {
  const Bytes form(bytes);
  uint64_t sending = 0;
  uint64_t receiving = 0;
  abi::Status ignored;
  int result =
      inside(index_MPI_Irecv, buffer, count, real_type, 0, 0, own_communicator(), &receiving);
  if (result != 0) return result;
  inside(index_MPI_Isend, one.data, form.count(), form.type(), 0, 0, own_communicator(), &sending);
  for (int is_complete = 0; is_complete == 0 && result == 0;) {
    result = inside(index_MPI_Test, &receiving, &is_complete, &status);
  }
  for (int is_complete = 0; is_complete == 0;) {
    if (inside(index_MPI_Test, &sending, &is_complete, &ignored) != 0) break;
  }
  return result;
}

// A message that is too long never reaches MPI, which has several ideas of whom to tell: only what
// fits does.
int deliver(Stored* one, void* buffer, int count, uint64_t real_type, abi::Status& status) {
  while (one->is_arriving && !drive(*one)) give_way();
  set_empty(status);
  ErrorsReturn returned(true);
  int64_t size = 0;
  int result = inside(index_MPI_Type_size_x, real_type, &size);
  const uint64_t room = count > 0 ? static_cast<uint64_t>(size) * static_cast<uint64_t>(count) : 0;
  const uint64_t bytes = one->bytes < room ? one->bytes : room;
  if (result == 0) result = send_again(*one, bytes, buffer, count, real_type, status);
  if (result == 0 && bytes != one->bytes) result = abi::err_truncate;
  returned.end();
  status.source = one->source;
  status.tag = one->tag;
  count_taken(one->communicator, one->source);
  if (result != 0) {
    inside(index_MPI_Comm_call_errhandler, abi::real<Class::comm>(one->communicator->handle),
           result);
  }
  free(one->data);
  free(one);
  return result;
}

}  // namespace backstay::mpi
