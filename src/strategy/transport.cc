#include "strategy/transport.h"

namespace backstay::strategy {

namespace {

Status as_status(const char* failed, const char* what) {
  if (failed == nullptr) return {};
  return Error(Code::io, std::string(what) + ": " + failed);
}

}  // namespace

Status Transport::send(int to, Bytes data) const {
  return as_status(table_.send(context_, to, data.data(), data.size()), "send");
}
Status Transport::receive(int from, std::span<std::byte> data) const {
  return as_status(table_.receive(context_, from, data.data(), data.size()), "receive");
}
Status Transport::wait() const {
  const Status sent = as_status(table_.wait(context_), "send");
  counts_.clear();
  return sent;
}

Status Transport::open(int group, const std::string& path, const std::string& hints) const {
  return as_status(table_.open(context_, group, path.c_str(), hints.c_str()), "open by MPI-IO");
}
Status Transport::reserve(std::uint64_t bytes) const {
  const int failed = table_.reserve(context_, bytes);
  if (failed == 0) return {};
  return errno_error("reserve " + std::to_string(bytes) + " bytes for a version", failed);
}
Status Transport::write(std::uint64_t offset, Bytes data) const {
  return as_status(table_.write(context_, offset, data.data(), data.size()), "write by MPI-IO");
}
Status Transport::close() const { return as_status(table_.close(context_), "close by MPI-IO"); }

}  // namespace backstay::strategy
