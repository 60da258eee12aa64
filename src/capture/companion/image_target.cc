#include "capture/companion/image_target.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <span>
#include <utility>

#include "base/failpoint.h"
#include "base/tell.h"
#include "capture/companion/changed_inputs.h"
#include "capture/companion/command_note.h"
#include "capture/companion/ended_rank.h"
#include "capture/companion/said_lines.h"
#include "format/footer.h"

namespace backstay::image {

namespace {

static_assert(footer_bytes == format::object_footer_bytes);

Result<Fd> in_memory(Bytes bytes) {
  Fd memory(::memfd_create("backstay-table", MFD_CLOEXEC));
  if (!memory.valid()) return errno_error("take memory for an image's table", errno);
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t wrote = ::write(memory.get(), bytes.data() + done, bytes.size() - done);
    if (wrote <= 0) return errno_error("take memory for an image's table", errno);
    done += static_cast<std::size_t>(wrote);
  }
  return memory;
}

// Of which the other end is not in the image.
bool reads_from_a_pipe(const Image& image) {
  for (const Descriptor& one : image.descriptors) {
    if (one.number == 0 && one.kind == static_cast<std::uint32_t>(DescriptorKind::inherited)) {
      return std::string_view(image.text(one.path)).starts_with("pipe:");
    }
  }
  return false;
}

void tell_of_inputs(const Image& image) {
  if (reads_from_a_pipe(image)) {
    tell_user(
        "standard input was a pipe when this version was saved: what the program has read "
        "from it since then does not come again. With a file (< FILE) it does");
  }
  const auto changed = changed_inputs(image);
  if (changed.empty()) return;
  const std::string others =
      changed.size() > 1 ? fmt::format(" (and {} more)", changed.size() - 1) : "";
  tell_user(
      fmt::format("{}{}, which the program reads, was changed after this version was saved: "
                  "it goes on with what is there now. If that is wrong, put the old content "
                  "back, or begin anew (--fresh)",
                  changed.front(), others));
}

// Of one that keeps pages and does not say how many there are before it, it is not known.
std::optional<std::uint32_t> chain_of(const std::vector<format::Note>& notes,
                                      const Footer& footer) {
  const std::string text = note_of(notes, note_chain);
  if (text.empty() && footer.format != format_whole) return std::nullopt;
  return static_cast<std::uint32_t>(std::strtoul(text.c_str(), nullptr, 10));
}

}  // namespace

std::string text_of(const std::vector<format::Note>& notes) {
  std::string text;
  for (const format::Note& note : notes) text += note.key + "=" + note.text + "\n";
  return text;
}

std::vector<format::Note> notes_of(std::string_view text) {
  std::vector<format::Note> notes;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    const std::size_t middle = line.find('=');
    if (middle != std::string_view::npos) {
      notes.push_back({std::string(line.substr(0, middle)), std::string(line.substr(middle + 1))});
    }
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return notes;
}

std::uint64_t ImageTarget::table_bytes() const { return table_bytes_most; }

Result<std::uint64_t> ImageTarget::tail_bytes(Bytes footer, std::uint64_t object_bytes) {
  if (format::is_image(footer)) {
    BACKSTAY_ASSIGN(const Footer found, decode_footer(footer, object_bytes));
    return found.table_bytes + footer_bytes;
  }
  BACKSTAY_ASSIGN(const format::Footer found, format::decode_footer(footer, object_bytes));
  return found.table_bytes + footer_bytes;
}

Status ImageTarget::match_tail(Bytes tail, std::uint64_t object_bytes) {
  boot_.reset();
  left_ = object_bytes;
  chain_.reset();
  output_.reset();
  chunks_.clear();
  const std::size_t table = tail.size() - footer_bytes;
  ended_ = !format::is_image(tail.subspan(table));
  if (ended_) {
    BACKSTAY_ASSIGN(const format::Footer footer,
                    format::decode_footer(tail.subspan(table), object_bytes));
    return match_ended(tail.first(table), footer);
  }
  BACKSTAY_ASSIGN(const Footer footer, decode_footer(tail.subspan(table), object_bytes));
  BACKSTAY_ASSIGN(const Image image, decode_table(tail.first(table), footer));
  const std::uint32_t notes = image.identity.notes;
  format::Table saved;
  if (notes != 0) saved.notes = notes_of(image.text(notes));
  BACKSTAY_TRY(origin_.check(saved));
  command_ = note_of(saved.notes, note_command);
  chain_ = chain_of(saved.notes, footer);
  for (const Descriptor& one : image.descriptors) {
    if (!output_ && is_output(one)) output_ = one;
  }
  const Status started = told_by_process(start(tail, object_bytes));
  if (!started.ok()) boot_.reset();
  if (started.ok() && tells_) tell_of_inputs(image);
  return started;
}

Status ImageTarget::match_ended(Bytes table, const format::Footer& footer) {
  BACKSTAY_ASSIGN(const format::Table saved, format::decode_table(table, footer));
  if (is_of_ended_rank(saved)) return origin_.check(saved);
  return Error(Code::mismatch,
               "this job's versions were saved by a program that uses Backstay itself: start it "
               "without --transparent, under another name with --job, or afresh with --fresh");
}

Status ImageTarget::start(Bytes tail, std::uint64_t object_bytes) {
  copies_ = false;
  BACKSTAY_ASSIGN(const Fd table, in_memory(tail));
  BACKSTAY_ASSIGN(boot_, BootProcess::start({}, life_));
  BACKSTAY_TRY(boot_->lend(agent_.pool()));
  Request request{};
  request.kind = static_cast<std::uint32_t>(Ask::table);
  request.bytes = tail.size();
  request.object = object_bytes;
  BACKSTAY_TRY(boot_->ask(request, table.get()));
  failpoint("image.table");
  return {};
}

// The boot program copies while the next chunk is verified here; of the last one it tells at once
// whether it could. Where a sum is wanted, the chunk's buffer goes away on return.
Status ImageTarget::place(std::uint64_t object_offset, Bytes chunk, Checksum* sum) {
  if (ended_) {
    if (sum != nullptr) sum->update(chunk);
    return {};
  }
  BACKSTAY_TRY(await());
  Request request{};
  request.kind = static_cast<std::uint32_t>(Ask::take);
  request.at = boot_->in_pool(chunk);
  request.bytes = chunk.size();
  request.object = object_offset;
  boot_->begin(request);
  copies_ = true;
  chunks_.push_back({object_offset, chunk.size()});
  left_ -= std::min<std::uint64_t>(left_, chunk.size());
  if (sum != nullptr) sum->update(chunk);
  return sum != nullptr || left_ == 0 ? await() : Status();
}

Status ImageTarget::await() {
  if (!std::exchange(copies_, false)) return {};
  const auto answer = boot_->answer();
  return told_by_process(answer.ok() ? Status() : Status(answer.error()));
}

// A process that has ended without a word: what the image holds has broken it, unless it was killed
// (for want of memory, perhaps).
Status ImageTarget::told_by_process(const Status& answer) {
  if (answer.ok()) return answer;
  refused_ = answer.error().code() == Code::not_found;
  if (answer.error().code() == Code::mismatch) {
    return Error(Code::mismatch,
                 answer.error().message() +
                     "; no version of the job can go on here: put that right and give the same "
                     "command again, or start from the beginning (--fresh)");
  }
  if (answer.error().code() != Code::rank_lost || !boot_) return answer;
  const int code = boot_->wait();
  if (code == 128 + SIGKILL) return answer;
  refused_ = true;
  return Error(Code::io, fmt::format("the process that was to be brought back broke down, with "
                                     "exit code {}",
                                     code));
}

Status ImageTarget::finish() { return await(); }

bool ImageTarget::watch() {
  if (!boot_) return false;
  std::ranges::sort(chunks_, {}, &KeptChunk::offset);
  const auto list = in_memory(std::as_bytes(std::span(chunks_)));
  if (!list.ok()) return false;
  Request request{};
  request.kind = static_cast<std::uint32_t>(Ask::base);
  request.bytes = chunks_.size() * sizeof(KeptChunk);
  const auto answer = boot_->ask(request, list->get());
  return answer.ok() && answer->bytes != 0;
}

Status ImageTarget::make_ready() {
  if (ended_) return {};
  Request request{};
  request.kind = static_cast<std::uint32_t>(Ask::ready);
  failpoint("image.ready");
  const std::string said = output_ ? said_since(*output_) : "";
  const auto answer = boot_->ask(request);
  if (output_) say_again(*output_, said);
  if (answer.ok() && answer->why[0] != '\0' && tells_) {
    tell_user(fmt::format("here the program may not have all that it had, and goes on without: {}",
                          answer->why));
  }
  return told_by_process(answer.ok() ? Status() : Status(answer.error()));
}

void ImageTarget::go() {
  if (ended_) return;
  Request request{};
  request.kind = static_cast<std::uint32_t>(Ask::go);
  failpoint("image.go");
  boot_->begin(request);
}

}  // namespace backstay::image
