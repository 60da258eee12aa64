// Probes, and receives of what a probe has matched: the store first, then the real MPI.

#include "capture/mpi_library/chunks.h"
#include "capture/mpi_library/loop.h"
#include "capture/mpi_library/messages.h"
#include "capture/mpi_library/names.h"

namespace backstay::mpi {

namespace {

using Comm = abi::Handle<Class::comm>;
using Type = abi::Handle<Class::datatype>;
using MessageHandle = abi::Handle<Class::message>;

Chunks<Message> by_slot;
uint32_t messages = 0;  // that the program has matched and not received

Awaited awaited_of(const Communicator* in, int source) {
  Awaited awaited;
  add_awaited(in, source, awaited);
  return awaited;
}

abi::Status& status_of(Stored& one) { return *reinterpret_cast<abi::Status*>(one.status); }

// A look at the store. True: it is there.
bool see(const Communicator* in, int source, int tag, void* status) {
  Stored* one = store.find(pattern_of(in, source, tag));
  if (one == nullptr) return false;
  copy_status(status_of(*one), status);
  return true;
}

// In the real MPI nothing has the number 1.
constexpr uint64_t no_message = 1;

MessageHandle handle_of_stored(Stored* one) {
  Slot* slot = take_slot(Class::message, no_message);
  by_slot.at(slot) = {one, one->communicator, status_of(*one)};
  ++messages;
  return abi::handle_of<Class::message>(slot);
}

bool match_stored(const Communicator* in, int source, int tag, void* message, void* status) {
  Stored* one = take_stored(in, source, tag);
  if (one == nullptr) return false;
  copy_status(status_of(*one), status);
  *static_cast<MessageHandle*>(message) = handle_of_stored(one);
  return true;
}

void note_matched(void* message, const Communicator* in, const abi::Status& status) {
  Slot* slot = abi::slot_of<Class::message>(*static_cast<MessageHandle*>(message));
  if (slot == nullptr) return;  // of MPI_PROC_NULL
  by_slot.at(slot) = {nullptr, in, status};
  ++messages;
}

int match_once(int source, int tag, Comm comm, int* flag, void* message, void* status) {
  const Communicator* in = communicator_of(comm);
  *flag = 1;
  if (match_stored(in, source, tag, message, status)) return 0;
  Out<Class::message> made(message);
  abi::Status own{};
  const int result = inside(index_MPI_Improbe, source, tag, abi::real<Class::comm>(comm), flag,
                            made.place(), &own);
  if (result != 0 || *flag == 0) return result;
  made.put();
  copy_status(own, status);
  note_matched(message, in, own);
  return result;
}

Message* message_of(MessageHandle handle) {
  const Slot* slot = abi::slot_of<Class::message>(handle);
  return slot != nullptr ? by_slot.find(slot) : nullptr;
}

// The program has received it; the handle becomes null.
void forget(MessageHandle& handle, Message& message) {
  Slot* slot = abi::slot_of<Class::message>(handle);
  message = Message{};
  --messages;
  give_back(slot);
  handle = abi::predefined<Class::message>(abi::null<Class::message>());
}

}  // namespace

bool drive_messages() {
  bool has_news = false;
  for (uint32_t i = 1; messages > 0 && i < slots_end(); ++i) {
    if (slots[i].type != static_cast<uint32_t>(Class::message)) continue;
    Message& message = by_slot.at(&slots[i]);
    if (message.stored == nullptr) {
      message.stored = begin_taking(slots[i].real, message.in, message.status);
      slots[i].real = no_message;
    }
    if (drive(*message.stored)) has_news = true;
  }
  return has_news;
}

extern "C" {

int PMPI_Iprobe(int source, int tag, Comm comm, int* flag, void* status) {
  const InCall in_call;
  const Communicator* in = communicator_of(comm);
  *flag = 1;
  if (see(in, source, tag, status)) return 0;
  const int result =
      inside(index_MPI_Iprobe, source, tag, abi::real<Class::comm>(comm), flag, status);
  if (is_asked() && result == 0) {
    if (*flag == 0) {
      found_nothing(awaited_of(in, source));
    } else {
      stop_waiting();
    }
  }
  return result;
}
BACKSTAY_MPI_NAME(MPI_Iprobe)

int PMPI_Probe(int source, int tag, Comm comm, void* status) {
  const InCall in_call;
  const Communicator* in = communicator_of(comm);
  for (;;) {
    if (see(in, source, tag, status)) break;
    const uint64_t real = abi::real<Class::comm>(comm);
    int is_there = 0;
    const int result = test_in_lower(
        is_there, [&] { return native(index_MPI_Iprobe, source, tag, real, &is_there, status); });
    if (result != 0) return result;
    if (is_there != 0) break;
    turn(awaited_of(in, source));
  }
  stop_waiting();
  return 0;
}
BACKSTAY_MPI_NAME(MPI_Probe)

int PMPI_Improbe(int source, int tag, Comm comm, int* flag, void* message, void* status) {
  const InCall in_call;
  const int result = match_once(source, tag, comm, flag, message, status);
  if (is_asked() && result == 0 && *flag == 0) {
    found_nothing(awaited_of(communicator_of(comm), source));
  }
  return result;
}
BACKSTAY_MPI_NAME(MPI_Improbe)

int PMPI_Mprobe(int source, int tag, Comm comm, void* message, void* status) {
  const InCall in_call;
  for (int turns = 0;; ++turns) {
    int is_there = 0;
    const int result = match_once(source, tag, comm, &is_there, message, status);
    if (result != 0) return result;
    if (is_there != 0) break;
    if (turns >= tests_max || is_asked() || is_shared)
      turn(awaited_of(communicator_of(comm), source));
  }
  stop_waiting();
  return 0;
}
BACKSTAY_MPI_NAME(MPI_Mprobe)

int PMPI_Imrecv(void* buffer, int count, Type type, void* message, void* request) {
  const InCall in_call;
  auto& handle = *static_cast<MessageHandle*>(message);
  Message* known = message_of(handle);
  const uint64_t real_type = abi::real<Class::datatype>(type);
  auto& made = *static_cast<RequestHandle*>(request);
  if (known != nullptr && known->stored != nullptr) {
    abi::Status status;
    Stored* one = known->stored;
    forget(handle, *known);
    const int error = deliver(one, buffer, count, real_type, status);
    made = done_request(status, error);
    return 0;
  }
  uint64_t real = abi::real<Class::message>(handle);
  Out<Class::request> out(request);
  const int result = inside(index_MPI_Imrecv, buffer, count, real_type, &real, out.place());
  out.put();
  if (result != 0 || known == nullptr) {
    settle<Class::message>(handle, abi::real<Class::message>(handle), real);
    return result;
  }
  auto* in = const_cast<Communicator*>(known->in);
  note_receive(made, {buffer, count, type, known->status.source, known->status.tag, {}}, in);
  forget(handle, *known);
  return result;
}
BACKSTAY_MPI_NAME(MPI_Imrecv)

int PMPI_Mrecv(void* buffer, int count, Type type, void* message, void* status) {
  const InCall in_call;
  RequestHandle request{};
  const int result = PMPI_Imrecv(buffer, count, type, message, &request);
  if (result != 0) return result;
  return wait_slowly(request, status);
}
BACKSTAY_MPI_NAME(MPI_Mrecv)

}  // extern "C"

}  // namespace backstay::mpi
