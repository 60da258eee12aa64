#include "capture/companion/image_source.h"

#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "base/failpoint.h"
#include "capture/image/format/image.h"

namespace backstay::image {

namespace {

// A copy that gets no buffer for so long waits for the disk.
constexpr std::uint64_t patience_ns = 20'000'000;
constexpr int look_every_ms = 10;

double seconds_since(std::uint64_t began_ns) {
  return 1e-9 * static_cast<double>(system_clock().monotonic_ns() - began_ns);
}

}  // namespace

Result<std::unique_ptr<ImageSource>> ImageSource::begin(BootProcess& boot,
                                                        client::Connection& agent, const What& what,
                                                        CutRecord& record) {
  Request request{};
  request.kind = static_cast<std::uint32_t>(Ask::cut);
  request.tersely = what.tersely ? 1 : 0;
  request.watches = what.cut.watches ? 1 : 0;
  request.keeps = what.cut.keeps ? 1 : 0;
  request.bytes = agent.buffer_bytes();
  std::memcpy(request.notes, what.notes.data(),
              std::min<std::size_t>(what.notes.size(), notes_max - 1));
  // A program that is just replacing itself answers when it is another one.
  for (;;) {
    BACKSTAY_TRY(boot.lend(agent.pool()));
    const auto answer = boot.ask(request);
    if (answer.ok()) {
      failpoint("image.cut");
      record.bytes = answer->bytes;
      record.kept_bytes = answer->kept_bytes;
      record.contents = answer->contents;
      record.not_in_image = answer->why;
      std::unique_ptr<ImageSource> source(new ImageSource(boot, what, record));
      const std::uint64_t bytes = answer->bytes - answer->kept_bytes;
      source->left_ = bytes;
      source->table_bytes_ = answer->table_bytes;
      if (what.choice != nullptr && what.choice->forks(bytes, agent.pool().home.size())) {
        source->fork();
      }
      BACKSTAY_TRY(source->ask_kept());
      return source;
    }
    if (answer.error().code() != Code::again) return answer.error();
  }
}

Result<Answer> ImageSource::ask(const Request& request) {
  if (!snapshot_) return boot_.ask(request);
  auto answer = snapshot_->ask(request);
  record_.killed = !answer.ok() && answer.error().code() == Code::io;
  return answer;
}

// From here on the image is read out of the snapshot. Without one the program stands still as
// before.
void ImageSource::fork() {
  may_fork_ = false;
  const std::uint64_t began_ns = system_clock().monotonic_ns();
  auto snapshot = Snapshot::take(boot_);
  if (!snapshot.ok()) {
    record_.no_snapshot = snapshot.error();
    return;
  }
  snapshot_ = std::move(*snapshot);
  record_.fork_s = seconds_since(began_ns);
  record_.forked = true;
  work_ = kernel_work_of(boot_.pid());
  resume();
}

Status ImageSource::ask_kept() {
  kept_.base = what_.base;
  Request request{};
  request.kind = static_cast<std::uint32_t>(Ask::kept);
  for (std::uint64_t bytes = 0; bytes < record_.kept_bytes;) {
    request.at = kept_.chunks.size();
    BACKSTAY_ASSIGN(const Answer answer, ask(request));
    for (const KeptChunk& one : answer.kept) {
      if (one.bytes == 0) break;
      kept_.chunks.push_back({one.offset, static_cast<std::uint32_t>(one.bytes)});
      bytes += one.bytes;
    }
    if (answer.kept[0].bytes == 0) return Error(Code::internal, "a kept chunk is missing");
  }
  return {};
}

ImageSource::~ImageSource() {
  snapshot_.reset();
  resume();
}

Result<std::uint64_t> ImageSource::read_next(std::span<std::byte> to) {
  Request request{};
  request.kind = static_cast<std::uint32_t>(Ask::fill);
  request.at = boot_.in_pool(to);
  request.bytes = to.size();
  const std::uint64_t began_ns = system_clock().monotonic_ns();
  BACKSTAY_ASSIGN(const Answer answer, ask(request));
  record_.copy_s += seconds_since(began_ns);
  BACKSTAY_TRY(check_table(to));
  idle_since_ns_ = system_clock().monotonic_ns();
  return answer.sum;
}

// Takes the table out of the next bytes of the object, and reads it as a restart does once it is
// whole: a version counts as captured only if a restart would take its table.
Status ImageSource::check_table(Bytes piece) {
  left_ -= piece.size();
  if (left_ >= table_bytes_) return {};
  const Bytes part = piece.last(std::min<std::uint64_t>(piece.size(), table_bytes_ - left_));
  table_.insert(table_.end(), part.begin(), part.end());
  if (left_ > 0) return {};
  const auto wrong = [](const Error& why) {
    return Error(Code::internal, "no restart would take its " + why.message());
  };
  if (table_.size() < footer_bytes || table_.size() > table_bytes_most) {
    return wrong({Code::internal, "image: its table has no size that tables have"});
  }
  const auto footer = decode_footer(Bytes(table_).last(footer_bytes), record_.bytes);
  if (!footer.ok()) return wrong(footer.error());
  const auto image = decode_table(Bytes(table_).first(table_.size() - footer_bytes), *footer);
  return image.ok() ? Status() : wrong(image.error());
}

int ImageSource::attend() {
  if (!stopped_) return what_.attend ? what_.attend() : -1;
  const std::uint64_t now = system_clock().monotonic_ns();
  if (idle_since_ns_ == 0) idle_since_ns_ = now;
  const bool waits = now - idle_since_ns_ >= patience_ns;
  const bool may = may_fork_ && what_.choice != nullptr && what_.choice->forks_late();
  if (may && waits) fork();
  return may && stopped_ ? look_every_ms : stopped_ ? -1 : 0;
}

void ImageSource::complete() {
  if (snapshot_) {
    record_.all_copied = true;
    snapshot_.reset();
    record_.slow_down_s = slow_down_s(work_, kernel_work_of(boot_.pid()));
  }
  if (what_.ends) {
    stays_ = true;
    stop_ = Stop{system_clock().monotonic_ns() - began_ns_, false};
  }
  resume();
}

void ImageSource::resume() {
  if (!stopped_ || stays_) return;
  stopped_ = false;
  failpoint("image.resume");
  Request request{};
  request.kind = static_cast<std::uint32_t>(Ask::resume);
  const auto answer = boot_.ask(request);  // a program that has ended needs none
  const std::uint64_t until_now_ns = system_clock().monotonic_ns() - began_ns_;
  stop_ = Stop{answer.ok() ? answer->stopped_ns : until_now_ns, record_.forked};
}

}  // namespace backstay::image
