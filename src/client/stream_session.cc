#include "client/stream_session.h"

#include <fmt/format.h>

#include <memory>
#include <new>

#include "client/device_memory.h"
#include "client/place.h"

namespace backstay::client {

Result<Streams::Id> StreamSession::open(const std::string& name) {
  if (session_.regions_.find(name) != nullptr) {
    return Error(Code::duplicate,
                 fmt::format("a region '{}' is protected: give the stream another name", name));
  }
  return session_.streams_.open(name);
}

Status StreamSession::write(Streams::Id id, const void* data, std::size_t bytes) {
  // Only read: a place is a source or a target.
  const Place from = bytes == 0 ? Place() : memory_at(const_cast<void*>(data));
  if (from.on_device) BACKSTAY_TRY(DeviceMemory::find()->finish_work(data));
  return session_.streams_.write(session_.agent_.get(), session_.newest_used_ + 1, id, from, bytes);
}

SavedStreams::Place StreamSession::place(VersionNumber version) const {
  const auto& [restarted, run] = session_.restarted_;
  return {*session_.agent_, version, session_.hello_.rank, version == restarted ? run : 0};
}

Result<StreamSession::All> StreamSession::saved(VersionNumber version) {
  if (version == 0) return Error(Code::not_found, "versions are counted from 1");
  if (session_.agent_ == nullptr || !session_.agent_->usable()) {
    return session_.adopt(Error(Code::agent_lost, "the agent is gone")).error();
  }
  auto all = session_.saved_streams_.of(place(version));
  if (!all.ok()) return session_.adopt(all.error()).error();
  return all;
}

Result<std::uint64_t> StreamSession::count(VersionNumber version) {
  BACKSTAY_ASSIGN(const All all, saved(version));
  return std::uint64_t{all->size()};
}

Result<format::Stream> StreamSession::at(VersionNumber version, std::uint64_t index) {
  BACKSTAY_ASSIGN(const All all, saved(version));
  if (index < all->size()) return (*all)[index];
  return Error(Code::not_found, fmt::format("version {} has {} streams of this rank, counted from "
                                            "0; there is none {}",
                                            version, all->size(), index));
}

Result<const format::Stream*> StreamSession::find(VersionNumber version, const std::string& name) {
  BACKSTAY_TRY(saved(version));
  if (const format::Stream* stream = session_.saved_streams_.find(name)) return stream;
  return Error(Code::not_found,
               fmt::format("version {} has no stream '{}' of this rank", version, name));
}

Result<std::uint64_t> StreamSession::bytes(VersionNumber version, const std::string& name) {
  BACKSTAY_ASSIGN(const format::Stream* const stream, find(version, name));
  return stream->bytes;
}

Status StreamSession::read(VersionNumber version, const std::string& name, std::uint64_t offset,
                           void* data, std::size_t bytes) {
  BACKSTAY_ASSIGN(const format::Stream* const stream, find(version, name));
  if (offset > stream->bytes || bytes > stream->bytes - offset) {
    return Error(Code::mismatch, fmt::format("stream '{}' has {} bytes: {} bytes at {} do not lie "
                                             "in it",
                                             name, stream->bytes, bytes, offset));
  }
  const std::unique_ptr<std::byte[]> copy(new (std::nothrow) std::byte[bytes]);
  if (copy == nullptr) {
    return Error(Code::too_large, fmt::format("no memory for a second copy of {} bytes of stream "
                                              "'{}': read it in parts",
                                              bytes, name));
  }
  const Status read =
      session_.saved_streams_.read(place(version), *stream, offset, {copy.get(), bytes});
  BACKSTAY_TRY(session_.adopt(read));
  if (bytes == 0) return {};
  return copy_out(memory_at(data), 0, {copy.get(), bytes}, /*sum=*/nullptr);
}

Status StreamSession::read_whole(VersionNumber version, const std::string& name, void* data,
                                 std::size_t bytes) {
  BACKSTAY_ASSIGN(const format::Stream* const stream, find(version, name));
  if (stream->bytes == bytes) return read(version, name, 0, data, bytes);
  return Error(Code::mismatch, fmt::format("stream '{}' was saved with {} bytes; the caller has "
                                           "room for {} bytes",
                                           name, stream->bytes, bytes));
}

}  // namespace backstay::client
