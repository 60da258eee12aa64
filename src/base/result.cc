#include "base/result.h"

#include <cerrno>
#include <cstring>

namespace backstay {

std::string_view code_name(Code code) {
  switch (code) {
    case Code::ok: return "ok";
    case Code::none: return "none";
    case Code::again: return "again";
    case Code::timeout: return "timeout";
    case Code::invalid: return "invalid";
    case Code::state: return "state";
    case Code::config: return "config";
    case Code::busy: return "busy";
    case Code::unsupported: return "unsupported";
    case Code::duplicate: return "duplicate";
    case Code::too_large: return "too_large";
    case Code::protocol: return "protocol";
    case Code::port_in_use: return "port_in_use";
    case Code::unreachable: return "unreachable";
    case Code::few_nodes: return "few_nodes";
    case Code::null: return "null";
    case Code::long_path: return "long_path";
    case Code::mismatch: return "mismatch";
    case Code::rank_count: return "rank_count";
    case Code::not_found: return "not_found";
    case Code::io: return "io";
    case Code::no_space: return "no_space";
    case Code::permission: return "permission";
    case Code::agent_lost: return "agent_lost";
    case Code::rank_lost: return "rank_lost";
    case Code::corrupt: return "corrupt";
    case Code::format: return "format";
    case Code::lost: return "lost";
    case Code::internal: return "internal";
  }
  return "unknown";
}

std::string Error::to_string() const { return std::string(code_name(code_)) + ": " + message_; }

Error Error::context(std::string_view what) const& {
  return Error(code_, std::string(what) + ": " + message_, sys_errno_);
}

static Code code_of_errno(int sys_errno) {
  switch (sys_errno) {
    case ENOSPC:
    case EDQUOT: return Code::no_space;
    case EACCES:
    case EPERM:
    case EROFS: return Code::permission;
    case EINTR:
    case EAGAIN: return Code::again;
    case ENOENT: return Code::not_found;
    default: return Code::io;
  }
}

Error errno_error(std::string_view what, int sys_errno) {
  char text[128];
  const char* reason = strerror_r(sys_errno, text, sizeof text);
  return Error(code_of_errno(sys_errno), std::string(what) + ": " + reason, sys_errno);
}

}  // namespace backstay
