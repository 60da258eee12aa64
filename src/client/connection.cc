#include "client/connection.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>

#include "wire/socket.h"

namespace backstay::client {

namespace {
constexpr std::size_t control_bytes = 4096;

std::uint32_t load_word(const Mapping& page, std::size_t index) {
  auto* words = reinterpret_cast<std::uint32_t*>(page.bytes().data());
  // Not atomic_ref: the page is mapped read-only and a load is all we do.
  return __atomic_load_n(words + index, __ATOMIC_ACQUIRE);
}

// Starting an agent then fails with an error that names the folder in the way.
bool nothing_can_be_there(const Error& error) {
  return error.code() == Code::not_found || error.sys_errno() == ENOTDIR ||
         error.sys_errno() == ELOOP;
}

bool is_unasked(const wire::Message& message) {
  return std::holds_alternative<wire::CutOrder>(message) ||
         std::holds_alternative<wire::CutOver>(message);
}
}  // namespace

Result<std::unique_ptr<Connection>> Connection::open(const std::string& socket_path,
                                                     const wire::Message& hello,
                                                     std::uint64_t deadline) {
  std::unique_ptr<Connection> connection(new Connection);
  auto socket = wire::connect_to(socket_path);
  if (!socket.ok() && nothing_can_be_there(socket.error())) {
    return Error(Code::agent_lost, socket.error().message(), socket.error().sys_errno());
  }
  BACKSTAY_ASSIGN(connection->socket_, std::move(socket));
  // An agent that hangs does not read either.
  if (::fcntl(connection->socket_.get(), F_SETFL, O_NONBLOCK) != 0) {
    return errno_error("prepare the connection to the agent", errno);
  }
  BACKSTAY_TRY(connection->send(hello));
  const Status welcomed = connection->welcome(deadline);
  if (!welcomed.ok() && welcomed.error().code() == Code::timeout) {
    return Error(Code::timeout, connection->hung(0).context("at " + socket_path).message());
  }
  if (!welcomed.ok()) return welcomed.error();
  return connection;
}

Connection::~Connection() { end(); }

void Connection::end() {
  if (usable_ && socket_.valid()) (void)wire::send(socket_.get(), wire::Goodbye{});
  usable_ = false;
  socket_.reset();
}

void Connection::leave_silently() {
  usable_ = false;
  socket_.reset();
}

Status Connection::welcome(std::uint64_t deadline) {
  BACKSTAY_TRY(wait_for(POLLIN, deadline));
  auto received = wire::receive(socket_.get());
  if (!received.ok()) return lost(received.error());
  if (const auto* failure = std::get_if<wire::Failure>(&received->message)) {
    usable_ = false;
    return Error(failure->code, failure->message);
  }
  const auto* answer = std::get_if<wire::Welcome>(&received->message);
  if (answer == nullptr || received->descriptors.size() != 2) {
    return Error(Code::protocol,
                 "the agent answered hello with something else: it is of another "
                 "release; end it (backstay agent stop) and start again");
  }
  return map(*answer, std::move(received->descriptors[0]), received->descriptors[1]);
}

Status Connection::map(const wire::Welcome& welcome, Fd pool, const Fd& control) {
  const std::uint64_t buffers =
      welcome.buffer_bytes == 0 ? 0 : welcome.pool_bytes / welcome.buffer_bytes;
  const std::uint64_t home_end = std::uint64_t{welcome.home_first} + welcome.home_count;
  if (buffers == 0 || home_end > buffers) {
    return Error(Code::protocol, "the agent describes a pool that cannot be");
  }
  BACKSTAY_ASSIGN(pool_, Mapping::of(pool, welcome.pool_bytes, true));
  BACKSTAY_ASSIGN(control_, Mapping::of(control, control_bytes, false));
  pool_memory_ = std::move(pool);
  welcome_ = welcome;
  return {};
}

void Connection::attend() {
  if (attend_) attend_in_ms_ = attend_();
}

// Who waits for an answer attends to what else there is.
Status Connection::wait_for(short events, std::uint64_t deadline) {
  const bool attends = attend_ != nullptr && events == POLLIN;
  while (true) {
    pollfd wait{socket_.get(), events, 0};
    const int left_ms = milliseconds_until(deadline);
    const bool sooner = attends && attend_in_ms_ >= 0 && (left_ms < 0 || attend_in_ms_ < left_ms);
    const int ready = ::poll(&wait, 1, sooner ? attend_in_ms_ : left_ms);
    if (ready > 0) return {};
    if (ready == 0 && sooner) {
      attend();
      if (has_news()) return {};
      continue;
    }
    if (ready == 0 && system_clock().monotonic_ns() >= deadline) {
      return Error(Code::timeout, "the agent has not answered in time");
    }
    if (ready < 0 && errno != EINTR) return errno_error("wait for the agent", errno);
  }
}

// Waits in parts and asks half way, so that an idle agent is not taken for a hung one. Each part
// counts as one, however long it took: if the whole job was suspended, so was the agent.
Status Connection::wait_patiently(short events, std::uint64_t deadline) {
  if (hang_timeout_s_ <= 0) return wait_for(events, deadline);
  constexpr int parts = 4;
  for (int silent = 0; silent < parts;) {
    const Status ready = wait_for(events, std::min(deadline, deadline_in(hang_timeout_s_ / parts)));
    if (ready.ok() || ready.error().code() != Code::timeout) return ready;
    if (system_clock().monotonic_ns() >= deadline) return ready;
    ++silent;
    if (silent == parts / 2 && events == POLLIN) BACKSTAY_TRY(send(wire::Query{}));
  }
  // The socket stays open: an agent that wakes up must not lend our buffers to others yet.
  usable_ = false;
  given_up_ = true;
  return hung(hang_timeout_s_);
}

Error Connection::hung(double seconds) const {
  const int pid = wire::pid_of_peer(socket_.get());
  const std::string who = pid == 0 ? "the agent" : fmt::format("the agent (process {})", pid);
  const std::string since = seconds == 0 ? "" : fmt::format(" for {} s", seconds);
  const std::string end = pid == 0 ? "end it" : fmt::format("end it with kill -9 {}", pid);
  return Error(Code::agent_lost,
               fmt::format("{} has not answered{}: it is stopped, or stuck in the kernel; {} if it "
                           "does not come back",
                           who, since, end));
}

bool Connection::usable() {
  while (usable_) {
    pollfd look{socket_.get(), POLLIN, 0};
    if (::poll(&look, 1, 0) <= 0) break;
    auto answer = receive_one();  // one that came too late, or the end
    if (attend_ && answer.ok() && answer->has_value()) early_.push_back(**std::move(answer));
  }
  return usable_;
}

Status Connection::send(const wire::Message& message) {
  if (!usable_) return Error(Code::agent_lost, "the agent is gone");
  while (true) {
    const auto sent = wire::send(socket_.get(), message);
    if (sent.ok()) return {};
    if (sent.error().code() != Code::again) return lost(sent.error());
    BACKSTAY_TRY(wait_patiently(POLLOUT, no_deadline));
  }
}

Result<wire::Message> Connection::receive(std::uint64_t deadline) {
  while (true) {
    if (!early_.empty()) {
      wire::Message first = std::move(early_.front());
      early_.pop_front();
      return first;
    }
    if (!usable_) return Error(Code::agent_lost, "the agent is gone");
    BACKSTAY_TRY(wait_patiently(POLLIN, deadline));
    if (has_news()) continue;
    BACKSTAY_ASSIGN(auto message, receive_one());
    if (message.has_value()) return *std::move(message);
    attend();
  }
}

std::vector<wire::Message> Connection::take_unasked() {
  (void)usable();
  return std::exchange(unasked_, {});
}

Result<std::optional<wire::Message>> Connection::receive_one() {
  auto received = wire::receive(socket_.get());
  if (!received.ok()) return lost(received.error());
  if (const auto* failure = std::get_if<wire::Failure>(&received->message)) {
    usable_ = false;
    cut_off_ = true;
    return Error(failure->code, "the agent ended the connection: " + failure->message);
  }
  if (is_unasked(received->message)) {
    unasked_.push_back(std::move(received->message));
    return std::optional<wire::Message>();
  }
  return std::optional<wire::Message>(std::move(received->message));
}

Error Connection::lost(const Error& cause) {
  usable_ = false;
  // The agent's last message before it closed can still be read: it may say that we were cut off.
  pollfd look{socket_.get(), POLLIN, 0};
  while (!cut_off_ && ::poll(&look, 1, 0) > 0) {
    const auto received = wire::receive(socket_.get());
    if (!received.ok()) break;
    cut_off_ = std::holds_alternative<wire::Failure>(received->message);
  }
  // It lives, and is of another release or not an agent: no checkpoint will ever succeed.
  if (cause.code() == Code::protocol) {
    return Error(Code::protocol,
                 cause.message() +
                     "; end that agent (kill, which lets it bring its versions to the disk), or "
                     "set agent.socket to another path");
  }
  return cause.context("the agent is lost");
}

Result<std::span<std::byte>> Connection::buffer(std::uint32_t index, std::uint32_t length) const {
  if (length > welcome_.buffer_bytes || index >= welcome_.pool_bytes / welcome_.buffer_bytes) {
    return Error(Code::protocol, "the agent names a buffer that is not in the pool");
  }
  return pool_.bytes().subspan(std::size_t{index} * welcome_.buffer_bytes, length);
}

Connection::Pool Connection::pool() const {
  const std::size_t each = welcome_.buffer_bytes;
  return {pool_memory_.get(), pool_.bytes(),
          pool_.bytes().subspan(welcome_.home_first * each, welcome_.home_count * each)};
}

std::uint32_t Connection::requests() const { return load_word(control_, 0); }
bool Connection::stop_requested() const { return load_word(control_, 1) != 0; }

Status expect_sum(const wire::ChunkInPool& chunk, std::uint64_t sum) {
  if (sum == chunk.checksum) return {};
  return Error(Code::corrupt, fmt::format("the chunk at {} (length {}) does not match its checksum",
                                          chunk.object_offset, chunk.length));
}

}  // namespace backstay::client
