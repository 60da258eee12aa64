#include "capture/image/boot/epoll_sets.h"

#include "capture/image/boot/asyncio.h"
#include "capture/image/boot/descriptor_state.h"

namespace backstay::image {

namespace {

constexpr uint64_t standard = 3;           // 0, 1, 2: given by what starts the program
constexpr long add_to_set = 1;             // EPOLL_CTL_ADD
constexpr long change_in_set = 3;          // EPOLL_CTL_MOD
constexpr uint32_t always = 0x8 | 0x10;    // EPOLLERR, EPOLLHUP: epoll_ctl adds them
constexpr uint32_t once = 1U << 30;        // EPOLLONESHOT
constexpr uint32_t any = 0x1 | 0x2 | 0x4;  // EPOLLIN, EPOLLPRI, EPOLLOUT
constexpr long compare_with_watched = 7;   // KCMP_EPOLL_TFD
constexpr long duplicate = 0;              // F_DUPFD
constexpr long not_of_its_kind = -1;       // EPERM: epoll takes no file and no /dev/null

// The kernel's epoll_event, which is packed.
struct __attribute__((packed)) EpollEvent {
  uint32_t events;
  uint64_t data;
};
// The kernel's kcmp_epoll_slot: of all that `set` watches, the `place`th that was added under
// `number`.
struct Slot {
  uint32_t set, number, place;
};

// 0: this descriptor has the open file that is watched.
long compare(const Slot& slot, uint32_t number) {
  const long process = system_call(__NR_getpid);
  return system_call(__NR_kcmp, process, process, compare_with_watched, number, address_of(&slot));
}

const Descriptor* holder_among(const Tables& tables, const Slot& slot, bool same, long& error) {
  for (const Descriptor& one : tables.descriptors) {
    if ((one.number == slot.number) != same) continue;
    const long answer = compare(slot, one.number);
    if (answer == 0) return &one;
    if (answer < 0) error = answer;
  }
  return nullptr;
}

// First the descriptor with that number: mostly it is this one.
const Descriptor* holder_of(const Tables& tables, const Slot& slot, long& error) {
  if (const Descriptor* one = holder_among(tables, slot, true, error)) return one;
  return holder_among(tables, slot, false, error);
}

bool is_of_others(const Tables& tables, const Descriptor& one) {
  return one.number >= standard && begins_with(tables.text(one.path), "pipe:") &&
         one.kind == static_cast<uint32_t>(DescriptorKind::inherited);
}

void find_holder(const Tables& tables, const Slot& slot, Watched& state, Trouble& trouble) {
  long error = 0;
  const Descriptor* holder = holder_of(tables, slot, error);
  if (holder != nullptr && !is_of_others(tables, *holder)) {
    state.holder = holder->number;
    return;
  }
  trouble << "descriptor " << uint64_t{slot.set} << " is an epoll set that watches descriptor "
          << uint64_t{slot.number};
  if (error != 0) {
    trouble << ", and this system does not tell which file that is (kcmp, error " << -error << ")";
  } else if (holder != nullptr) {
    trouble << ", a pipe to another process";
  } else {
    trouble << ", which is closed or not the program's";
  }
}

// How many records with this number are kept already: several files may have been added under it.
uint32_t kept_as(const Tables& tables, const Descriptor& one, uint32_t number) {
  uint32_t count = 0;
  Watched state;
  for (uint64_t i = 0; state_of(tables, one, i, state); ++i) {
    if (state.number == number) ++count;
  }
  return count;
}

// --- bringing back ---------------------------------------------------------------------------

// A one-shot watch (EPOLLONESHOT) that has told its event: it tells no other one before the program
// asks for it.
bool is_spent(const Watched& state) {
  return (state.events & once) != 0 && (state.events & always) == 0;
}

long control(uint32_t set, long what, const Watched& state, uint32_t events) {
  EpollEvent event{events, state.data};
  return system_call(__NR_epoll_ctl, set, what, state.number, address_of(&event));
}

// epoll_ctl makes no watch that is spent, as it adds EPOLLERR and EPOLLHUP. So the watch is made
// anew, and tells its event here. It stays armed for an error or a hang-up if it has no event now.
long add(uint32_t set, const Watched& state) {
  if (!is_spent(state)) return control(set, add_to_set, state, state.events);
  const long added = control(set, add_to_set, state, state.events | any);
  EpollEvent told;
  if (added != 0 || system_call(__NR_epoll_wait, set, address_of(&told), 1, 0) == 1) return added;
  return control(set, change_in_set, state, state.events);
}

// For a file that was added under a number which is free now, or has another file: the file gets
// the number for as long as it is added.
long add_by_copy(uint32_t set, const Watched& state) {
  const long flags = system_call(__NR_fcntl, state.number, F_GETFD, 0);
  const long other = system_call(__NR_fcntl, state.number, duplicate, 0);
  system_call(__NR_dup3, state.holder, state.number, 0);
  const long added = add(set, state);
  if (other < 0) {
    sys_close(state.number);
  } else {
    system_call(__NR_dup3, other, state.number, flags != 0 ? O_CLOEXEC : 0);
    sys_close(other);
  }
  return added;
}

void watch_all(const Tables& tables, const Descriptor& one, bool spent, Trouble& trouble) {
  Watched state;
  for (uint64_t i = 0; state_of(tables, one, i, state); ++i) {
    if (is_spent(state) != spent) continue;
    const long added =
        state.holder == state.number ? add(one.number, state) : add_by_copy(one.number, state);
    if (added == 0) continue;
    trouble << "epoll set " << uint64_t{one.number} << " cannot watch descriptor "
            << uint64_t{state.number} << " again (error " << -added << ")";
    if (added == not_of_its_kind && state.number < standard) {
      trouble << ": start the program with a pipe or a terminal there, as before";
    }
    return;
  }
}

void watch_in_sets(const Tables& tables, bool spent, Trouble& trouble) {
  for (const Descriptor& one : tables.descriptors) {
    if (one.kind != static_cast<uint32_t>(DescriptorKind::epoll)) continue;
    if (one.same_as == one.number && trouble.empty()) watch_all(tables, one, spent, trouble);
  }
}

}  // namespace

void keep_epoll(Tables& tables, Descriptor& one, Trouble& trouble) {
  asyncio::find(trouble);
  if (!trouble.empty()) return;
  Lines lines = info_of(one);
  while (const char* line = lines.next()) {
    const char* at = nullptr;
    if (!find_in(line, "tfd:", at)) continue;
    Watched state{};
    state.number = static_cast<uint32_t>(read_decimal(at));
    if (find_in(line, "events:", at)) state.events = static_cast<uint32_t>(read_hex(at));
    if (find_in(line, "data:", at)) state.data = read_hex(at);
    find_holder(tables, {one.number, state.number, kept_as(tables, one, state.number)}, state,
                trouble);
    if (trouble.empty()) keep_state(tables, one, &state, sizeof state, trouble);
    if (!trouble.empty()) return;
  }
}

// Spent watches come first, so that no other one tells its event in add().
void watch_again(const Tables& tables, Trouble& trouble) {
  watch_in_sets(tables, true, trouble);
  watch_in_sets(tables, false, trouble);
}

}  // namespace backstay::image
