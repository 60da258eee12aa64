#include "agent/redundancy/stripe_coder.h"

#include <algorithm>
#include <utility>

namespace backstay::agent {

void StripeCoder::combine(protect::Combination how, std::vector<CombinedSource> sources, Outs outs,
                          Done done) {
  BACKSTAY_CHECK(!outs.empty() && outs.front().size() <= scratch_.buffer_bytes());
  auto work = std::make_shared<Work>(
      Work{std::move(how), std::move(sources), std::move(outs), std::move(done)});
  ++under_way_;
  work->scratch = scratch_.take();
  if (!work->scratch) return line_.push_back(std::move(work));
  go_on(work);
}

void StripeCoder::go_on(const WorkPtr& work) {
  while (work->next < work->sources.size() && work->sources[work->next].bytes == 0) ++work->next;
  if (work->next == work->sources.size()) {
    if (!work->empty) return end(work, {}, std::nullopt);
    return peer_files_.post(Compute{
        [work] { clear(*work); },
        callback_guard_([this, work](const Status& status) { end(work, status, std::nullopt); })});
  }
  const CombinedSource& source = work->sources[work->next];
  reader_.read(source.holder, source.file, source.offset, work->scratch->span().first(source.bytes),
               callback_guard_([this, work](const Status& status) {
                 if (!status.ok()) return end(work, status, work->next);
                 take_in(work);
               }));
}

void StripeCoder::clear(const Work& work) {
  for (const std::span<std::byte> out : work.outs) std::ranges::fill(out, std::byte{0});
}

void StripeCoder::take_in(const WorkPtr& work) {
  const Bytes source = work->scratch->span().first(work->sources[work->next].bytes);
  const bool first = std::exchange(work->empty, false);
  auto add = [work, source, first, which = static_cast<std::uint32_t>(work->next)] {
    if (first) clear(*work);
    work->how.add(which, source, work->outs);
  };
  peer_files_.post(Compute{std::move(add), callback_guard_([this, work](const Status&) {
                             ++work->next;
                             go_on(work);
                           })});
}

void StripeCoder::later(std::function<void()> answer) {
  peer_files_.post(
      Compute{[] {}, callback_guard_([answer = std::move(answer)](const Status&) { answer(); })});
}

void StripeCoder::end(const WorkPtr& work, const Status& status,
                      std::optional<std::size_t> source) {
  --under_way_;
  work->scratch.reset();
  if (!line_.empty()) {
    const WorkPtr next = std::move(line_.front());
    line_.pop_front();
    next->scratch = scratch_.take();
    go_on(next);
  }
  std::exchange(work->done, nullptr)(status, source);
}

}  // namespace backstay::agent
