#include "agent/group/fleet.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace backstay::agent {

namespace {

tree::Settings settings_of(const FleetFacts& facts, const Mesh& mesh) {
  tree::Settings settings;
  settings.run = facts.self.run;
  settings.nodes = facts.members;
  settings.arity = facts.arity;
  settings.address_of = [&mesh](NodeId node) { return mesh.address_of(node); };
  return settings;
}

}  // namespace

Result<std::unique_ptr<Fleet>> Fleet::create(FleetFacts facts,
                                             std::unique_ptr<net::Transport> transport,
                                             const std::vector<tree::Remembered>& remembered,
                                             FleetOwner& owner) {
  std::unique_ptr<Fleet> fleet(new Fleet(facts, std::move(transport), remembered, owner));
  if (facts.members > 1) {
    BACKSTAY_TRY(fleet->open_descriptors());
  } else {
    fleet->started_ = true;
    fleet->domains_.resize(1);
    fleet->tree_.start();
  }
  return fleet;
}

Fleet::Fleet(FleetFacts facts, std::unique_ptr<net::Transport> transport,
             const std::vector<tree::Remembered>& remembered, FleetOwner& owner)
    : facts_(facts),
      owner_(owner),
      mesh_(std::move(transport), facts.self, facts.members, *this),
      tree_(settings_of(facts, mesh_), {facts.self.node, facts.self.incarnation, mesh_.address()},
            facts.self.incarnation ^ facts.self.node, remembered) {}

// Neighbours look for each other at once. The owner hears nothing any more: it may be half gone
// itself.
Fleet::~Fleet() {
  if (!started_ || facts_.members == 1) return;
  tree_.leave();
  for (const tree::Output& output : tree_.take()) {
    if (const auto* send = std::get_if<tree::Send>(&output)) carry_out(*send);
  }
  mesh_.push();
}

Status Fleet::open_descriptors() {
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
  for (const int fd : {timer_.get(), mesh_.descriptor()}) {
    epoll_event event{EPOLLIN, {.fd = fd}};
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
      return errno_error("watch the network", errno);
    }
  }
  return {};
}

Status Fleet::know(const wire::Neighbours& neighbours) {
  domains_.resize(facts_.members);
  for (const wire::Neighbour& one : neighbours.neighbours) {
    if (one.node >= facts_.members || one.address.empty() ||
        one.address.size() > tree::Tree::address_bytes_max) {
      return Error(Code::invalid,
                   fmt::format("agent {} at '{}' is none of the {} agents of this run", one.node,
                               one.address, facts_.members));
    }
    domains_[one.node] = one.domain;
    if (one.node != facts_.self.node) mesh_.know(one.node, one.address);
  }
  if (!neighbours.last) return {};
  for (NodeId node = 0; node < facts_.members; ++node) {
    if (node == facts_.self.node || !mesh_.address_of(node).empty()) continue;
    return Error(Code::invalid, fmt::format("no address is known for agent {}", node));
  }
  if (!std::exchange(started_, true)) tree_.start();
  for (const auto& [node, join] : std::exchange(early_, {})) tree_.receive(node, join);
  carry_out();
  return {};
}

std::uint32_t Fleet::present() const { return static_cast<std::uint32_t>(tree_.present().count()); }

void Fleet::held(VersionNumber version, Level level) {
  tree_.held(version, level);
  carry_out();
}

void Fleet::recorded(tree::RunVersion version, Level level) {
  tree_.recorded(version, level);
  carry_out();
}

void Fleet::enter(std::uint64_t barrier, std::uint64_t round) {
  tree_.enter(barrier, round);
  carry_out();
}

Status Fleet::publish(const std::string& name, const std::string& value) {
  const Status published = tree_.publish(name, value);
  carry_out();
  return published;
}

void Fleet::progress() {
  mesh_.progress();
  tick_if_due();
  carry_out();
}

void Fleet::tick_if_due() {
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
void Fleet::carry_out() {
  if (std::exchange(carrying_out_, true)) return;
  for (auto outputs = tree_.take(); !outputs.empty(); outputs = tree_.take()) {
    for (const tree::Output& output : outputs) {
      std::visit([this](const auto& one) { carry_out(one); }, output);
    }
  }
  carrying_out_ = false;
}

void Fleet::carry_out(const tree::Send& send) {
  mesh_.send_tree(send.to.node, send.to.address, send.message);
}

void Fleet::tree_message(NodeId from, const wire::tree::Message& message) {
  const auto* join = std::get_if<wire::tree::Join>(&message);
  if (!started_ && join) early_.insert_or_assign(from, *join);
  if (!started_) return;
  tree_.receive(from, message);
  carry_out();
}

void Fleet::message(NodeId from, const wire::peer::Message& message) {
  if (!retired_) owner_.files().message(from, message);
}

void Fleet::offered(NodeId from, std::uint64_t ticket, std::uint64_t bytes, OfferFrom offer) {
  if (retired_) return mesh_.refuse(offer);
  owner_.files().offered(from, ticket, bytes, offer);
}

void Fleet::reached(NodeId peer) {
  if (!retired_) owner_.reached(peer);
}

void Fleet::lost(NodeId peer, const Error& why) {
  if (started_) tree_.unreachable(peer);
  if (!retired_) owner_.files().lost(peer, why);
  carry_out();
}

void Fleet::carry_out(const tree::Released& it) {
  if (!retired_) owner_.released(it.barrier, it.round);
}

void Fleet::carry_out(const tree::Fact& fact) {
  if (!retired_) owner_.fact(fact);
}

void Fleet::carry_out(const tree::Membership& change) {
  if (!retired_) owner_.membership(change);
}

}  // namespace backstay::agent
