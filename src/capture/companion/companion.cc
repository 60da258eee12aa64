// backstay-companion: one rank of a job whose program is not modified
// (docs/guide/transparent.md). options.h has its command line.
//
// `backstay run --transparent` starts it with the variables that a program's library would read:
// alone, or behind a launcher, once for each process of the program. It goes on from the job's
// newest version, else starts the program; saves it when the settings say so, or when asked; and
// ends as it ends.
#include <fmt/format.h>

#include "base/tell.h"
#include "capture/companion/check.h"
#include "capture/companion/rank.h"

namespace backstay::image {
namespace {

int print_check() {
  const Status good = check_saving();
  if (!good.ok()) fmt::print("{}\n", good.error().message());
  return 0;
}

}  // namespace
}  // namespace backstay::image

int main(int count, char** words) {
  const auto options = backstay::image::read_options({words + 1, words + count});
  if (!options) {
    backstay::tell_user("backstay-companion is started by `backstay run --transparent`");
    return 2;
  }
  if (options->check) return backstay::image::print_check();
  return backstay::image::Rank(*options).run();
}
