// Groups of neighbouring ranks (paper 004: np ranks, nf files, ng writers): arithmetic.
#pragma once

namespace backstay::strategy {

// `count` things in order are shared out equally: shares differ by one at most. `shares`: at most
// `count`.
constexpr int first_of_share(int share, int count, int shares) {
  return static_cast<int>(static_cast<long>(share) * count / shares);
}
constexpr int share_of(int which, int count, int shares) {
  return static_cast<int>((static_cast<long>(which + 1) * shares - 1) / count);
}

// Groups of `each` ranks; the last one may be smaller. The first rank of a group writes for it.
constexpr int groups_of(int ranks, int each) { return (ranks + each - 1) / each; }

}  // namespace backstay::strategy
