// Reports and beats. A report goes up and a beat goes down each link once a tick, and at once if
// something has arrived that others wait for. Each holds all changes since the last one that the
// other side has confirmed. So the next message makes good a lost one, a doubled one changes
// nothing, and a message that a later one overtook is ignored.
#include "tree/tree.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace backstay::tree {

using wire::tree::Beat;
using wire::tree::Report;

Tree::Tree(Settings settings, Self self, std::uint64_t seed,
           const std::vector<Remembered>& remembered)
    : settings_(std::move(settings)),
      self_(std::move(self)),
      place_(place_of(self_.node, settings_.nodes, settings_.arity)),
      random_(seed),
      floors_(self_.node, settings_.nodes, changes_),
      commit_(settings_.run, floors_),
      failure_detector_(settings_.nodes, settings_.grace_ticks, changes_),
      search_(self_.node, settings_.nodes, place_, settings_.address_of, random_) {
  BACKSTAY_CHECK(settings_.address_of != nullptr);
  for (const Remembered& version : remembered) commit_.remember(version);
}

void Tree::start() {
  failure_detector_.become_root();
  search_.begin({});
  seek();
  flush();
}

void Tree::tick() {
  drop_silent();
  search_.tick();
  seek();
  if (parent_ && !at_home() && !attempt_ && home_in_ticks_-- == 0) {
    home_in_ticks_ = settings_.home_ticks + random_.below(settings_.home_ticks);
    ask(peer_of(place_.ancestors.back()));
  }
  flush();
  if (is_root()) {
    failure_detector_.seen(present_);
    failure_detector_.tick_at_root();
  }
  if (parent_) {
    parent_->facts_sent = parent_->facts_confirmed;
    tell_parent();
    tell_facts(*parent_);
  }
  for (auto& [node, child] : children_) {
    child.facts_sent = child.facts_confirmed;
    tell_child(child);
    tell_facts(child);
  }
  tell_membership();
}

void Tree::receive(NodeId from, const Message& message) {
  std::visit([&](const auto& one) { on(from, one); }, message);
  flush();
}

void Tree::held(VersionNumber version, Level level) {
  commit_.held(version, level);
  flush();
}

void Tree::recorded(RunVersion version, Level level) {
  commit_.recorded(version, level);
  flush();
}

void Tree::enter(std::uint64_t barrier, std::uint64_t round) {
  floors_.raise_own({static_cast<std::uint32_t>(Kind::barrier), settings_.run, barrier}, round);
  flush();
}

Status Tree::publish(const std::string& name, const std::string& value) {
  BACKSTAY_TRY(facts_.publish({self_.node, self_.incarnation, ++facts_published_, name, value}));
  flush();
  return {};
}

std::vector<Output> Tree::take() { return std::exchange(out_, {}); }

// --- messages of neighbours ----------------------------------------------------------------------

void Tree::on(NodeId from, const Report& report) {
  Child* child = child_of(report.link);
  if (child == nullptr) {
    send(peer_of(from), wire::tree::Leave{report.link});
    return;
  }
  child->silent_ticks = 0;
  if (report.change < child->heard) return;  // a later one was here already
  child->heard = report.change;
  child->confirmed = std::max(child->confirmed, report.seen);
  child->facts_confirmed = std::max(child->facts_confirmed, report.facts_seen);
  if (!report.present.empty()) {
    child->present = NodeSet::of(report.present);
    children_changed_ = true;
  }
  for (const auto& row : report.rows) floors_.child_row(report.link.child, row);
  for (const Peer& peer : report.lower_roots) {
    if (peer.address.size() > address_bytes_max) continue;
    if (parent_) {
      lower_root_ = peer;
    } else if (peer.node < self_.node) {
      search_.hint(peer);
      seek();
    }
  }
}

void Tree::on(NodeId from, const Beat& beat) {
  if (attempt_ && beat.link == attempt_->link) {  // the answer itself was lost
    accept({attempt_->peer, attempt_->link}, beat.path, beat.age);
  }
  if (!parent_ || beat.link != parent_->link) {
    send(peer_of(from), wire::tree::Leave{beat.link});
    return;
  }
  parent_->silent_ticks = 0;
  if (beat.change < parent_->heard) return;
  if (!may_follow(beat.path, beat.age)) {
    send(parent_->peer, wire::tree::Leave{beat.link});
    lose_parent(false);
    return;
  }
  parent_->heard = beat.change;
  parent_->confirmed = std::max(parent_->confirmed, beat.seen);
  floors_.rows_arrived(parent_->confirmed);
  parent_->facts_confirmed = std::max(parent_->facts_confirmed, beat.facts_seen);
  path_ = beat.path;
  path_age_ = beat.age;
  for (const auto& floor : beat.floors) floors_.raise_floor(floor.key, floor.floor);
  if (beat.lost_changed) failure_detector_.parent_says(NodeSet::of(beat.lost));
}

void Tree::on(NodeId, const wire::tree::Facts& facts) {
  Neighbour* neighbour = neighbour_of(facts.link);
  if (neighbour == nullptr || facts.after > neighbour->facts_heard) return;  // comes again in order
  for (const Fact& fact : facts.facts) {
    if (facts_.learn(fact, facts.link)) out_.emplace_back(fact);
  }
  neighbour->facts_heard = std::max(neighbour->facts_heard, facts.upto);
  if (parent_ && neighbour == &*parent_) {
    tell_parent();
  } else {
    tell_child(children_.at(facts.link.child));
  }
}

// --- messages to them ----------------------------------------------------------------------------

// After every input: sends what has changed to the nodes that wait for it.
void Tree::flush() {
  const std::uint64_t before = present_changed_;
  if (children_changed_) count_present();
  const bool all_present =
      present_changed_ != before && present_.contains(NodeSet::range(self_.node, place_.subtree));
  const bool complete = floors_.take_complete(members_below_);
  if (parent_ && (all_present || complete)) tell_parent();

  const auto risen = floors_.take_risen();
  std::vector<Record> record;
  std::vector<Announce> announce;
  for (const auto& floor : risen) {
    commit_.risen(floor, record, announce);
    if (floor.key.kind == static_cast<std::uint32_t>(Kind::barrier)) {
      out_.emplace_back(Released{floor.key.number, floor.floor});
    }
  }
  out_.insert(out_.end(), record.begin(), record.end());
  out_.insert(out_.end(), announce.begin(), announce.end());

  // The loss of a root is reported at once, so that no node joins below it; a better root can wait
  // for the tick.
  const bool root_gone = root() > std::exchange(root_told_, root());
  for (auto& [node, child] : children_) {
    if (root_gone || !risen.empty()) tell_child(child);
    tell_facts(child);
  }
  if (parent_) tell_facts(*parent_);
  tell_membership();
}

void Tree::count_present() {
  children_changed_ = false;
  NodeSet present = NodeSet::range(self_.node, 1);
  for (const auto& [node, child] : children_) present.add(child.present);
  if (is_root()) failure_detector_.seen(present);
  if (present == present_) return;
  present_ = std::move(present);
  members_below_ = intersection(present_, NodeSet::range(0, settings_.nodes));
  present_changed_ = changes_.next();
}

void Tree::tell_parent() {
  Report report;
  report.link = parent_->link;
  report.change = changes_.latest;
  report.seen = parent_->heard;
  if (present_changed_ > parent_->confirmed) {
    report.present = present_.ranges(wire::list_entries_max);
  }
  report.rows = floors_.rows_since(parent_->confirmed);
  floors_.rows_sent();
  report.facts_seen = parent_->facts_heard;
  if (lower_root_) report.lower_roots.push_back(*std::exchange(lower_root_, std::nullopt));
  send(parent_->peer, std::move(report));
}

void Tree::tell_child(Child& child) {
  Beat beat;
  beat.link = child.link;
  beat.change = changes_.latest;
  beat.seen = child.heard;
  beat.path = path_below();
  beat.age = path_age_;
  beat.floors = floors_.floors_since(child.confirmed);
  beat.lost_changed = failure_detector_.changed() > child.confirmed;
  if (beat.lost_changed) beat.lost = failure_detector_.lost().ranges(wire::list_entries_max);
  beat.facts_seen = child.facts_heard;
  send(child.peer, std::move(beat));
}

// One batch at a time: the next one waits until this one is confirmed.
void Tree::tell_facts(Neighbour& neighbour) {
  if (neighbour.facts_sent > neighbour.facts_confirmed) return;
  auto batch = facts_.after(neighbour.facts_confirmed, neighbour.link);
  if (batch.facts.empty()) return;
  neighbour.facts_sent = batch.upto;
  send(neighbour.peer, std::move(batch));
}

void Tree::tell_membership() {
  if (lost_told_ == failure_detector_.lost()) return;
  Membership change{failure_detector_.lost(), lost_told_};
  change.lost.remove(lost_told_);
  change.back.remove(failure_detector_.lost());
  lost_told_ = failure_detector_.lost();
  out_.emplace_back(std::move(change));
}

}  // namespace backstay::tree
