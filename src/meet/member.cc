#include "meet/member.h"

#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "meet/server.h"
#include "net/address.h"
#include "net/greeting.h"

namespace backstay::meet {

namespace {

constexpr double connect_s = 10;  // to each address, with the handshake

struct Target {
  net::SocketAddress address;
  std::string text;
};

Result<Target> target_of(const std::string& text) {
  Target target{{}, text};
  if (text.starts_with("unix:")) {
    const std::string name = text.substr(5);
    auto& address = reinterpret_cast<sockaddr_un&>(target.address.storage);
    if (name.empty() || name.size() + 1 >= sizeof address.sun_path)
      return Error(Code::invalid, fmt::format("'{}' is no address of a meeting", text));
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    target.address.length =
        static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    return target;
  }
  BACKSTAY_ASSIGN(const net::HostPort parts, net::split_address(text));
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(parts.host.c_str(), parts.port.c_str(), &hints, &found) != 0)
    return Error(Code::invalid, fmt::format("'{}' is no address of a meeting", text));
  std::memcpy(&target.address.storage, found->ai_addr, found->ai_addrlen);
  target.address.length = found->ai_addrlen;
  ::freeaddrinfo(found);
  return target;
}

Error unreachable(const Target& target, int sys_errno) {
  return {Code::agent_lost, fmt::format("{}: {}", target.text, std::strerror(sys_errno)),
          sys_errno};
}

Status wait_for(int socket, short events, std::uint64_t deadline) {
  pollfd look{socket, events, 0};
  int ready = 0;
  do {
    ready = ::poll(&look, 1, milliseconds_until(deadline));
  } while (ready < 0 && errno == EINTR);
  if (ready > 0) return {};
  return Error(Code::agent_lost, fmt::format("no answer within {} s", connect_s));
}

Result<Fd> dial(const Target& target, std::uint64_t deadline) {
  const int family = target.address.storage.ss_family;
  Fd socket(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return unreachable(target, errno);
  if (::connect(socket.get(), target.address.get(), target.address.length) == 0) return socket;
  if (errno != EINPROGRESS && errno != EAGAIN) return unreachable(target, errno);
  if (const Status waited = wait_for(socket.get(), POLLOUT, deadline); !waited.ok())
    return waited.error().context(target.text);
  int failed = 0;
  socklen_t size = sizeof failed;
  ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &failed, &size);
  if (failed != 0) return unreachable(target, failed);
  return socket;
}

// Dials and proves that both know the secret.
Result<Fd> reach(const Target& target, const net::Secret& secret) {
  const std::uint64_t deadline = deadline_in(connect_s);
  BACKSTAY_ASSIGN(Fd socket, dial(target, deadline));
  tune(socket.get());
  net::Greeting greeting(std::move(socket), net::Role::caller, secret, "rank");
  for (;;) {
    if (const Status moved = greeting.progress(); !moved.ok())
      return moved.error().context(target.text);
    if (greeting.done()) return greeting.take_socket();
    const auto events = static_cast<short>(greeting.wants_write() ? POLLIN | POLLOUT : POLLIN);
    if (const Status waited = wait_for(greeting.socket(), events, deadline); !waited.ok())
      return waited.error().context(target.text);
  }
}

Result<std::string> variable(const Variables& variables, const char* name) {
  if (const char* text = variables(name); text != nullptr && *text != '\0')
    return std::string(text);
  return Error(Code::invalid,
               fmt::format("{} is not set here: the launcher does not pass the variables of "
                           "`backstay run` on to this host",
                           name));
}

Result<Fd> reach_any(const std::string& addresses, const net::Secret& secret) {
  std::optional<Error> last;
  for (std::size_t at = 0; at < addresses.size();) {
    const std::size_t comma = std::min(addresses.find(',', at), addresses.size());
    const auto target = target_of(addresses.substr(at, comma - at));
    auto reached = target.ok() ? reach(*target, secret) : Result<Fd>(target.error());
    if (reached.ok()) return reached;
    last = reached.error();
    at = comma + 1;
  }
  if (!last) return Error(Code::invalid, "no address of a meeting is given");
  return last->context("`backstay run` cannot be reached, where the ranks meet");
}

}  // namespace

Result<std::unique_ptr<Member>> Member::join(const Variables& variables, const Place& place,
                                             const std::string& host) {
  BACKSTAY_ASSIGN(const std::string addresses, variable(variables, addresses_variable));
  BACKSTAY_ASSIGN(const std::string digits, variable(variables, secret_variable));
  BACKSTAY_ASSIGN(const net::Secret secret, net::Secret::from_hex(digits));
  BACKSTAY_ASSIGN(Fd socket, reach_any(addresses, secret));
  std::unique_ptr<Member> member(new Member(std::move(socket)));
  member->place_ = place;
  BACKSTAY_TRY(member->tell(Join{place.rank, place.ranks, host}));
  BACKSTAY_ASSIGN(const Message answer, member->hear());
  if (const auto* placed = std::get_if<Placed>(&answer)) {
    member->placed_ = *placed;
    return member;
  }
  return Error(Code::protocol, "the meeting answers what was not asked");
}

backstay_group Member::group() {
  backstay_group group{};
  group.context = this;
  group.rank = static_cast<int>(place_.rank);
  group.ranks = static_cast<int>(place_.ranks);
  group.local_rank = static_cast<int>(placed_.local_rank);
  group.local_ranks = static_cast<int>(placed_.local_ranks);
  group.node = static_cast<int>(placed_.node);
  group.nodes = static_cast<int>(placed_.nodes);
  group.broadcast = [](void* context, void* data, std::size_t bytes, int root) {
    auto& me = *static_cast<Member*>(context);
    const bool mine = root == static_cast<int>(me.place_.rank);
    return me.broadcast({static_cast<std::byte*>(data), bytes}, mine).ok() ? 0 : 1;
  };
  group.minimum = [](void* context, std::int64_t* value) {
    return static_cast<Member*>(context)->minimum(*value).ok() ? 0 : 1;
  };
  return group;
}

Status Member::end_of(const Error& error) {
  over_ = error.message();
  return error;
}

Status Member::tell(const Message& message) {
  if (!over_.empty()) return Error(Code::rank_lost, over_);
  Status sent = link_.send(message);
  while (sent.ok() && link_.wants_write()) {
    sent = link_.flush();
    if (sent.ok() && link_.wants_write()) {
      pollfd look{link_.socket(), POLLOUT, 0};
      ::poll(&look, 1, -1);
    }
  }
  return {};  // word of why it failed may have come: hear() finds it
}

// The next message for this rank; Over becomes the error that it tells of.
Result<Message> Member::hear() {
  if (!over_.empty()) return Error(Code::rank_lost, over_);
  while (heard_.empty()) {
    pollfd look{link_.socket(), POLLIN, 0};
    ::poll(&look, 1, -1);
    const Status got = link_.receive(heard_);
    if (got.ok() || !heard_.empty()) continue;
    without_server_ = true;
    return end_of({Code::rank_lost, "`backstay run` is gone"}).error();
  }
  Message message = std::move(heard_.front());
  heard_.erase(heard_.begin());
  if (const auto* over = std::get_if<Over>(&message))
    return end_of({over->code, over->message}).error();
  return message;
}

void Member::look() {
  if (!over_.empty()) return;
  const Status got = link_.receive(heard_);
  for (const Message& message : heard_)
    if (const auto* over = std::get_if<Over>(&message)) over_ = over->message;
  if (got.ok() || !over_.empty() || !heard_.empty()) return;
  without_server_ = true;
  over_ = "`backstay run` is gone";
}

Status Member::broadcast(std::span<std::byte> data, bool mine) {
  do {
    const auto piece = data.first(std::min(data.size(), data_bytes_max));
    data = data.subspan(piece.size());
    ++calls_;
    if (mine) {
      BACKSTAY_TRY(tell(data_of(calls_, piece)));
      continue;
    }
    BACKSTAY_ASSIGN(const Message message, hear());
    const auto* got = std::get_if<Data>(&message);
    if (got == nullptr || got->number != calls_ || got->bytes != piece.size())
      return end_of({Code::protocol, "the ranks do not call alike: a defect of Backstay"});
    copy_out(*got, piece);
  } while (!data.empty());
  return {};
}

Status Member::minimum(std::int64_t& value) {
  BACKSTAY_TRY(tell(Value{++calls_, value}));
  BACKSTAY_ASSIGN(const Message message, hear());
  const auto* got = std::get_if<Value>(&message);
  if (got == nullptr || got->number != calls_)
    return end_of({Code::protocol, "the ranks do not call alike: a defect of Backstay"});
  value = got->value;
  return {};
}

void Member::leave(int code) {
  (void)tell(Leave{static_cast<std::uint32_t>(code)});
  if (over_.empty()) over_ = "this rank has left";
}

}  // namespace backstay::meet
