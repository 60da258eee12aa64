#include "bin/parts/agent_start.h"

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "bin/parts/agent_link.h"
#include "client/start.h"
#include "wire/socket.h"

namespace backstay::bin {

Result<RunningAgent> ensure_agent(const Config& config, const std::string& config_file) {
  const client::AgentAddress address = client::agent_address(config, config_file);
  const double patience_s = config.agent.start_timeout_s;
  const bool fresh = !wire::connect_to(address.socket_path).ok();
  if (fresh) BACKSTAY_TRY(client::start_agent(address, deadline_in(patience_s)));
  // It listens; does it work?
  BACKSTAY_ASSIGN(const nlohmann::ordered_json status, agent_status(config, patience_s));
  return RunningAgent{fresh, status.value("pid", 0), address.socket_path};
}

}  // namespace backstay::bin
