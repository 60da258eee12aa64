// Links of the tree: how nodes become children of others, and what happens when a link ends.
//
// Every node without a parent is the root of its own tree and asks others to take it, with its
// whole subtree, as a child; so a start, the death of an inner node, the death of the root and the
// end of a partition are one case: trees that merge.
//  1. A tree joins only below a root with a lower number. Of two trees that ask each other at most
//     one is accepted, and of two trees that can talk the one with the higher root can always join
//     the other.
//  2. A node's knowledge of its root may be old, so a ring of parents can still arise. Each beat
//     carries the path from the root and its age. A node leaves its parent if it finds itself in
//     the parent's path, or if its path has become too old: the path of a root that has gone
//     expires, because no node can renew it.
//  3. No node takes more than arity + strangers_max children. Places for the children that belong
//     below it are kept free; a stranger that finds no place is sent on to children.
//  4. A node that is not at home asks there from time to time and moves once it may, so that the
//     tree regains its shape.
#include <algorithm>

#include "tree/tree.h"

namespace backstay::tree {

using wire::tree::Accept;
using wire::tree::Join;
using wire::tree::Leave;
using wire::tree::Refuse;
using wire::tree::Why;

namespace {

constexpr std::size_t depth_max = 64;
constexpr std::size_t suggestions = 3;

bool has(const std::vector<NodeId>& nodes, NodeId node) {
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

}  // namespace

// --- as a child ----------------------------------------------------------------------------------

// A node may move below roots with numbers under this one.
NodeId Tree::roots_end() const { return parent_ ? root() + 1 : self_.node; }

void Tree::seek() {
  if (parent_ || attempt_) return;
  if (const auto peer = search_.next()) ask(*peer);
}

void Tree::ask(const Peer& peer) {
  const LinkId link{self_.node, self_.incarnation, ++attempts_};
  attempt_ = Attempt{peer, link};
  send(peer,
       Join{link, settings_.run, settings_.nodes, settings_.arity, roots_end(), self_.address});
}

bool Tree::may_follow(const std::vector<NodeId>& path, std::uint32_t age) const {
  return !path.empty() && path.size() <= depth_max && !has(path, self_.node) &&
         age <= settings_.age_ticks_max;
}

void Tree::on(NodeId from, const Accept& accepted) {
  if (parent_ && accepted.link == parent_->link) return;
  if (!attempt_ || accepted.link != attempt_->link) {
    send(peer_of(from), Leave{accepted.link});
    return;
  }
  accept({attempt_->peer, attempt_->link}, accepted.path, accepted.age);
}

void Tree::accept(Neighbour parent, const std::vector<NodeId>& path, std::uint32_t age) {
  attempt_.reset();
  if (!may_follow(path, age) || path.front() >= roots_end()) {
    send(parent.peer, Leave{parent.link});
    seek();
    return;
  }
  if (parent_) send(parent_->peer, Leave{parent_->link});
  parent_ = std::move(parent);
  ++links_changed_;
  path_ = path;
  path_age_ = age;
  home_in_ticks_ = settings_.home_ticks;
  tell_parent();
}

void Tree::on(NodeId, const Refuse& refused) {
  if (!attempt_ || refused.link != attempt_->link) return;
  attempt_.reset();
  if (!parent_) {
    for (const Peer& peer : refused.instead) search_.hint(peer);
  }
  seek();
}

void Tree::lose_parent(bool silent) {
  const NodeId lost = parent_->peer.node;
  parent_.reset();
  ++links_changed_;
  attempt_.reset();
  path_age_ = 0;
  search_.begin(std::exchange(path_, {}), silent ? std::optional(lost) : std::nullopt);
  failure_detector_.become_root();
  seek();
}

bool Tree::at_home() const {
  if (!parent_) return place_.ancestors.empty();
  return !place_.ancestors.empty() && parent_->peer.node == place_.ancestors.back();
}

// --- as a parent ---------------------------------------------------------------------------------

void Tree::on(NodeId from, const Join& join) {
  if (join.link.child != from || from == self_.node) return;
  if (join.address.size() > address_bytes_max) return;
  const auto known = children_.find(from);
  if (known != children_.end() && join.link < known->second.link) return;  // late
  if (known != children_.end() && join.link == known->second.link) {       // doubled
    send(known->second.peer, Accept{join.link, path_below(), path_age_});
    return;
  }
  if (const auto why = reason_to_refuse(join)) {
    refuse(from, join, *why);
  } else {
    adopt(join);
  }
}

std::optional<Why> Tree::reason_to_refuse(const Join& join) const {
  if (join.run != settings_.run || join.nodes != settings_.nodes || join.arity != settings_.arity) {
    return Why::other_run;
  }
  if (has(path_, join.link.child)) return Why::own_subtree;
  if (root() >= join.below) return Why::higher_root;
  if (path_.size() + 1 >= depth_max) return Why::too_deep;
  if (!has_place_for(join.link.child)) return Why::full;
  return std::nullopt;
}

bool Tree::has_place_for(NodeId child) const {
  if (has(place_.children, child) || children_.count(child) > 0) return true;
  const auto strangers = std::count_if(children_.begin(), children_.end(), [&](const auto& one) {
    return !has(place_.children, one.first);
  });
  const std::size_t places = settings_.arity - place_.children.size() + settings_.strangers_max;
  return static_cast<std::size_t>(strangers) < places;
}

void Tree::refuse(NodeId from, const Join& join, Why why) {
  Refuse answer{join.link, static_cast<std::uint32_t>(why), {}};
  if (why == Why::full && !children_.empty()) {
    for (std::size_t i = 0; i < suggestions; ++i) {
      const auto index = random_.below(static_cast<std::uint32_t>(children_.size()));
      answer.instead.push_back(std::next(children_.begin(), index)->second.peer);
    }
  }
  if (why == Why::higher_root && from < root()) {
    if (parent_) {
      lower_root_ = Peer{from, join.address};
    } else {
      search_.hint({from, join.address});
    }
  }
  send({from, join.address}, std::move(answer));
  seek();
}

void Tree::adopt(const Join& join) {
  const NodeId node = join.link.child;
  drop_child(node);
  Child& child = children_[node];
  ++links_changed_;
  child.peer = {node, join.address};
  child.link = join.link;
  send(child.peer, Accept{join.link, path_below(), path_age_});
}

void Tree::drop_child(NodeId child) {
  if (children_.erase(child) == 0) return;
  floors_.drop_child(child);
  children_changed_ = true;
  ++links_changed_;
}

// --- both ----------------------------------------------------------------------------------------

void Tree::on(NodeId, const Leave& leave) {
  if (parent_ && leave.link == parent_->link) {
    lose_parent(false);
  } else if (attempt_ && leave.link == attempt_->link) {
    attempt_.reset();
    seek();
  } else if (child_of(leave.link) != nullptr) {
    drop_child(leave.link.child);
  }
}

void Tree::unreachable(NodeId peer) {
  if (attempt_ && attempt_->peer.node == peer) {
    attempt_.reset();
    seek();
  }
  drop_child(peer);
  if (parent_ && parent_->peer.node == peer) lose_parent(true);
  flush();
}

void Tree::leave() {
  if (parent_) send(parent_->peer, Leave{parent_->link});
  for (const auto& [node, child] : children_) send(child.peer, Leave{child.link});
}

void Tree::drop_silent() {
  std::vector<NodeId> silent;
  for (auto& [node, child] : children_) {
    if (++child.silent_ticks > settings_.lost_ticks) silent.push_back(node);
  }
  for (const NodeId node : silent) drop_child(node);
  if (attempt_ && ++attempt_->ticks > settings_.answer_ticks) attempt_.reset();
  if (!parent_) return;
  ++path_age_;
  if (++parent_->silent_ticks > settings_.lost_ticks) {
    lose_parent(true);
  } else if (path_age_ > settings_.age_ticks_max) {
    send(parent_->peer, Leave{parent_->link});
    lose_parent(false);
  }
}

Links Tree::links() const {
  Links links;
  if (parent_) links.parent = parent_->peer.node;
  for (const auto& [node, child] : children_) links.children.push_back(node);
  links.path = path_;
  links.changes = links_changed_;
  return links;
}

Tree::Child* Tree::child_of(const LinkId& link) {
  const auto found = children_.find(link.child);
  return found != children_.end() && found->second.link == link ? &found->second : nullptr;
}

Tree::Neighbour* Tree::neighbour_of(const LinkId& link) {
  return parent_ && parent_->link == link ? &*parent_ : child_of(link);
}

Peer Tree::peer_of(NodeId node) const {
  return {node, node < settings_.nodes ? settings_.address_of(node) : std::string()};
}

std::vector<NodeId> Tree::path_below() const {
  std::vector<NodeId> path = path_;
  path.push_back(self_.node);
  return path;
}

bool Tree::needs(NodeId peer) const {
  return (parent_ && parent_->peer.node == peer) || children_.count(peer) > 0 ||
         (attempt_ && attempt_->peer.node == peer);
}

std::size_t Tree::connections() const {
  const bool asking = attempt_ && children_.count(attempt_->peer.node) == 0 &&
                      !(parent_ && parent_->peer.node == attempt_->peer.node);
  return children_.size() + (parent_ ? 1 : 0) + (asking ? 1 : 0);
}

}  // namespace backstay::tree
