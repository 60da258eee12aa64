#include "capture/companion/image_source.h"

#include <algorithm>
#include <cstring>

#include "base/failpoint.h"

namespace backstay::image {

Result<std::unique_ptr<client::ObjectSource>> ImageSource::begin(BootProcess& boot,
                                                                 client::Connection& agent,
                                                                 const std::string& notes,
                                                                 bool tersely) {
  Request request{};
  request.kind = static_cast<std::uint32_t>(Ask::cut);
  request.tersely = tersely ? 1 : 0;
  std::memcpy(request.notes, notes.data(), std::min<std::size_t>(notes.size(), notes_max - 1));
  // A program that is just replacing itself answers when it is another one.
  for (;;) {
    BACKSTAY_TRY(boot.lend(agent.pool()));
    const auto answer = boot.ask(request);
    if (answer.ok()) {
      failpoint("image.cut");
      return std::unique_ptr<client::ObjectSource>(new ImageSource(boot, answer.value().bytes));
    }
    if (answer.error().code() != Code::again) return answer.error();
  }
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
