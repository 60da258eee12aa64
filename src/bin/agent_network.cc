#include "bin/agent_network.h"

#include <utility>

#include "base/machine.h"
#include "net/tcp.h"

namespace backstay::bin {

namespace {

// Names the setting and the node: others may have another device or a free port.
Error as_configured(const Error& error, const Config& config) {
  const std::string here = " on " + host_name();
  if (error.code() == Code::not_found) {
    return Error(Code::config, error.message())
        .context("network.device is '" + config.network.device + "'" + here);
  }
  if (error.code() == Code::port_in_use || error.code() == Code::permission) {
    return error.context("network.port is " + std::to_string(config.network.port) + here);
  }
  return error.context("the network between the agents" + here);
}

}  // namespace

Result<std::unique_ptr<net::Transport>> listen(const Config& config, const std::string& identity,
                                               const std::string& secret) {
  BACKSTAY_ASSIGN(net::Secret key, net::Secret::from_hex(secret));
  net::TcpOptions options{.secret = std::move(key),
                          .identity = identity,
                          .device = config.network.device,
                          .port = static_cast<std::uint16_t>(config.network.port),
                          .dead_after_s = config.network.dead_after_s};
  auto transport = net::make_tcp(std::move(options));
  if (!transport.ok()) return as_configured(transport.error(), config);
  return transport;
}

}  // namespace backstay::bin
