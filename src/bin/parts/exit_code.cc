#include "bin/parts/exit_code.h"

namespace backstay::bin {

int exit_code_of(Code code) {
  switch (code) {
    case Code::ok: return exit_ok;
    case Code::invalid:
    case Code::config:
    case Code::long_path:
    case Code::null:
    case Code::few_nodes: return exit_usage;
    case Code::none:
    case Code::not_found: return exit_nothing;
    case Code::corrupt:
    case Code::format: return exit_damaged;
    case Code::agent_lost:
    case Code::protocol: return exit_agent;
    case Code::timeout: return exit_timeout;
    case Code::unreachable: return exit_unreachable;
    case Code::busy:
    case Code::port_in_use: return exit_refused;
    default: return exit_failed;
  }
}

}  // namespace backstay::bin
