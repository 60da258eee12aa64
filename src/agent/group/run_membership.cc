#include "agent/group/run_membership.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace backstay::agent {

namespace {

tree::Settings settings_of(const MembershipFacts& facts, const PeerConnections& peer_connections) {
  tree::Settings settings;
  settings.run = facts.self.run;
  settings.nodes = facts.members;
  settings.arity = facts.arity;
  settings.address_of = [&peer_connections](NodeId node) {
    return peer_connections.address_of(node);
  };
  return settings;
}

}  // namespace

Result<std::unique_ptr<RunMembership>> RunMembership::create(
    MembershipFacts facts, std::unique_ptr<net::Transport> transport,
    const std::vector<tree::Remembered>& remembered, MembershipOwner& owner) {
  std::unique_ptr<RunMembership> run_membership(
      new RunMembership(facts, std::move(transport), remembered, owner));
  if (facts.members > 1) {
    BACKSTAY_TRY(run_membership->open_descriptors());
  } else {
    run_membership->started_ = true;
    run_membership->domains_.resize(1);
    run_membership->tree_.start();
  }
  return run_membership;
}

RunMembership::RunMembership(MembershipFacts facts, std::unique_ptr<net::Transport> transport,
                             const std::vector<tree::Remembered>& remembered,
                             MembershipOwner& owner)
    : facts_(facts),
      owner_(owner),
      peer_connections_(std::move(transport), facts.self, facts.members, *this),
      tree_(settings_of(facts, peer_connections_),
            {facts.self.node, facts.self.incarnation, peer_connections_.address()},
            facts.self.incarnation ^ facts.self.node, remembered) {}

// Neighbours look for each other at once. The owner hears nothing any more: it may be half gone
// itself.
RunMembership::~RunMembership() {
  if (!started_ || facts_.members == 1) return;
  tree_.leave();
  for (const tree::Output& output : tree_.take()) {
    if (const auto* send = std::get_if<tree::Send>(&output)) carry_out(*send);
  }
  peer_connections_.push();
}

Status RunMembership::open_descriptors() {
  epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  timer_.reset(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!epoll_.valid() || !timer_.valid()) return errno_error("make a network descriptor", errno);
  itimerspec when{};
  const std::uint64_t ns = heartbeat_ns();
  next_tick_ns_ = facts_.clock->monotonic_ns() + ns;
  when.it_interval = {static_cast<time_t>(ns / 1'000'000'000),
                      static_cast<long>(ns % 1'000'000'000)};
  when.it_value = when.it_interval;
  ::timerfd_settime(timer_.get(), 0, &when, nullptr);
  for (const int fd : {timer_.get(), peer_connections_.descriptor()}) {
    epoll_event event{EPOLLIN, {.fd = fd}};
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
      return errno_error("watch the network", errno);
    }
  }
  return {};
}

Status RunMembership::know(const wire::Neighbours& neighbours) {
  domains_.resize(facts_.members);
  for (const wire::Neighbour& one : neighbours.neighbours) {
    if (one.node >= facts_.members || one.address.empty() ||
        one.address.size() > tree::Tree::address_bytes_max) {
      return Error(Code::invalid,
                   fmt::format("agent {} at '{}' is none of the {} agents of this run", one.node,
                               one.address, facts_.members));
    }
    domains_[one.node] = one.domain;
    if (one.node != facts_.self.node) peer_connections_.know(one.node, one.address);
  }
  if (!neighbours.last) return {};
  for (NodeId node = 0; node < facts_.members; ++node) {
    if (node == facts_.self.node || !peer_connections_.address_of(node).empty()) continue;
    return Error(Code::invalid, fmt::format("no address is known for agent {}", node));
  }
  if (!std::exchange(started_, true)) tree_.start();
  for (const auto& [node, join] : std::exchange(early_, {})) tree_.receive(node, join);
  carry_out();
  return {};
}

std::uint32_t RunMembership::present() const {
  return static_cast<std::uint32_t>(tree_.present().count());
}

void RunMembership::held(VersionNumber version, Level level) {
  tree_.held(version, level);
  carry_out();
}

void RunMembership::recorded(tree::RunVersion version, Level level) {
  tree_.recorded(version, level);
  carry_out();
}

void RunMembership::enter(std::uint64_t barrier, std::uint64_t round) {
  tree_.enter(barrier, round);
  carry_out();
}

Status RunMembership::publish(const std::string& name, const std::string& value) {
  const Status published = tree_.publish(name, value);
  carry_out();
  return published;
}

void RunMembership::progress() {
  peer_connections_.progress();
  tick_if_due();
  carry_out();
}

void RunMembership::tick_if_due() {
  if (!timer_.valid()) return;
  std::uint64_t passed = 0;
  [[maybe_unused]] const auto read_bytes = ::read(timer_.get(), &passed, sizeof passed);
  const std::uint64_t now = facts_.clock->monotonic_ns();
  if (now < next_tick_ns_) return;
  // One tick, however many were missed: an agent that was stopped has not waited for others
  // meanwhile.
  const std::uint64_t missed = (now - next_tick_ns_) / heartbeat_ns();
  next_tick_ns_ += (missed + 1) * heartbeat_ns();
  if (started_) tree_.tick();
  owner_.ticked();
}

// The owner may call back while it carries something out.
void RunMembership::carry_out() {
  if (std::exchange(carrying_out_, true)) return;
  for (auto outputs = tree_.take(); !outputs.empty(); outputs = tree_.take()) {
    for (const tree::Output& output : outputs) {
      std::visit([this](const auto& one) { carry_out(one); }, output);
    }
  }
  carrying_out_ = false;
}

void RunMembership::carry_out(const tree::Send& send) {
  peer_connections_.send_tree(send.to.node, send.to.address, send.message);
}

void RunMembership::tree_message(NodeId from, const wire::tree::Message& message) {
  const auto* join = std::get_if<wire::tree::Join>(&message);
  if (!started_ && join) early_.insert_or_assign(from, *join);
  if (!started_) return;
  tree_.receive(from, message);
  carry_out();
}

void RunMembership::message(NodeId from, const wire::peer::Message& message) {
  if (!retired_) owner_.files().message(from, message);
}

void RunMembership::offered(NodeId from, std::uint64_t ticket, std::uint64_t bytes,
                            OfferFrom offer) {
  if (retired_) return peer_connections_.refuse(offer);
  owner_.files().offered(from, ticket, bytes, offer);
}

void RunMembership::reached(NodeId peer) {
  if (!retired_) owner_.reached(peer);
}

void RunMembership::lost(NodeId peer, const Error& why) {
  if (started_) tree_.unreachable(peer);
  if (!retired_) owner_.files().lost(peer, why);
  carry_out();
}

void RunMembership::carry_out(const tree::Released& it) {
  if (!retired_) owner_.released(it.barrier, it.round);
}

void RunMembership::carry_out(const tree::Fact& fact) {
  if (!retired_) owner_.fact(fact);
}

void RunMembership::carry_out(const tree::Membership& change) {
  if (!retired_) owner_.membership(change);
}

}  // namespace backstay::agent
