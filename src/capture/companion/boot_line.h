// One end of the line to a boot program or to a snapshot (format/requests.h). Any thread; blocks.
#pragma once

#include <optional>

#include "base/result.h"
#include "capture/image/format/requests.h"

namespace backstay::image {

// `descriptor`: goes along; -1: none. One that has ended is noticed by receive_answer().
void send_request(int line, const Request& request, int descriptor = -1);
// nullopt: the other end has gone, and has left no answer.
std::optional<Answer> receive_answer(int line);
// The answer, or its refusal: again, busy, unsupported or mismatch, as BootProcess::ask() has them.
Result<Answer> allowed(const Answer& answer);

}  // namespace backstay::image
