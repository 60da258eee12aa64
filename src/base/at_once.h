// Several pieces of blocking work at the same time: a file system that is asked for many syncs at
// once serves them together.
#pragma once

#include <functional>
#include <vector>

namespace backstay {

using Pieces = std::vector<std::function<void()>>;

// Runs all and returns when the last one is done. One runs in the caller's thread, others in a
// thread each, at most 31 at a time; where no thread can be had, in the caller's too. Pieces throw
// nothing.
void run_at_once(const Pieces& pieces);

// One after the other, in their order.
void run_in_turn(const Pieces& pieces);

}  // namespace backstay
