#include "capture/companion/options.h"

namespace backstay::image {

std::optional<Options> read_options(const std::vector<std::string>& arguments) {
  Options options;
  if (arguments == std::vector<std::string>{"--check"}) {
    options.check = true;
    return options;
  }
  std::size_t at = 0;
  for (; at + 1 < arguments.size() && arguments[at] != "--"; at += 2) {
    const std::string& value = arguments[at + 1];
    if (arguments[at] == "--launcher") {
      options.launcher = meet::launcher_of(value);
      if (!options.launcher) return std::nullopt;
    } else if (arguments[at] == "--mpi") {
      options.mpi = value;
    } else if (arguments[at] == "--contents") {
      options.contents += value + "\n";
    } else {
      return std::nullopt;
    }
  }
  if (at + 1 >= arguments.size() || arguments[at] != "--") return std::nullopt;
  options.words.assign(arguments.begin() + static_cast<std::ptrdiff_t>(at) + 1, arguments.end());
  return options;
}

}  // namespace backstay::image
