// Result<T>: a value or an Error; Status: success or an Error.
//
// Every function of ours that can fail because of the world returns one of these; no exception
// leaves a library. Who detects a fault makes the Error, with cause and errno; callers may add
// context with `.context("...")`. Outputs exist only on success.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/check.h"

namespace backstay {

// The closed list of codes, ordered by how much is lost. The numbers are API (backstay.h repeats
// them as BACKSTAY_E*; a static_assert in src/client holds the two together).
enum class Code : std::int32_t {
  ok = 0,
  // Nothing is lost: call again, or call differently.
  none = 1,          // no version exists that could be restarted; start from the beginning
  again = 2,         // temporary (interrupted, would block)
  timeout = 3,       // the awaited level was not reached in time; it still may be
  invalid = 4,       // an argument is wrong; the message names it
  state = 5,         // a call out of order (before init, after finalize, twice)
  config = 6,        // the configuration is wrong; the message names file, line and nearest key
  busy = 7,          // another run of the same job holds it
  unsupported = 8,   // this build or machine cannot do it
  duplicate = 9,     // the name is protected already
  too_large = 10,    // beyond a limit that the message names
  protocol = 11,     // agent and library do not speak the same protocol version
  port_in_use = 12,  // another process has the network port that is configured
  unreachable = 13,  // a node cannot be reached by the name or address that it gave
  few_nodes = 14,    // too few for the replicas or parity that are asked for
  null = 15,         // a pointer is NULL where there must be one; the message names it
  long_path = 16,    // a path is longer than the system allows
  // This object.
  mismatch = 20,    // region name, type, shape or size differs from what was saved
  rank_count = 21,  // saved by another number of ranks, and not fit for this one
  not_found = 22,   // no such job, version, rank or region
  // This tier.
  io = 30,          // the operating system refused; errno is given
  no_space = 31,    // the disk or quota is full
  permission = 32,  // not allowed; the message names the path
  // This node.
  agent_lost = 40,  // an agent died, cannot be started or cannot be reached
  rank_lost = 41,   // a rank died during the checkpoint; this version does not exist
  // This version.
  corrupt = 50,  // bytes do not match their checksum
  format = 51,   // not a file of ours, or of a newer format
  lost = 52,     // more nodes are gone than the version's replicas or parity make up for
  // Our bug.
  internal = 90,
};

std::string_view code_name(Code code);

// What was read is not what was written: it was changed, or says what no writer of ours would.
// Another read gives the same.
constexpr bool is_damage(Code code) {
  return code == Code::corrupt || code == Code::format || code == Code::too_large;
}

class Error {
 public:
  Error(Code code, std::string message, int sys_errno = 0)
      : code_(code), sys_errno_(sys_errno), message_(std::move(message)) {}

  Code code() const { return code_; }
  // The errno that caused it, 0 where there was none.
  int sys_errno() const { return sys_errno_; }
  const std::string& message() const { return message_; }
  // "no_space: write segment /x/y: No space left on device"
  std::string to_string() const;
  // Puts `what` in front of the message: callers say what they were doing.
  Error context(std::string_view what) const&;

 private:
  Code code_;
  int sys_errno_;
  std::string message_;
};

// Makes an Error from errno: the code follows from the number (ENOSPC and EDQUOT: no_space,
// EACCES, EPERM and EROFS: permission, EINTR and EAGAIN: again, ENOENT: not_found, else io).
Error errno_error(std::string_view what, int sys_errno);

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit
  Result(Error error) : value_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit

  bool ok() const { return value_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() & {
    BACKSTAY_CHECK(ok());
    return std::get<0>(value_);
  }
  const T& value() const& {
    BACKSTAY_CHECK(ok());
    return std::get<0>(value_);
  }
  T&& value() && {
    BACKSTAY_CHECK(ok());
    return std::get<0>(std::move(value_));
  }
  const Error& error() const {
    BACKSTAY_CHECK(!ok());
    return std::get<1>(value_);
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::variant<T, Error> value_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)), failed_(true) {}  // NOLINT: implicit

  bool ok() const { return !failed_; }
  explicit operator bool() const { return ok(); }
  const Error& error() const {
    BACKSTAY_CHECK(failed_);
    return error_;
  }

 private:
  Error error_{Code::ok, {}};
  bool failed_ = false;
};

using Status = Result<void>;

// Returns the Error of `expr` from the calling function.
#define BACKSTAY_TRY(expr)                                                              \
  do {                                                                                  \
    if (auto backstay_try_ = (expr); !backstay_try_.ok()) return backstay_try_.error(); \
  } while (0)

#define BACKSTAY_CONCAT_(a, b) a##b
#define BACKSTAY_CONCAT(a, b) BACKSTAY_CONCAT_(a, b)
// BACKSTAY_ASSIGN(auto x, f()): x = value, or return the Error.
#define BACKSTAY_ASSIGN(lhs, expr) \
  BACKSTAY_ASSIGN_(lhs, expr, BACKSTAY_CONCAT(backstay_result_, __LINE__))
#define BACKSTAY_ASSIGN_(lhs, expr, tmp) \
  auto tmp = (expr);                     \
  if (!tmp.ok()) return tmp.error();     \
  lhs = std::move(tmp).value()

}  // namespace backstay
