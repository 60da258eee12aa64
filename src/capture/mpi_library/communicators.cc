#include "capture/mpi_library/communicators.h"

#include "capture/mpi_library/attributes.h"
#include "capture/mpi_library/counters.h"
#include "capture/mpi_library/names.h"
#include "capture/mpi_library/renew.h"
#include "capture/mpi_library/requests.h"

namespace backstay::mpi {

namespace {

using CommHandle = abi::Handle<Class::comm>;

CommunicatorMade own[2];  // MPI_COMM_WORLD, MPI_COMM_SELF
enum : uint64_t { number_of_world = 1, number_of_self = 2, first_number = 16 };

uint32_t numbers_given = 0;

uint64_t mix(uint64_t word) {
  word += 0x9e3779b97f4a7c15;
  word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9;
  word = (word ^ word >> 27) * 0x94d049bb133111eb;
  return word ^ word >> 31;
}
// The number of the parent's so-many-th duplicate: another one for each pair.
uint64_t derived(uint64_t parent, uint64_t duplicate) { return mix(mix(parent) + duplicate); }

// The first member's. No counter of messages knows of it: it is part of the call that makes the
// communicator, which all members have begun.
uint64_t agree(uint64_t comm) {
  int rank = 0;
  inside(index_MPI_Comm_rank, comm, &rank);
  uint64_t number = rank == 0 ? fresh_number() : 0;
  beside(index_MPI_Bcast, &number, 8, abi::byte(), 0, comm);
  return number;
}

// Each side's first member offers one; the first reduction shows it to the other side, the second
// one shows it to its own.
uint64_t agree_between(uint64_t comm) {
  int rank = 0;
  inside(index_MPI_Comm_rank, comm, &rank);
  const uint64_t offered = rank == 0 ? fresh_number() : 0;
  uint64_t theirs = 0;
  uint64_t ours = 0;
  beside(index_MPI_Allreduce, &offered, &theirs, 1, abi::uint64(), abi::max(), comm);
  beside(index_MPI_Allreduce, &theirs, &ours, 1, abi::uint64(), abi::max(), comm);
  return ours < theirs ? ours : theirs;
}

Members members_by(uint32_t index, uint64_t comm) {
  uint64_t group = 0;
  inside(index, comm, &group);
  const Members members = members_of(group);
  free_group(group);
  return members;
}

// Default names too, as one of Open MPI has the number of the communicator in it.
char* name_of(uint64_t comm) {
  constexpr int bytes = 256;
  char name[bytes] = "";
  int length = 0;
  inside(index_MPI_Comm_get_name, comm, name, &length);
  return name[0] != 0 ? keep_text(name) : nullptr;
}

void read_shape(uint64_t comm, CommunicatorMade& made) {
  int inter = 0;
  inside(index_MPI_Comm_test_inter, comm, &inter);
  made.is_inter = inter != 0;
  made.local = members_by(index_MPI_Comm_group, comm);
  if (made.is_inter) made.remote = members_by(index_MPI_Comm_remote_group, comm);
  made.topology = made.is_inter ? Topology{} : topology_of(comm);
  made.handler = handler_of(comm);
}

// --- calls
// -----------------------------------------------------------------------------------------

// Behind a call that has duplicated `parent`: what MPI does not know goes along.
int finish(CommHandle parent, uint64_t real, Made* described, void* newcomm) {
  auto* made = static_cast<CommunicatorMade*>(described);
  const auto handle = handle_of_made<Class::comm>(made);
  const CommunicatorMade* from = communicator(parent);
  const int result = from != nullptr
                         ? copy_attributes<Class::comm>(parent, from->attributes, made->attributes)
                         : 0;
  if (result == 0) {
    *static_cast<CommHandle*>(newcomm) = handle;
    return 0;
  }
  Slot* slot = abi::slot_of<Class::comm>(handle);
  count_freed(handle);
  detach(slot);
  give_back(slot);
  inside(index_MPI_Comm_free, &real);
  return raise_error<Class::comm>(parent, result);
}

// Its hints are those of the info object, or without one its parent's.
struct Hints {
  const KeyValues* given;
  const KeyValues* set;
};
Hints hints_of(CommHandle parent) {
  const CommunicatorMade* made = communicator(parent);
  return made != nullptr && abi::copies_hints ? Hints{&made->given, &made->hints} : Hints{};
}
Hints hints_of_info(abi::Handle<Class::info> handle) {
  const InfoMade* made = info(handle);
  return made != nullptr ? Hints{&made->all, nullptr} : Hints{};
}
void note_hints(CommunicatorMade& made, const Hints& hints) {
  if (hints.given != nullptr) merge(made.given, *hints.given);
  if (hints.set != nullptr) merge(made.hints, *hints.set);
}

int duplicate(CommHandle parent, uint64_t real, const Hints& hints, void* newcomm) {
  Made* made = describe_communicator(real);
  note_hints(*static_cast<CommunicatorMade*>(made), hints);
  return finish(parent, real, made, newcomm);
}

// MPI can be asked for nothing of it before its request is complete: its members are its parent's.
int duplicate_later(CommHandle parent, uint64_t real, const Hints& hints, void* newcomm,
                    void* request) {
  auto* made = new_made<CommunicatorMade>(Class::comm, real);
  read_shape(abi::real<Class::comm>(parent), *made);
  CommunicatorMade* from = communicator(parent);
  made->number = derived(from->number, from->duplicates++);
  note_hints(*made, hints);
  Request* making = note_request(made_request(request), Request::Kind::collective);
  if (making != nullptr) making->makes_communicator = true;
  return finish(parent, real, made, newcomm);
}

// It returns when all members have begun it: a member that has freed it could not make it again for
// one that has not, in another process.
int end(uint32_t index, void* comm) {
  auto* handle = static_cast<CommHandle*>(comm);
  const Collective ending(*handle);
  const bool is_made = abi::slot_of<Class::comm>(*handle) != nullptr;
  if (Made* made = made_of<Class::comm>(*handle)) {
    const int refused = delete_attributes<Class::comm>(*handle, made->attributes);
    if (refused != 0) return raise_error<Class::comm>(*handle, refused);
  }
  const Communicator* known = communicator_of(*handle);
  if (known != nullptr && is_made && known->number != 0) {
    beside(index_MPI_Barrier, abi::real<Class::comm>(*handle));
  }
  if (is_made) count_freed(*handle);
  InOut<Class::comm> comm_(comm);
  const int result = beside(index, comm_.place());
  comm_.put();
  return result;
}

}  // namespace

uint64_t fresh_number() {
  const Locked locked;
  return (static_cast<uint64_t>(own_world_rank()) << 32) + first_number + numbers_given++;
}

uint64_t real_handler_of(CommHandle handle) { return communicator(handle)->real_handler(); }

CommunicatorMade* communicator(CommHandle handle) {
  const Slot* slot = abi::slot_of<Class::comm>(handle);
  if (slot != nullptr) return static_cast<CommunicatorMade*>(made_of(slot));
  const uint64_t real = abi::real<Class::comm>(handle);
  if (real != abi::world() && real != abi::self()) return nullptr;
  const bool is_self = real == abi::self();
  own[is_self].number = is_self ? number_of_self : number_of_world;
  return &own[is_self];
}

Made* describe_communicator(uint64_t real, uint64_t number) {
  auto* made = new_made<CommunicatorMade>(Class::comm, real);
  read_shape(real, *made);
  made->name = name_of(real);
  made->number = number;
  return made;
}

Made* describe_communicator(uint64_t real) {
  auto* made = static_cast<CommunicatorMade*>(describe_communicator(real, 0));
  if (!made->is_foreign()) {
    made->number = made->is_inter ? agree_between(real) : agree(real);
  }
  return made;
}

void clear_communicator(Made* made) {
  auto* one = static_cast<CommunicatorMade*>(made);
  one->local.runs.clear();
  one->remote.runs.clear();
  one->topology.numbers.clear();
  clear(one->given);
  clear(one->hints);
  unuse(one->handler.made);
}

void furnish(const CommunicatorMade& made, uint64_t real) {
  if (made.name != nullptr) inside(index_MPI_Comm_set_name, real, made.name);
  if (made.hints.count != 0) {
    uint64_t hints = make_info(made.hints);
    inside(index_MPI_Comm_set_info, real, hints);
    inside(index_MPI_Info_free, &hints);
  }
  if (real != abi::self() || is_self_asked()) {
    inside(index_MPI_Comm_set_errhandler, real, made.real_handler());
  }
}

bool is_self_asked() { return own[1].is_handler_set || !is_over_mpich(); }

void let_own_errors_return() {
  inside(index_MPI_Comm_set_errhandler, abi::world(), abi::errors_return());
  if (is_self_asked()) {
    inside(index_MPI_Comm_set_errhandler, abi::self(), abi::errors_return());
  }
}

void set_own_handlers_again() {
  inside(index_MPI_Comm_set_errhandler, abi::world(), own[0].real_handler());
  if (is_self_asked()) {
    inside(index_MPI_Comm_set_errhandler, abi::self(), own[1].real_handler());
  }
}

void renew_own_communicators() {
  for (CommunicatorMade& one : own) {
    furnish(one, &one == &own[0] ? abi::world() : abi::self());
  }
}

void delete_own_attributes() {
  const uint64_t reals[] = {abi::self(), abi::world()};
  for (const uint64_t real : reals) {
    const CommHandle handle = abi::predefined<Class::comm>(real);
    delete_attributes<Class::comm>(handle, communicator(handle)->attributes);
  }
}

extern "C" {

int PMPI_Comm_dup(CommHandle comm, void* newcomm) {
  const Collective begun(comm);
  uint64_t real = 0;
  const int result = beside(index_MPI_Comm_dup, abi::real<Class::comm>(comm), &real);
  return result != 0 ? result : duplicate(comm, real, hints_of(comm), newcomm);
}
BACKSTAY_MPI_NAME(MPI_Comm_dup)

int PMPI_Comm_dup_with_info(CommHandle comm, abi::Handle<Class::info> hints, void* newcomm) {
  const Collective begun(comm);
  uint64_t real = 0;
  const int result = beside(index_MPI_Comm_dup_with_info, abi::real<Class::comm>(comm),
                            abi::real<Class::info>(hints), &real);
  return result != 0 ? result : duplicate(comm, real, hints_of_info(hints), newcomm);
}
BACKSTAY_MPI_NAME(MPI_Comm_dup_with_info)

int PMPI_Comm_idup(CommHandle comm, void* newcomm, void* request) {
  const Collective begun(comm);
  hold_back(Open::duplicate);
  uint64_t real = 0;
  Out<Class::request> request_(request);
  const int result =
      inside(index_MPI_Comm_idup, abi::real<Class::comm>(comm), &real, request_.place());
  request_.put();
  if (result != 0) let_go(Open::duplicate);
  return result != 0 ? result : duplicate_later(comm, real, hints_of(comm), newcomm, request);
}
BACKSTAY_MPI_NAME(MPI_Comm_idup)

int PMPI_Comm_idup_with_info(CommHandle comm, abi::Handle<Class::info> hints, void* newcomm,
                             void* request) {
  const Collective begun(comm);
  hold_back(Open::duplicate);
  uint64_t real = 0;
  Out<Class::request> request_(request);
  const int result = inside(index_MPI_Comm_idup_with_info, abi::real<Class::comm>(comm),
                            abi::real<Class::info>(hints), &real, request_.place());
  request_.put();
  if (result != 0) let_go(Open::duplicate);
  return result != 0 ? result : duplicate_later(comm, real, hints_of_info(hints), newcomm, request);
}
BACKSTAY_MPI_NAME(MPI_Comm_idup_with_info)

int PMPI_Comm_free(void* comm) { return end(index_MPI_Comm_free, comm); }
BACKSTAY_MPI_NAME(MPI_Comm_free)

int PMPI_Comm_disconnect(void* comm) { return end(index_MPI_Comm_disconnect, comm); }
BACKSTAY_MPI_NAME(MPI_Comm_disconnect)

int PMPI_Comm_set_name(CommHandle comm, void* name) {
  const InCall in_call;
  const int result = inside(index_MPI_Comm_set_name, abi::real<Class::comm>(comm), name);
  CommunicatorMade* made = result == 0 ? communicator(comm) : nullptr;
  if (made != nullptr) rename(made->name, static_cast<const char*>(name));
  return result;
}
BACKSTAY_MPI_NAME(MPI_Comm_set_name)

int PMPI_Comm_set_info(CommHandle comm, abi::Handle<Class::info> hints) {
  const InCall in_call;
  const int result =
      inside(index_MPI_Comm_set_info, abi::real<Class::comm>(comm), abi::real<Class::info>(hints));
  CommunicatorMade* made = result == 0 ? communicator(comm) : nullptr;
  const InfoMade* keys = info(hints);
  if (made != nullptr && keys != nullptr) merge(made->hints, keys->all);
  return result;
}
BACKSTAY_MPI_NAME(MPI_Comm_set_info)

}  // extern "C"

}  // namespace backstay::mpi
