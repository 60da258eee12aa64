#include "client/start.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>

#include "base/clock.h"
#include "base/folders.h"
#include "client/launch.h"
#include "wire/socket.h"

namespace backstay::client {

namespace {

constexpr std::size_t said_bytes_max = 2000;

enum class News { words, end, none };

// Adds the agent's next words to `said`.
News wait_for_news(const LaunchedAgent& agent, std::uint64_t deadline, std::string& said) {
  if (!wait_readable(agent.said.get(), deadline)) return News::none;
  std::array<char, said_bytes_max> text{};
  const ssize_t got = ::read(agent.said.get(), text.data(), text.size());
  if (got <= 0) return News::end;
  if (said.size() < said_bytes_max) said.append(text.data(), static_cast<std::size_t>(got));
  return News::words;
}

// The agent's own words, which exist even if its log could not be opened.
std::string why(const AgentAddress& address, std::string said) {
  while (!said.empty() && said.back() == '\n') said.pop_back();
  if (!said.empty()) return said;
  return fmt::format("its log (agent.log_file, by default {}/agent.log) says why",
                     parent_of(address.socket_path));
}

bool nobody_listens_yet(const Error& error) {
  return error.code() == Code::agent_lost || error.code() == Code::not_found;
}

Result<LaunchedAgent> launch(const AgentAddress& address, const std::string& program) {
  std::vector<std::string> arguments{"--socket", address.socket_path};
  if (!address.config_file.empty()) {
    arguments.insert(arguments.end(), {"--config", address.config_file});
  }
  return launch_agent(program, arguments);
}

// The folder is made here, because an agent that ends at once can only report words, not an error
// code.
Status make_folder_of(const std::string& socket) {
  const std::string folder = parent_of(socket);
  BACKSTAY_TRY(make_chosen_folder(folder, "agent.socket"));
  if (::access(folder.c_str(), W_OK | X_OK) == 0) return {};
  return errno_error("write to " + folder + " (agent.socket)", errno);
}

}  // namespace

AgentAddress agent_address(const Config& config, const std::string& config_file) {
  const auto absolute = [](const std::string& path) {
    std::error_code failed;
    const auto whole = std::filesystem::absolute(path, failed);
    return failed || path.empty() ? path : whole.lexically_normal().string();
  };
  return {absolute(wire::socket_path(config.agent.socket)), config.agent.program,
          absolute(config_file), config.agent.start_timeout_s, config.agent.hang_timeout_s};
}

Status start_agent(const AgentAddress& address, std::uint64_t deadline) {
  BACKSTAY_ASSIGN(const std::string program, find_agent_program(address.program));
  BACKSTAY_TRY(make_folder_of(address.socket_path));
  BACKSTAY_ASSIGN(const LaunchedAgent agent, launch(address, program));
  std::string said;
  for (;;) {
    const News news = wait_for_news(agent, deadline, said);
    const auto listener = wire::connect_to(address.socket_path);
    if (listener.ok()) return {};
    if (!nobody_listens_yet(listener.error())) return listener.error();
    if (news == News::end) {
      return Error(Code::agent_lost, fmt::format("the agent {} ended while it was starting: {}",
                                                 program, why(address, said)));
    }
    if (news == News::none) {
      return Error(
          Code::timeout,
          fmt::format("the agent {} did not answer at {} within agent.start_timeout_s = "
                      "{} s: {}",
                      program, address.socket_path, address.start_timeout_s, why(address, said)));
    }
  }
}

}  // namespace backstay::client
