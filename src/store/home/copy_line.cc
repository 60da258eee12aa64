#include "store/home/copy_line.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/clock.h"

namespace backstay::store {

namespace {

constexpr std::uint32_t head_bytes_max = 1 << 20;

Error line_gone() { return {Code::agent_lost, "the other end of the line has gone"}; }

}  // namespace

LineMessage line_question(const char* what, nlohmann::json more, Buffer data) {
  more["do"] = what;
  return {std::move(more), std::move(data)};
}

LineMessage line_error(const Error& error) {
  return {{{"code", static_cast<int>(error.code())}, {"text", error.message()}}, {}};
}

Status error_of(const LineMessage& answer) {
  const int code = answer.head.value("code", 0);
  if (code == 0) return {};
  return Error(static_cast<Code>(code), answer.head.value("text", "the other end refused"));
}

Result<LineMessage> CopyLine::ask(const LineMessage& question) {
  BACKSTAY_TRY(send(question));
  return receive(/*may_end=*/false);
}

Status CopyLine::serve(const std::function<LineMessage(const LineMessage&)>& answer) {
  for (;;) {
    const auto question = receive(/*may_end=*/true);
    if (!question.ok()) return question.error().code() == Code::none ? Status() : question.error();
    BACKSTAY_TRY(send(answer(*question)));
  }
}

Status CopyLine::ready(int fd, short what) const {
  pollfd waiting{fd, what, 0};
  const std::uint64_t deadline = deadline_in(patience_s_);
  for (;;) {
    const int ready = ::poll(&waiting, 1, milliseconds_until(deadline));
    if (ready > 0) return {};
    if (ready == 0) return Error(Code::agent_lost, "the other end of the line is silent");
    if (errno != EINTR) return errno_error("wait for the line", errno);
  }
}

Status CopyLine::send(const LineMessage& message) const {
  const std::string head =
      message.head.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  ByteWriter all;
  all.put(static_cast<std::uint32_t>(head.size()));
  all.put(static_cast<std::uint32_t>(message.data.size()));
  all.put_bytes(std::as_bytes(std::span(head)));
  all.put_bytes(message.data);
  for (Bytes left = all.view(); !left.empty();) {
    BACKSTAY_TRY(ready(to_, POLLOUT));
    const ssize_t written = ::write(to_, left.data(), left.size());
    if (written < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (written < 0) return line_gone();
    left = left.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

Status CopyLine::read(std::span<std::byte> to) const {
  while (!to.empty()) {
    BACKSTAY_TRY(ready(from_, POLLIN));
    const ssize_t got = ::read(from_, to.data(), to.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) return line_gone();
    to = to.subspan(static_cast<std::size_t>(got));
  }
  return {};
}

// `may_end`: none where the other end has gone before the message.
Result<LineMessage> CopyLine::receive(bool may_end) const {
  std::array<std::byte, 8> sizes{};
  BACKSTAY_TRY(ready(from_, POLLIN));
  const ssize_t got = ::read(from_, sizes.data(), sizes.size());
  if (got == 0 && may_end) return Error(Code::none, "the other end has gone");
  if (got <= 0) return line_gone();
  BACKSTAY_TRY(read(std::span(sizes).subspan(static_cast<std::size_t>(got))));
  ByteReader reader(sizes);
  const auto head_bytes = reader.get<std::uint32_t>();
  const auto data_bytes = reader.get<std::uint32_t>();
  if (head_bytes > head_bytes_max || data_bytes > line_bytes_max)
    return Error(Code::protocol, "what comes over the line is no message of ours");
  std::string head(head_bytes, '\0');
  BACKSTAY_TRY(read(std::as_writable_bytes(std::span(head))));
  LineMessage message{nlohmann::json::parse(head, nullptr, false), Buffer(data_bytes)};
  if (!message.head.is_object())
    return Error(Code::protocol, "what comes over the line is no message of ours");
  BACKSTAY_TRY(read(message.data));
  return message;
}

}  // namespace backstay::store
