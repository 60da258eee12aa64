#include "base/at_once.h"

#include <algorithm>
#include <cstddef>
#include <system_error>
#include <thread>

namespace backstay {

void run_in_turn(const Pieces& pieces) {
  for (const auto& piece : pieces) piece();
}

void run_at_once(const Pieces& pieces) {
  constexpr std::size_t threads_max = 32;
  for (std::size_t at = 0; at < pieces.size();) {
    std::vector<std::thread> threads;
    const std::size_t end = std::min(pieces.size(), at + threads_max);
    for (; at + 1 < end; ++at) {
      try {
        threads.emplace_back(pieces[at]);
      } catch (const std::system_error&) {
        pieces[at]();
      }
    }
    pieces[at++]();  // this thread would only wait
    for (std::thread& thread : threads) thread.join();
  }
}

}  // namespace backstay
