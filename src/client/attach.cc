#include "client/attach.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>

#include "base/clock.h"
#include "client/launch.h"
#include "wire/socket.h"

namespace backstay::client {

namespace {

using MaybeConnection = Result<std::unique_ptr<Connection>>;

constexpr int first_pause_ms = 2;
constexpr int longest_pause_ms = 50;
// An agent that ended while starting has usually lost against another one that is about to listen.
constexpr int tries_after_end = 20;
// How long an agent may need to notice that our previous connection is over.
constexpr double reconnect_patience_s = 2;

// Also an agent that is ending. What an agent refuses with has other codes.
bool nobody_listens(const Error& error) { return error.code() == Code::agent_lost; }

bool over(std::uint64_t deadline) { return system_clock().monotonic_ns() >= deadline; }

// Sleeps in the kernel; true if the agent has ended meanwhile.
bool pause_or_end(const Fd& ended, int pause_ms) {
  pollfd watch{ended.get(), POLLIN, 0};  // a negative descriptor is ignored
  return ::poll(&watch, 1, pause_ms) > 0;
}

std::string log_hint(const AgentAddress& address) {
  const auto folder = std::filesystem::path(address.socket_path).parent_path().string();
  return "its log (agent.log_file, by default " + folder + "/agent.log) says why";
}

// Its own words; they are there even where its log could not be opened.
std::string why_ended(const AgentAddress& address, const LaunchedAgent& agent) {
  const std::string said = text_said_by(agent);
  return said.empty() ? log_hint(address) : said;
}

MaybeConnection wait_for_agent(const AgentAddress& address, const wire::Hello& hello,
                               LaunchedAgent agent, std::uint64_t deadline) {
  int tries_left = tries_after_end;
  bool ended = false;
  for (int pause_ms = first_pause_ms;; pause_ms = std::min(2 * pause_ms, longest_pause_ms)) {
    auto connection = Connection::open(address.socket_path, hello, deadline);
    if (connection.ok() || !nobody_listens(connection.error())) return connection;
    if (ended && --tries_left == 0) {
      return Error(Code::agent_lost,
                   "the agent ended while it was starting: " + why_ended(address, agent));
    }
    if (over(deadline)) {
      return Error(Code::agent_lost, "the agent did not answer within agent.start_timeout_s = " +
                                         std::to_string(address.start_timeout_s) + " s; " +
                                         log_hint(address));
    }
    if (pause_or_end(agent.ended, pause_ms)) {
      ended = true;
      agent.ended.reset();
    }
  }
}

// A rank that comes back may be faster than the agent's notice of its leaving.
MaybeConnection open_patiently(const AgentAddress& address, const wire::Hello& hello,
                               std::uint64_t deadline) {
  const std::uint64_t patience = std::min(deadline, deadline_in(reconnect_patience_s));
  for (int pause_ms = first_pause_ms;; pause_ms = std::min(2 * pause_ms, longest_pause_ms)) {
    auto connection = Connection::open(address.socket_path, hello, deadline);
    if (connection.ok() || connection.error().code() != Code::busy || over(patience)) {
      return connection;
    }
    (void)pause_or_end(Fd(), pause_ms);
  }
}

Result<LaunchedAgent> launch(const AgentAddress& address) {
  BACKSTAY_ASSIGN(const std::string program, find_agent_program(address.program));
  std::vector<std::string> arguments{"--socket", address.socket_path};
  if (!address.config_file.empty()) {
    arguments.insert(arguments.end(), {"--config", address.config_file});
  }
  return launch_agent(program, arguments);
}

// What the caller is told where the cause is a detail of ours.
Error as_agent_error(const Error& error) {
  const bool detail = error.code() == Code::not_found || error.code() == Code::timeout ||
                      error.code() == Code::io || error.code() == Code::again;
  return detail ? Error(Code::agent_lost, error.message(), error.sys_errno()) : error;
}

}  // namespace

AgentAddress agent_address(const Config& config, const std::string& config_file) {
  const auto absolute = [](const std::string& path) {
    std::error_code failed;
    const auto whole = std::filesystem::absolute(path, failed);
    return failed || path.empty() ? path : whole.lexically_normal().string();
  };
  const std::string socket =
      config.agent.socket.empty() ? wire::default_socket_path() : config.agent.socket;
  return {absolute(socket), config.agent.program, absolute(config_file),
          config.agent.start_timeout_s, config.agent.hang_timeout_s};
}

MaybeConnection connect_or_start(const AgentAddress& address, const wire::Hello& hello) {
  const std::uint64_t deadline = deadline_in(address.start_timeout_s);
  auto connection = open_patiently(address, hello, deadline);
  if (!connection.ok() && nobody_listens(connection.error())) {
    BACKSTAY_ASSIGN(LaunchedAgent agent, launch(address));
    connection = wait_for_agent(address, hello, std::move(agent), deadline);
    // An agent that nobody can find any more may be about to end and still hold the job.
    if (!connection.ok() && connection.error().code() == Code::busy) {
      connection = open_patiently(address, hello, deadline);
    }
  }
  if (!connection.ok()) return as_agent_error(connection.error());
  return connection;
}

MaybeConnection attach(const Group& group, const AgentAddress& address, const wire::Hello& hello) {
  const bool first = group.local_rank() == 0;
  std::unique_ptr<Connection> connection;
  const auto keep = [&](MaybeConnection opened) -> Status {
    if (!opened.ok()) return as_agent_error(opened.error());
    connection = std::move(opened).value();
    return {};
  };
  BACKSTAY_TRY(group.agree(first ? keep(connect_or_start(address, hello)) : Status()));
  const std::uint64_t deadline = deadline_in(address.start_timeout_s);
  BACKSTAY_TRY(group.agree(first ? Status() : keep(open_patiently(address, hello, deadline))));
  connection->give_up_after(address.hang_timeout_s);
  return connection;
}

}  // namespace backstay::client
