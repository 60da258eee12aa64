#include "client/listed_codes.h"

#include <algorithm>
#include <initializer_list>
#include <string>

namespace backstay::client {

namespace {

using C = Code;

bool is_one_of(Code code, std::initializer_list<Code> codes) {
  return std::find(codes.begin(), codes.end(), code) != codes.end();
}

// What a write meets, and the calls after it repeat.
bool is_of_write(Code code) {
  return is_one_of(code, {C::state, C::rank_lost, C::no_space, C::io, C::permission, C::unsupported,
                          C::too_large, C::agent_lost, C::protocol});
}

bool is_of_reading(Code code) {
  return is_one_of(
      code, {C::state, C::null, C::not_found, C::too_large, C::corrupt, C::lost, C::format, C::io,
             C::permission, C::unsupported, C::protocol, C::agent_lost});
}

bool stream_may_return(Call call, Code code) {
  switch (call) {
    case Call::stream_open:
      return is_of_write(code) || is_one_of(code, {C::null, C::invalid, C::duplicate});
    case Call::stream_write: return is_of_write(code) || code == C::null;
    case Call::stream_close: return is_of_write(code);
    case Call::stream_count:
    case Call::stream_bytes:
    case Call::stream_at: return is_of_reading(code);
    case Call::stream_read: return is_of_reading(code) || code == C::mismatch;
    default: return false;
  }
}

}  // namespace

bool may_return(Call call, Code code) {
  if (code == C::internal) return true;
  switch (call) {
    case Call::init:
      return is_one_of(code,
                       {C::state, C::config, C::agent_lost, C::protocol, C::busy, C::permission,
                        C::no_space, C::long_path, C::invalid, C::too_large, C::unsupported});
    case Call::init_group:
      return may_return(Call::init, code) ||
             is_one_of(code, {C::null, C::port_in_use, C::unreachable, C::few_nodes});
    case Call::protect:
    case Call::protect_array:
      return is_one_of(code, {C::state, C::null, C::invalid, C::duplicate, C::too_large});
    case Call::unprotect: return is_one_of(code, {C::state, C::null, C::not_found});
    case Call::checkpoint:
      return is_one_of(code, {C::state, C::agent_lost, C::rank_lost, C::invalid, C::no_space, C::io,
                              C::permission, C::too_large, C::busy, C::protocol, C::config,
                              C::port_in_use, C::unreachable, C::unsupported});
    case Call::test:
      return is_one_of(code, {C::state, C::null, C::not_found, C::agent_lost, C::protocol,
                              C::no_space, C::io, C::permission, C::busy, C::corrupt, C::again,
                              C::config, C::format, C::unreachable});
    case Call::wait:
      return is_one_of(code, {C::state, C::not_found, C::agent_lost, C::protocol, C::invalid,
                              C::timeout, C::unsupported, C::no_space, C::io, C::permission,
                              C::busy, C::corrupt, C::again, C::config, C::format, C::unreachable});
    case Call::restart:
      return is_one_of(code,
                       {C::state,     C::none,       C::mismatch,    C::rank_count,  C::invalid,
                        C::no_space,  C::permission, C::corrupt,     C::lost,        C::agent_lost,
                        C::rank_lost, C::format,     C::unsupported, C::busy,        C::protocol,
                        C::config,    C::too_large,  C::port_in_use, C::unreachable, C::io});
    case Call::read_region:
      return is_one_of(
          code, {C::state, C::null, C::not_found, C::mismatch, C::too_large, C::corrupt, C::lost,
                 C::format, C::io, C::permission, C::unsupported, C::protocol, C::agent_lost});
    case Call::route_file:
      return is_one_of(code, {C::config, C::state, C::invalid, C::null, C::too_large, C::permission,
                              C::no_space, C::io, C::unsupported});
    case Call::finalize:
      return is_one_of(code, {C::state, C::agent_lost, C::protocol, C::not_found, C::no_space,
                              C::io, C::permission, C::busy, C::corrupt, C::again});
    case Call::abandon: return is_one_of(code, {C::state});
    default: return stream_may_return(call, code);
  }
}

Error as_listed(Call call, const Error& error) {
  if (may_return(call, error.code())) return error;
  return {Code::internal,
          error.message() + " (" + std::string(code_name(error.code())) +
              ", which this call does not return)",
          error.sys_errno()};
}

}  // namespace backstay::client
