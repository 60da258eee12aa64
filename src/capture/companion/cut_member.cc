#include "capture/companion/cut_member.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <span>
#include <utility>

namespace backstay::image {

namespace {

using lower::CutOrder;
using lower::Situation;

template <typename T>
T read(const T& word) {
  return __atomic_load_n(&word, __ATOMIC_ACQUIRE);
}

Situation situation_of(const lower::Caller& caller) {
  return static_cast<Situation>(read(caller.situation));
}

// The threads of the program that are in MPI, or were.
std::span<lower::Caller> all_callers(lower::Channel& channel) {
  return {&channel.caller[0], lower::callers_in(channel)};
}

// It begins no call before it has heard the next order.
bool is_quiet(const lower::Caller& caller) {
  return read(caller.calls) == 0 || situation_of(caller) == Situation::stands;
}

// Of all threads of all programs that have registered themselves, as our MPI library does.
void pass_barrier() { ::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0); }

// For whom a thread waits, as it is in the channel. Two may wait for the same rank.
void add_awaited(const lower::Caller& caller, std::vector<cut::Rank::Awaited>& all) {
  const std::uint32_t count = std::min(read(caller.awaited_count), lower::awaited_max);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t peer = read(caller.awaited[i]);
    const auto rank = peer == lower::awaited_any ? cut::any_rank : peer;
    const bool is_known = std::ranges::any_of(all, [&](auto& one) { return one.peer == rank; });
    if (!is_known) all.push_back({rank, cut::Need::What::message});
  }
}

}  // namespace

void CutMember::receive(const cut::Order& order) {
  if (order.what == cut::Order::What::run_on && cut_ == 0) begin(order);
  if (cut_ == 0) return;
  observe();
  if (order.what == cut::Order::What::save && order.cut == cut_ && stands_) {
    // Closed is who takes in no more: a library that is just taking something in is not yet.
    set_order(CutOrder::close);
    closing_ = order;
  } else {
    rank_->receive(order);
  }
  hand_on();
  look();
}

void CutMember::begin(const cut::Order& order) {
  if (!rank_ && read(channel_.ranks) > 0) rank_.emplace(channel_.rank, channel_.ranks);
  const std::string why = why_not();
  if (!why.empty()) {
    out_.emplace_back(Refused{order.cut, why});
    return;
  }
  cut_ = order.cut;
  phase_ = Phase::run_on;
  stands_ = false;
  set_order(CutOrder::run_on);
  __atomic_or_fetch(&channel_.attention, lower::attend_cut, __ATOMIC_SEQ_CST);
  // From here on each call sees the word, or is seen.
  pass_barrier();
}

std::string CutMember::why_not() const {
  if (read(channel_.has_ended) != 0) return "it has called MPI_Finalize";
  if (read(channel_.ranks) == 0) return has_not_begun;
  // The library may change the reason meanwhile.
  for (;;) {
    const std::uint32_t reason = read(channel_.refuses);
    if (reason == 0) return "";
    std::string why(channel_.why, ::strnlen(channel_.why, sizeof channel_.why));
    if (read(channel_.refuses) == reason) return why;
  }
}

// The library writes a counter before it says where the program is, so that is read first.
void CutMember::observe() {
  cut::Rank::Observed now;
  for (const lower::Caller& caller : all_callers(channel_)) {
    const Situation situation = situation_of(caller);
    const bool is_granted =
        situation == Situation::wants && read(caller.granted) == read(caller.wish_number);
    if (situation == Situation::waits) add_awaited(caller, now.awaited);
    if (is_granted || read(caller.in_collective) != 0) now.in_collective = true;
  }
  const std::uint32_t rows = std::min(read(channel_.communicators), lower::communicators_max);
  for (std::uint32_t i = 0; i < rows; ++i) {
    const std::uint64_t number = read(channel_.clock[i].number);
    if (number != 0) now.begun[number] = read(channel_.clock[i].begun);
  }
  const lower::PeerCounts* peers = lower::peers_in(channel_);
  now.peers.reserve(read(channel_.ranks));
  for (std::uint32_t i = 0; i < read(channel_.ranks); ++i) {
    now.peers.push_back({read(peers[i].sent), read(peers[i].taken_in), read(peers[i].taken)});
  }
  is_stuck_ = is_stuck(now);
  if (!is_stuck_) now.awaited.clear();
  rank_->observe(std::move(now));
}

// Whether nothing else will bring the rank on. One thread that waits needs what it waits for. Of
// several, others may be on their way meanwhile: ranks that let each other go on for each wait
// would chase each other from call to call.
bool CutMember::is_stuck(const cut::Rank::Observed& now) {
  constexpr std::uint64_t stuck_ns = 20'000'000;
  if (lower::callers_in(channel_) == 1) return true;
  if (now.begun != seen_.begun || now.peers != seen_.peers) {
    seen_ = now;
    seen_at_ = clock_.monotonic_ns();
  }
  return clock_.monotonic_ns() - seen_at_ >= stuck_ns;
}

// The program may begin the collective call that it wants to begin, where the cut allows it. A
// clock that the program had raised when it saw the cut counts as begun.
void CutMember::grant(lower::Caller& caller) {
  if (situation_of(caller) != Situation::wants) return;
  const std::uint32_t wish = read(caller.wish_number);
  if (read(caller.granted) == wish) return;
  const std::uint64_t communicator = read(caller.wish);
  std::uint64_t begun = 0;
  for (std::uint32_t i = 0; i < read(channel_.communicators); ++i) {
    if (read(channel_.clock[i].number) == communicator) begun = read(channel_.clock[i].begun);
  }
  // Of several threads, while counters change: only what the cut waits for may begin.
  const bool is_new = rank_->begun(communicator) == begun;
  const auto which = is_stuck_ ? cut::Rank::Permit::any : cut::Rank::Permit::behind;
  if (is_new && !rank_->permit(communicator, which)) return;
  __atomic_store_n(&caller.granted, wish, __ATOMIC_RELEASE);
  wake();
}

// The next call of the program sees what was ordered.
bool CutMember::is_outside() const { return lower::is_outside(channel_); }

void CutMember::look() {
  if (cut_ == 0) return;
  if (const std::string why = why_not(); read(channel_.has_ended) == 0 && !why.empty()) {
    return refuse(why);
  }
  if (read(channel_.has_ended) != 0) rank_->ends();
  observe();
  if (phase_ == Phase::run_on) {
    for (lower::Caller& caller : all_callers(channel_)) grant(caller);
  }
  const bool are_quiet = std::ranges::all_of(all_callers(channel_), is_quiet);
  if (phase_ == Phase::stop && !stands_ && are_quiet && read(channel_.open_collectives) == 0) {
    stands_ = true;
    observe();
    rank_->stands();
  }
  if (closing_ && is_outside()) {
    rank_->receive(*closing_);
    closing_.reset();
  }
  hand_on();
}

void CutMember::refuse(const std::string& why) {
  out_.emplace_back(Refused{cut_, why});
  // This rank's part is over, as after "give up".
  rank_->receive({cut_, cut::Order::What::give_up, 0, {}, {}});
  hand_on();
}

void CutMember::saved() {
  if (cut_ == 0 || phase_ != Phase::saving) return;
  rank_->saved();
  hand_on();
}

void CutMember::ended() {
  if (cut_ == 0) return;
  rank_->ends();
  hand_on();
}

void CutMember::lose_coordinator() {
  if (rank_) rank_->lose_coordinator();
  if (rank_) hand_on();
}

void CutMember::find_coordinator() {
  if (rank_) rank_->find_coordinator();
}

void CutMember::hand_on() {
  bool takes_image = false;  // behind the report that says closed: others need not wait for it
  for (cut::RankOutput& one : rank_->take()) {
    if (auto* report = std::get_if<cut::Report>(&one)) {
      out_.emplace_back(std::move(*report));
    } else if (std::holds_alternative<cut::Stop>(one)) {
      phase_ = Phase::stop;
      set_order(CutOrder::stop);
    } else if (std::holds_alternative<cut::Save>(one)) {
      phase_ = Phase::saving;
      takes_image = true;
    } else if (std::holds_alternative<cut::GoOn>(one)) {
      let_go();
    }
  }
  if (takes_image) out_.emplace_back(TakeImage{});
}

// A full fence behind it: then the library sees the order, or its call is seen.
void CutMember::set_order(CutOrder order) {
  __atomic_store_n(&channel_.order, static_cast<std::uint32_t>(order), __ATOMIC_SEQ_CST);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  ::syscall(SYS_futex, &channel_.order, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  wake();
}

// Wakes the threads of the program that sleep until the companion says more.
void CutMember::wake() {
  __atomic_add_fetch(&channel_.said, 1, __ATOMIC_SEQ_CST);
  ::syscall(SYS_futex, &channel_.said, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void CutMember::let_go() {
  if (cut_ == 0) return;
  cut_ = 0;
  closing_.reset();
  __atomic_and_fetch(&channel_.attention, ~lower::attend_cut, __ATOMIC_SEQ_CST);
  set_order(CutOrder::none);
  out_.emplace_back(GoOn{});
}

std::string CutMember::describe() const {
  // Of several threads: the one that keeps the others longest, as far as can be known.
  const auto any = [this](auto is) { return std::ranges::any_of(all_callers(channel_), is); };
  const auto any_is = [&](Situation situation) {
    return any([&](const auto& caller) { return situation_of(caller) == situation; });
  };
  if (any_is(Situation::wants)) return "it is held before a collective call";
  if (any_is(Situation::waits)) return "it waits for a message";
  if (any([](const auto& caller) { return read(caller.in_collective) != 0; })) {
    return "it is in a collective call";
  }
  if (any([](const auto& caller) { return !is_quiet(caller); })) return "it is in a call of MPI";
  if (any_is(Situation::stands) || any_is(Situation::closed)) return "it stands";
  return "it computes, and has not called MPI since the cut was asked for";
}

std::vector<CutMember::Output> CutMember::take() { return std::exchange(out_, {}); }

}  // namespace backstay::image
