#include "client/job_settings.h"

#include <bit>
#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "base/bytes.h"

namespace backstay::client {

namespace {

// Two visitors of the fields: into a buffer, and out of it.
class Putting {
 public:
  void operator()(const std::string& text) {
    writer_.put(std::uint64_t{text.size()});
    writer_.put_bytes(std::as_bytes(std::span(text)));
  }
  void operator()(double value) { writer_.put(std::bit_cast<std::uint64_t>(value)); }
  void operator()(bool value) { writer_.put(static_cast<std::uint8_t>(value)); }
  template <std::integral T>
  void operator()(T value) {
    writer_.put(value);
  }
  Buffer take() { return writer_.take(); }

 private:
  ByteWriter writer_;
};

class Getting {
 public:
  explicit Getting(Bytes bytes) : reader_(bytes) {}
  void operator()(std::string& text) {
    const Bytes raw = reader_.bytes(reader_.get<std::uint64_t>());
    text.assign(reinterpret_cast<const char*>(raw.data()), raw.size());
  }
  void operator()(double& value) { value = std::bit_cast<double>(reader_.get<std::uint64_t>()); }
  void operator()(bool& value) { value = reader_.get<std::uint8_t>() != 0; }
  template <std::integral T>
  void operator()(T& value) {
    value = reader_.get<T>();
  }
  bool done() const { return reader_.done(); }

 private:
  ByteReader reader_;
};

template <typename Settings, typename Each>
void for_each(Settings& config, Each&& each) {
  each(config.storage.keep);
  each(config.durable.dir);
  each(config.durable.every);
  each(config.durable.keep);
  each(config.durable.rate_limit_mib_s);
  each(config.drain.nodes_max);
  each(config.checkpoint.policy);
  each(config.checkpoint.interval_s);
  each(config.checkpoint.every_calls);
  each(config.checkpoint.mtti_s);
  each(config.checkpoint.strict);
  each(config.checkpoint.wait_at_end);
  each(config.checkpoint.cut_timeout_s);
  each(config.checkpoint.full_every);
  each(config.checkpoint.snapshot);
  each(config.protect.replicas);
  each(config.protect.parity);
  each(config.protect.rate_limit_mib_s);
  each(config.strategy.name);
  each(config.strategy.files);
  each(config.strategy.ranks_per_writer);
  each(config.strategy.buffer_mib);
  each(config.strategy.align_kib);
  each(config.strategy.hints);
}

}  // namespace

Status take_settings_of_rank_0(const Group& group, Config& config) {
  Putting putting;
  for_each(std::as_const(config), putting);
  Buffer bytes = putting.take();
  std::uint64_t size = bytes.size();
  BACKSTAY_TRY(group.broadcast(&size, sizeof size));
  bytes.resize(size);
  BACKSTAY_TRY(group.broadcast(bytes.data(), size));
  Getting getting(bytes);
  for_each(config, getting);
  // A library of another release may know other settings.
  if (getting.done()) return group.agree({});
  return group.agree(
      Error(Code::protocol, "rank 0 has another release of the library: install one on all nodes"));
}

}  // namespace backstay::client
