#include "capture/companion/image_source.h"

#include <algorithm>
#include <cstring>

#include "base/failpoint.h"

namespace backstay::image {

Result<std::unique_ptr<ImageSource>> ImageSource::begin(BootProcess& boot,
                                                        client::Connection& agent,
                                                        const What& what) {
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
      std::unique_ptr<ImageSource> source(new ImageSource(boot, *answer));
      BACKSTAY_TRY(source->ask_kept(what.base));
      return source;
    }
    if (answer.error().code() != Code::again) return answer.error();
  }
}

Status ImageSource::ask_kept(VersionNumber base) {
  kept_.base = base;
  Request request{};
  request.kind = static_cast<std::uint32_t>(Ask::kept);
  for (std::uint64_t bytes = 0; bytes < kept_bytes_;) {
    request.at = kept_.chunks.size();
    BACKSTAY_ASSIGN(const Answer answer, boot_.ask(request));
    for (const KeptChunk& one : answer.kept) {
      if (one.bytes == 0) break;
      kept_.chunks.push_back({one.offset, static_cast<std::uint32_t>(one.bytes)});
      bytes += one.bytes;
    }
    if (answer.kept[0].bytes == 0) return Error(Code::internal, "a kept chunk is missing");
  }
  return {};
}

ImageSource::~ImageSource() { ImageSource::complete(); }

Result<std::uint64_t> ImageSource::read_next(std::span<std::byte> to) {
  Request request{};
  request.kind = static_cast<std::uint32_t>(Ask::fill);
  request.at = boot_.in_pool(to);
  request.bytes = to.size();
  BACKSTAY_ASSIGN(const Answer answer, boot_.ask(request));
  return answer.sum;
}

void ImageSource::complete() {
  if (!stopped_) return;
  stopped_ = false;
  failpoint("image.resume");
  Request request{};
  request.kind = static_cast<std::uint32_t>(Ask::resume);
  (void)boot_.ask(request);  // a program that has ended needs none
}

}  // namespace backstay::image
