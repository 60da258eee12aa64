#include "client/attach.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <optional>

#include "base/clock.h"
#include "client/launch.h"

namespace backstay::client {

namespace {

using MaybeConnection = Result<std::unique_ptr<Connection>>;

constexpr int first_pause_ms = 2;
constexpr int longest_pause_ms = 50;
// How long an agent may need to notice that our previous connection is over.
constexpr double reconnect_patience_s = 2;
// Not each checkpoint waits for an agent that was silent: an agent that is well answers at once.
constexpr double silent_patience_s = 1;

// Also true for an agent that is ending. Refusals of an agent have other codes.
bool nobody_listens(const Error& error) { return error.code() == Code::agent_lost; }

bool over(std::uint64_t deadline) { return system_clock().monotonic_ns() >= deadline; }

// A rank that comes back may be faster than the agent's notice of its leaving, and an agent whose
// socket is gone may be about to end and still hold the job. An agent that is being stopped is
// waited for, as another one follows it. If that takes too long, its last answer is returned, and
// not the timeout.
MaybeConnection open_patiently(const AgentAddress& address, const wire::Message& hello,
                               std::uint64_t deadline, bool was_silent = false) {
  const std::uint64_t patience = std::min(deadline, deadline_in(reconnect_patience_s));
  std::optional<Error> put_off;
  for (int pause_ms = first_pause_ms;; pause_ms = std::min(2 * pause_ms, longest_pause_ms)) {
    const std::uint64_t answered_by =
        was_silent ? std::min(deadline, deadline_in(silent_patience_s)) : deadline;
    auto connection = Connection::open(address.socket_path, hello, answered_by);
    if (connection.ok()) return connection;
    const Code code = connection.error().code();
    if (code == Code::again) put_off = connection.error();
    const bool may_pass =
        (code == Code::busy && !over(patience)) || (code == Code::again && !over(deadline));
    if (!may_pass && put_off && (code == Code::again || code == Code::timeout)) {
      return Error(Code::again,
                   fmt::format("{}; it has not ended within agent.start_timeout_s ({} s)",
                               put_off->message(), address.start_timeout_s));
    }
    if (!may_pass) return connection;
    ::poll(nullptr, 0, pause_ms);
  }
}

// The error for the caller, if the cause is a detail of ours.
Error as_agent_error(const Error& error) {
  const bool detail = error.code() == Code::not_found || error.code() == Code::timeout ||
                      error.code() == Code::io || error.code() == Code::again;
  return detail ? Error(Code::agent_lost, error.message(), error.sys_errno()) : error;
}

}  // namespace

MaybeConnection connect_or_start(const AgentAddress& address, const wire::Message& hello,
                                 bool was_silent, bool& died) {
  const std::uint64_t deadline = deadline_in(address.start_timeout_s);
  auto connection = open_patiently(address, hello, deadline, was_silent);
  if (!connection.ok() && nobody_listens(connection.error())) {
    if (const Status started = start_agent(address, deadline); !started.ok()) {
      died = nobody_listens(started.error()) && find_agent_program(address.program).ok();
      return as_agent_error(started.error());
    }
    connection = open_patiently(address, hello, deadline);
  }
  if (connection.ok()) return connection;
  died = nobody_listens(connection.error());
  return as_agent_error(connection.error());
}

MaybeConnection attach(const Group& group, const AgentAddress& address, const wire::Message& hello,
                       bool was_silent, bool& died) {
  died = false;
  const bool first = group.local_rank() == 0;
  std::unique_ptr<Connection> connection;
  const auto keep = [&](MaybeConnection opened) -> Status {
    if (!opened.ok()) return opened.error();
    connection = std::move(opened).value();
    return {};
  };
  BACKSTAY_TRY(
      group.agree(first ? keep(connect_or_start(address, hello, was_silent, died)) : Status()));
  const std::uint64_t deadline = deadline_in(address.start_timeout_s);
  const auto join = [&]() -> Status {
    auto opened = open_patiently(address, hello, deadline);
    died = !opened.ok() && nobody_listens(opened.error());
    return opened.ok() ? keep(std::move(opened)) : Status(as_agent_error(opened.error()));
  };
  BACKSTAY_TRY(group.agree(first ? Status() : join()));
  connection->give_up_after(address.hang_timeout_s);
  return connection;
}

}  // namespace backstay::client
