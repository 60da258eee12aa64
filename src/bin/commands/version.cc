// `backstay version`: the release, and the numbers of protocol and format.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "bin/parts/command.h"
#include "bin/parts/exit_code.h"
#include "bin/parts/print.h"
#include "format/number.h"
#include "wire/message.h"

namespace backstay::bin {

Action declare_version(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  app.add_flag("--json", *json, "Print JSON");
  app.footer("Examples:\n  backstay version --json");
  return [json]() -> Result<int> {
    if (*json)
      print_json({{"release", BACKSTAY_VERSION},
                  {"protocol", wire::protocol_version},
                  {"format", format::format_number}});
    else
      fmt::print("backstay {}\nprotocol {}, format {}\n", BACKSTAY_VERSION, wire::protocol_version,
                 format::format_number);
    return exit_ok;
  };
}

}  // namespace backstay::bin
