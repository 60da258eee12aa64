// MPI_Comm_create_group and MPI_Intercomm_create: calls of some ranks alone, which have no
// communicator of just these ranks and so no clock (docs/protocol/cut.md, "Calls of some ranks
// alone").
#include "capture/mpi_library/attributes.h"
#include "capture/mpi_library/communicators.h"
#include "capture/mpi_library/hidden.h"
#include "capture/mpi_library/meeting.h"
#include "capture/mpi_library/names.h"

namespace backstay::mpi {

namespace {

using Comm = abi::Handle<Class::comm>;
using Group = abi::Handle<Class::group>;

// What is to be made: it has its clock from the beginning, and then the call of MPI is the first
// one on it.
class Expected {
 public:
  Expected(uint64_t number, int members) : number_(number) {
    const InCall in_call;
    slot_ = take_slot(Class::comm, 0);
    counted_ = &count_expected(slot_, number, members);
  }

  // `call` gives the real one.
  template <typename Call>
  int make(Call call, void* to) {
    const Collective begun(counted_);
    uint64_t real = 0;
    const int result = call(real);
    if (result != 0) {
      count_expected_failed(slot_);
      give_back(slot_);
      return result;
    }
    slot_->real = real;
    attach(slot_, describe_communicator(real, number_));
    const Comm handle = abi::handle_of<Class::comm>(slot_);
    count_expected_made(handle);
    *static_cast<Comm*>(to) = handle;
    return 0;
  }

 private:
  uint64_t number_;
  Slot* slot_;
  Communicator* counted_;
};

// --- of a group
// -----------------------------------------------------------------------------------

// Its place there; negative: it is no member.
int place_of(int rank, const int* all, int count) {
  for (int i = 0; i < count; ++i) {
    if (all[i] == rank) return i;
  }
  return -1;
}

bool is_within(const Kept<int>& ranks, const Communicator& of) {
  if (of.world == nullptr) return true;
  for (const int rank : ranks) {
    if (place_of(rank, of.world, of.size) < 0) return false;
  }
  return true;
}

// Members in MPI_COMM_WORLD; none: MPI itself says what is wrong, or that this rank has no part.
Kept<int> known_members(Comm comm, Group group) {
  const Communicator* in = communicator_of(comm);
  const auto* made = static_cast<GroupMade*>(made_of<Class::group>(group));
  if (in == nullptr || made == nullptr || made->members.is_foreign ||
      communicator(comm)->is_inter) {
    return {};
  }
  Kept<int> ranks = ranks_of(made->members);
  const bool is_member = place_of(own_world_rank(), ranks.all, static_cast<int>(ranks.count)) >= 0;
  if (!is_member || !is_within(ranks, *in)) ranks.clear();
  return ranks;
}

int make_of_group(Comm comm, Group group, int given, const Kept<int>& ranks, void* to) {
  const int count = static_cast<int>(ranks.count);
  const int tag = tag_alone(communicator(comm)->number, given);
  Meeting members(ranks.all, count, place_of(own_world_rank(), ranks.all, count), 0, tag);
  uint64_t number = members.is_root() ? fresh_number() : 0;
  members.gather();
  members.hand_out(&number, sizeof number);
  Expected expected(number, count);
  members.gather();
  members.hand_out(&number, sizeof number);
  return expected.make(
      [&](uint64_t& real) {
        const int result = beside(index_MPI_Comm_create_group, real_for_mpi(),
                                  abi::real<Class::group>(group), tag, &real);
        if (result != 0) return raise_error<Class::comm>(comm, result);
        if (abi::copies_error_handler) {
          inside(index_MPI_Comm_set_errhandler, real, real_handler_of(comm));
        }
        return 0;
      },
      to);
}

// --- between two groups
// ---------------------------------------------------------------------------

// What the leaders tell each other, and their sides. Number 0: the other side is not known.
struct Side {
  uint64_t number;
  int members;
  int tag;  // of both leaders
};

class Between {
 public:
  Between(const Communicator& local, int leader, int tag)
      : local_(local), meeting_(local.world, local.size, own_place(local), leader, tag) {}

  // `leader`: the other side's one in MPI_COMM_WORLD, which this side's one knows, as the tag to
  // reach it; negative: not known. False: neither is it to the others.
  bool agree(int leader, int tag);
  uint64_t number() const { return side_.number; }
  int members() const { return local_.size + side_.members; }
  int tag() const { return side_.tag; }
  // Both sides have agreed, at all members.
  void meet(int leader);
  bool is_leader() const { return meeting_.is_root(); }

 private:
  static int own_place(const Communicator& of) {
    return of.world == nullptr ? own_world_rank() : place_of(own_world_rank(), of.world, of.size);
  }

  const Communicator& local_;
  Meeting meeting_;
  Side side_{};
};

bool Between::agree(int leader, int tag) {
  meeting_.gather();
  if (is_leader() && leader >= 0) {
    Side own{fresh_number(), local_.size, tag};
    exchange(leader, tag, &own, sizeof own, &side_, sizeof side_);
    if (own.number < side_.number) side_.number = own.number;
  }
  meeting_.hand_out(&side_, sizeof side_);
  return side_.number != 0;
}

void Between::meet(int leader) {
  char here = 0;
  char there = 0;
  meeting_.gather();
  if (is_leader()) exchange(leader, tag(), &here, 1, &there, 1);
  meeting_.hand_out(&here, 1);
}

int make_between(Comm local, int local_leader, int leader, Between& sides, void* to) {
  Expected expected(sides.number(), sides.members());
  sides.meet(leader);
  // Of its errors MPI tells the local communicator.
  return expected.make(
      [&](uint64_t& real) {
        return beside(index_MPI_Intercomm_create, abi::real<Class::comm>(local), local_leader,
                      real_for_mpi(), leader, sides.tag(), &real);
      },
      to);
}

}  // namespace

extern "C" {

int PMPI_Comm_create_group(Comm comm, Group group, int tag, void* newcomm) {
  Kept<int> ranks = known_members(comm, group);
  if (ranks.count != 0 && tag >= 0 && newcomm != nullptr) {
    const int result = make_of_group(comm, group, tag, ranks, newcomm);
    ranks.clear();
    return result;
  }
  ranks.clear();
  const InCall in_call;
  Out<Class::comm> made(newcomm);
  const int result = beside(index_MPI_Comm_create_group, abi::real<Class::comm>(comm),
                            abi::real<Class::group>(group), tag, made.place());
  made.put();
  return result;
}
BACKSTAY_MPI_NAME(MPI_Comm_create_group)

int PMPI_Intercomm_create(Comm local_comm, int local_leader, Comm peer_comm, int remote_leader,
                          int tag, void* newintercomm) {
  const Communicator* local = communicator_of(local_comm);
  if (has_member(local, local_leader) && !communicator(local_comm)->is_inter && tag >= 0 &&
      newintercomm != nullptr) {
    Between sides(*local, local_leader, tag_alone(communicator(local_comm)->number, tag));
    const Communicator* over = sides.is_leader() ? communicator_of(peer_comm) : nullptr;
    const int leader = has_member(over, remote_leader) ? over->world_rank(remote_leader) : -1;
    const int over_tag = leader >= 0 ? tag_alone(communicator(peer_comm)->number, tag) : 0;
    if (sides.agree(leader, over_tag)) {
      return make_between(local_comm, local_leader, leader, sides, newintercomm);
    }
  }
  const InCall in_call;
  Out<Class::comm> made(newintercomm);
  const int result =
      beside(index_MPI_Intercomm_create, abi::real<Class::comm>(local_comm), local_leader,
             abi::real<Class::comm>(peer_comm), remote_leader, tag, made.place());
  made.put();
  return result;
}
BACKSTAY_MPI_NAME(MPI_Intercomm_create)

}  // extern "C"

}  // namespace backstay::mpi
