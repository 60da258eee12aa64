#include "client/writer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/clock.h"
#include "base/failpoint.h"
#include "client/attach.h"
#include "client/files_job.h"
#include "client/place.h"
#include "format/footer.h"

namespace backstay::client {

namespace {

Error not_reached(VersionNumber version, Level level, double timeout_s) {
  return {Code::timeout,
          fmt::format("version {} of the captured files has not reached level {} within {} s; it "
                      "still may",
                      version, level_name(level), timeout_s)};
}

// What the decoder cannot know: extents must lie in what was appended, not in the zeros behind it.
Status check(const format::CapturedFile& file, std::uint64_t payload_bytes) {
  if (const Status good = format::check_file_path(file.path); !good.ok()) {
    return Error(Code::invalid, fmt::format("{}: {}", file.path, good.error().message()));
  }
  for (const format::Extent& extent : file.extents) {
    if (extent.object_offset <= payload_bytes &&
        extent.bytes <= payload_bytes - extent.object_offset) {
      continue;
    }
    return Error(Code::invalid,
                 fmt::format("{}: an extent of {} bytes at {} is not in the {} bytes "
                             "that were appended",
                             file.path, extent.bytes, extent.object_offset, payload_bytes));
  }
  return {};
}

// Table and footer as they are written. Errors: invalid.
Result<Buffer> tail_of(std::vector<format::CapturedFile> files, std::uint64_t payload_bytes) {
  const std::uint64_t table_offset = format::aligned_in_object(payload_bytes);
  std::ranges::sort(files, {}, &format::CapturedFile::path);
  for (const format::CapturedFile& file : files) BACKSTAY_TRY(check(file, payload_bytes));
  Buffer tail = format::encode_files(files, table_offset);
  const Bytes bytes(tail);
  BACKSTAY_ASSIGN(const format::Footer footer,
                  format::decode_footer(bytes.last(format::object_footer_bytes),
                                        table_offset + tail.size(), format::ObjectKind::files));
  const auto read = format::decode_files(bytes.first(footer.table_bytes), footer);
  if (!read.ok()) return Error(Code::invalid, read.error().message());
  return tail;
}

}  // namespace

WriterSettings writer_settings(const Config& config, const std::string& config_file) {
  wire::Join join;
  join.release = BACKSTAY_VERSION;
  join.job = files_job_name(config.job.name);
  join.dir = config.storage.dir;
  join.keep = config.storage.keep;
  join.durable_dir = config.durable.dir;
  join.durable_keep = config.durable.keep;
  join.durable_bytes_per_s = config.durable.rate_limit_mib_s << 20;
  return {agent_address(config, config_file), config.job.name, std::move(join)};
}

// What ended the first agent seldom ends a second one.
Result<std::unique_ptr<Writer>> Writer::join(const WriterSettings& settings) {
  BACKSTAY_TRY(check_job_name(settings.job));
  wire::Join hello = settings.join;
  hello.pid = ::getpid();
  bool died = false;
  auto agent = connect_or_start(settings.agent, hello, /*was_silent=*/false, died);
  if (!agent.ok() && died) agent = connect_or_start(settings.agent, hello, false, died);
  if (!agent.ok()) return agent.error();
  touch((*agent)->pool().home);
  (*agent)->give_up_after(settings.agent.hang_timeout_s);
  return std::unique_ptr<Writer>(new Writer(std::move(*agent)));
}

// A goodbye of a forked child would end its parent's connection.
Writer::~Writer() {
  if (!mark_.is_own()) agent_->leave_silently();
}

Status Writer::ready(bool in_version) const {
  if (!mark_.is_own()) {
    return Error(Code::state,
                 "this process was forked by the one that joined: it has to join anew");
  }
  if (in_version && begun() == 0) return Error(Code::state, "no version is begun");
  if (!in_version && begun() != 0) {
    return Error(Code::state, fmt::format("version {} is begun and has not ended", begun()));
  }
  return {};
}

Status Writer::or_give_up(Status done) {
  if (done.ok()) return done;
  (void)abandon();
  return done;
}

Status Writer::begin(std::uint64_t bytes) {
  BACKSTAY_TRY(ready(/*in_version=*/false));
  const std::uint64_t buffers = bytes / agent_->buffer_bytes() + 1;
  const auto asked = static_cast<std::uint32_t>(std::min<std::uint64_t>(buffers, buffers_max));
  failpoint("writer.begin");
  Status begun = open(asked);
  failpoint("writer.begun");
  return begun;
}

Status Writer::open(std::uint32_t asked) {
  const auto any = [](const wire::Opened&) { return true; };
  BACKSTAY_ASSIGN(const auto opened, ask<wire::Opened>(*agent_, wire::Open{asked}, any));
  if (opened.code != Code::ok) return Error(opened.code, opened.message);
  if (opened.version == 0) return Error(Code::protocol, "the agent begins a version 0");
  fill_.begin(*agent_, opened.version, asked);
  return {};
}

Status Writer::append(const void* data, std::size_t bytes) {
  BACKSTAY_TRY(ready(/*in_version=*/true));
  BACKSTAY_TRY(or_give_up(put({static_cast<const std::byte*>(data), bytes})));
  payload_bytes_ += bytes;
  return {};
}

Status Writer::put(Bytes from) {
  return fill_.append(from.size(),
                      [from](std::uint64_t at, std::span<std::byte> to, Checksum& sum) {
                        copy_piece(to.data(), from.subspan(at, to.size()), sum);
                        return Status();
                      });
}

Result<VersionNumber> Writer::end(std::vector<format::CapturedFile> files) {
  BACKSTAY_TRY(ready(/*in_version=*/true));
  BACKSTAY_ASSIGN(const Buffer tail, tail_of(std::move(files), payload_bytes_));
  BACKSTAY_TRY(or_give_up(put_tail(tail)));
  BACKSTAY_TRY(or_give_up(finish()));
  const VersionNumber version = begun();
  fill_.forget();
  payload_bytes_ = 0;
  return version;
}

Status Writer::put_tail(Bytes tail) {
  static constexpr std::array<std::byte, format::object_alignment> zeros{};
  const std::uint64_t table_offset = format::aligned_in_object(payload_bytes_);
  BACKSTAY_TRY(put(Bytes(zeros).first(table_offset - payload_bytes_)));
  return put(tail);
}

Status Writer::finish() {
  BACKSTAY_TRY(fill_.hand_over());
  failpoint("writer.end");
  BACKSTAY_TRY(agent_->send(wire::Finish{begun(), fill_.bytes()}));
  failpoint("writer.ended");
  while (true) {
    BACKSTAY_ASSIGN(const bool captured, fill_.receive());
    if (captured) return {};
  }
}

Status Writer::abandon() {
  if (!mark_.is_own()) return ready(/*in_version=*/true);
  payload_bytes_ = 0;
  return fill_.give_up();
}

Status Writer::wait(VersionNumber version, Level level, double timeout_s) {
  BACKSTAY_TRY(ready(/*in_version=*/false));
  const auto is_it = [&](const wire::LevelIs& now) {
    return now.version == version && (now.level >= level || now.code != Code::ok);
  };
  const auto answer =
      ask<wire::LevelIs>(*agent_, wire::Await{version, level}, is_it, deadline_in(timeout_s));
  if (!answer.ok() && answer.error().code() == Code::timeout) {
    return not_reached(version, level, timeout_s);
  }
  if (!answer.ok()) return answer.error();
  return answer->level >= level ? Status() : Status(Error(answer->code, answer->message));
}

Status Writer::settle(const std::string& path, double timeout_s, std::string* kept) {
  BACKSTAY_TRY(ready(/*in_version=*/false));
  const auto is_it = [&](const wire::AtHome& one) { return one.path == path; };
  const auto answer =
      ask<wire::AtHome>(*agent_, wire::BringHome{path}, is_it, deadline_in(timeout_s));
  if (!answer.ok() && answer.error().code() == Code::timeout) {
    return Error(Code::timeout,
                 fmt::format("{} not at its own path within {} s; it still may come there",
                             path.empty() ? "a captured file is" : path + " is", timeout_s));
  }
  if (!answer.ok()) return answer.error();
  if (answer->code != Code::ok) return Error(answer->code, answer->message);
  if (kept != nullptr) *kept = answer->message;
  return {};
}

Status Writer::move(HeldVersion version, const std::string& from, const std::string& to,
                    std::uint64_t placed_ns) {
  BACKSTAY_TRY(ready(/*in_version=*/false));
  const wire::MoveHome question{version.number, version.run, from, to, placed_ns};
  BACKSTAY_ASSIGN(const auto answer,
                  ask<wire::MovedHome>(*agent_, question, [&](const wire::MovedHome& one) {
                    return one.version == version.number && one.to == to;
                  }));
  return answer.code == Code::ok ? Status() : Status(Error(answer.code, answer.message));
}

Status Writer::note(const wire::NoteWrites& written) {
  BACKSTAY_TRY(ready(/*in_version=*/false));
  return agent_->send(written);
}

}  // namespace backstay::client
