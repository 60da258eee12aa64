#include "meet/server.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "base/quiet_thread.h"
#include "meet/link.h"
#include "net/address.h"
#include "net/greeting.h"

namespace backstay::meet {

namespace {

constexpr std::size_t strangers_max = 64;
constexpr double stranger_s = 5;

// In the abstract name space: it goes with the socket.
Result<Fd> listen_here(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  BACKSTAY_CHECK(name.size() + 1 < sizeof address.sun_path);
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.valid() ||
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0)
    return errno_error("make the socket where the ranks meet", errno);
  return socket;
}

std::string addresses_of(const ServerOptions& options, std::uint16_t port) {
  std::string text;
  std::set<std::string> devices = net::device_names();
  if (!options.device.empty()) devices = {options.device};
  if (devices.size() > 1) devices.erase("lo");
  for (const std::string& device : devices) {
    auto address = net::address_of_device(device);
    if (!address.ok()) continue;
    address->set_port(port);
    text += (text.empty() ? "" : ",") + address->text();
  }
  return text;
}

Fd make_event() { return Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)); }

void ring(const Fd& event) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t wrote = ::write(event.get(), &one, sizeof one);
}

struct Visitor {
  std::uint64_t deadline = 0;  // for the greeting
  std::unique_ptr<net::Greeting> greeting;
  std::unique_ptr<Link> link;
  bool ends = false;  // when all is sent

  int socket() const { return link ? link->socket() : greeting->socket(); }
  bool wants_write() const { return link ? link->wants_write() : greeting->wants_write(); }
};

}  // namespace

class Server::Room {
 public:
  Room(Fd listener, std::string where, const net::Secret& known, double patience_s)
      : addresses(std::move(where)),
        secret(known.hex()),
        listener_(std::move(listener)),
        secret_(known),
        patience_s_(patience_s) {}
  ~Room();

  Status open();
  std::optional<Loss> loss() const;

  const std::string addresses;
  const std::string secret;
  const Fd lost = make_event();

 private:
  void serve();
  bool wait();  // false: the end
  int timeout_ms() const;
  void take_visitors();
  void look_at_visitors();
  void greet(MemberId id, Visitor& visitor);
  void hear(MemberId id, Visitor& visitor);
  void say_goodbye(MemberId id);
  void carry_out(const Orders& orders);
  void send(const Send& order);
  void look_at_time();
  void note_loss();

  Fd listener_;
  const net::Secret secret_;
  const double patience_s_;
  const Fd end_ = make_event();
  Meeting meeting_;
  MemberId next_ = 1;
  std::map<MemberId, Visitor> visitors_;
  std::size_t strangers_ = 0;
  std::uint64_t patience_until_ = no_deadline;
  std::vector<pollfd> polled_;
  std::vector<MemberId> polled_ids_;  // of polled_, from the third on
  mutable std::mutex mutex_;          // guards loss_
  std::optional<Loss> loss_;
  std::thread thread_;
};

Status Server::Room::open() {
  if (!end_.valid() || !lost.valid()) return errno_error("make an event for the ranks", errno);
  thread_ = quiet_thread([this] { serve(); });
  return {};
}

Server::Room::~Room() {
  if (!thread_.joinable()) return;
  ring(end_);
  thread_.join();
}

std::optional<Loss> Server::Room::loss() const {
  const std::lock_guard lock(mutex_);
  return loss_;
}

void Server::Room::serve() {
  while (wait()) {
    look_at_visitors();
    if ((polled_[1].revents & POLLIN) != 0) take_visitors();
    look_at_time();
  }
}

bool Server::Room::wait() {
  polled_.assign({{end_.get(), POLLIN, 0}, {-1, POLLIN, 0}});
  if (strangers_ < strangers_max) polled_[1].fd = listener_.get();
  polled_ids_.clear();
  for (const auto& [id, visitor] : visitors_) {
    const auto events = static_cast<short>(visitor.wants_write() ? POLLIN | POLLOUT : POLLIN);
    polled_.push_back({visitor.socket(), events, 0});
    polled_ids_.push_back(id);
  }
  if (::poll(polled_.data(), polled_.size(), timeout_ms()) < 0) {
    for (pollfd& one : polled_) one.revents = 0;
  }
  return (polled_[0].revents & POLLIN) == 0;
}

int Server::Room::timeout_ms() const {
  std::uint64_t first = patience_until_;
  for (const auto& [id, visitor] : visitors_)
    if (visitor.greeting) first = std::min(first, visitor.deadline);
  return milliseconds_until(first);
}

void Server::Room::take_visitors() {
  while (strangers_ < strangers_max) {
    Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.valid()) return;
    tune(socket.get());
    Visitor visitor;
    visitor.deadline = deadline_in(stranger_s);
    visitor.greeting =
        std::make_unique<net::Greeting>(std::move(socket), net::Role::answerer, secret_, "meeting");
    visitors_.emplace(next_++, std::move(visitor));
    ++strangers_;
  }
}

void Server::Room::look_at_visitors() {
  for (std::size_t i = 0; i < polled_ids_.size(); ++i) {
    if (polled_[i + 2].revents == 0) continue;
    const auto found = visitors_.find(polled_ids_[i]);
    if (found == visitors_.end()) continue;
    found->second.link ? hear(found->first, found->second) : greet(found->first, found->second);
  }
}

void Server::Room::greet(MemberId id, Visitor& visitor) {
  if (!visitor.greeting->progress().ok()) return say_goodbye(id);
  if (!visitor.greeting->done()) return;
  visitor.link = std::make_unique<Link>(visitor.greeting->take_socket());
  visitor.greeting.reset();
  --strangers_;
  hear(id, visitor);  // it may have spoken already
}

void Server::Room::hear(MemberId id, Visitor& visitor) {
  std::vector<Message> got;
  Status status = visitor.link->receive(got);
  if (!visitor.ends)
    for (const Message& message : got) carry_out(meeting_.on(id, message));
  if (status.ok()) status = visitor.link->flush();
  if (!status.ok() || (visitor.ends && !visitor.link->wants_write())) say_goodbye(id);
}

void Server::Room::say_goodbye(MemberId id) {
  const auto found = visitors_.find(id);
  if (found == visitors_.end()) return;
  if (found->second.greeting) --strangers_;
  visitors_.erase(found);
  carry_out(meeting_.gone(id));
}

// The owner knows of a loss before a rank does.
void Server::Room::carry_out(const Orders& orders) {
  note_loss();
  for (const Order& order : orders) {
    if (const auto* one = std::get_if<Send>(&order)) send(*one);
    const auto* end = std::get_if<End>(&order);
    if (end == nullptr) continue;
    if (const auto found = visitors_.find(end->member); found != visitors_.end())
      found->second.ends = true;
  }
}

// One that cannot be sent to is found by the next look: its socket is readable, or is shut here.
void Server::Room::send(const Send& order) {
  const auto found = visitors_.find(order.to);
  if (found == visitors_.end()) return;
  Link& link = *found->second.link;
  if (!link.send(order.message).ok() || !link.flush().ok()) ::shutdown(link.socket(), SHUT_RDWR);
}

void Server::Room::look_at_time() {
  const std::uint64_t now = system_clock().monotonic_ns();
  std::vector<MemberId> late;
  for (const auto& [id, visitor] : visitors_)
    if (visitor.greeting && now >= visitor.deadline) late.push_back(id);
  for (const MemberId id : late) say_goodbye(id);
  if (!meeting_.gathers()) {
    patience_until_ = no_deadline;
  } else if (patience_until_ == no_deadline) {
    patience_until_ = deadline_in(patience_s_);
  } else if (now >= patience_until_) {
    carry_out(meeting_.patience_is_over());
  }
}

void Server::Room::note_loss() {
  if (!meeting_.loss()) return;
  const std::lock_guard lock(mutex_);
  if (loss_) return;
  loss_ = meeting_.loss();
  ring(lost);
}

Server::Server(std::unique_ptr<Room> room) : room_(std::move(room)) {}
Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::start(const ServerOptions& options) {
  Fd listener;
  std::string addresses;
  if (options.several_hosts) {
    if (!options.device.empty()) BACKSTAY_TRY(net::address_of_device(options.device));
    BACKSTAY_ASSIGN(listener, net::listen_at(nullptr, 0));
    addresses = addresses_of(options, net::own_address(listener.get()).port());
  } else {
    std::uint64_t name = 0;
    net::fill_random(&name, sizeof name);
    addresses = fmt::format("unix:backstay-meeting-{:016x}", name);
    BACKSTAY_ASSIGN(listener, listen_here(addresses.substr(5)));
  }
  auto room = std::make_unique<Room>(std::move(listener), std::move(addresses),
                                     net::Secret::random(), options.patience_s);
  BACKSTAY_TRY(room->open());
  return std::unique_ptr<Server>(new Server(std::move(room)));
}

const std::string& Server::addresses() const { return room_->addresses; }
const std::string& Server::secret() const { return room_->secret; }
int Server::descriptor() const { return room_->lost.get(); }
std::optional<Loss> Server::loss() const { return room_->loss(); }

}  // namespace backstay::meet
