// Messages between ranks, and files that ranks write together, as the launcher's MPI has them.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "client/group.h"
#include "client/launcher.h"

namespace backstay::strategy {

// Errors of all: io, in MPI's words.
class Transport {
 public:
  // `table` outlives this.
  Transport(const client::Group& group, const backstay_transport& table)
      : context_(group.context()), table_(table) {}

  // The data stays as it is until wait().
  Status send(int to, Bytes data) const;
  Status receive(int from, std::span<std::byte> data) const;
  Status wait() const;
  // The number of values goes first; it is kept here until wait().
  template <typename Value>
  Status send_all(int to, const std::vector<Value>& values) const {
    static_assert(std::is_trivially_copyable_v<Value>);
    counts_.push_back(values.size());
    BACKSTAY_TRY(send(to, std::as_bytes(std::span(&counts_.back(), 1))));
    return values.empty() ? Status() : send(to, std::as_bytes(std::span(values)));
  }
  template <typename Value>
  Result<std::vector<Value>> receive_all(int from) const {
    std::uint64_t count = 0;
    BACKSTAY_TRY(receive(from, std::as_writable_bytes(std::span(&count, 1))));
    std::vector<Value> values(count);
    if (count != 0) BACKSTAY_TRY(receive(from, std::as_writable_bytes(std::span(values))));
    return values;
  }

  Status open(int group, const std::string& path, const std::string& hints) const;
  std::string ignored(const std::string& hints) const {
    return table_.ignored(context_, hints.c_str());
  }
  // Errors: no_space, those of the operating system.
  Status reserve(std::uint64_t bytes) const;
  Status write(std::uint64_t offset, Bytes data) const;
  Status close() const;

 private:
  void* const context_;
  const backstay_transport& table_;
  mutable std::deque<std::uint64_t> counts_;  // on their way
};

}  // namespace backstay::strategy
