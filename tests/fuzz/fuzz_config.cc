#include "base/config.h"
#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto config = backstay::parse_config(text, "fuzz.toml");
  if (config.ok()) {
    FUZZ_PROMISE(backstay::config_values(*config).size() == backstay::config_keys().size());
  } else {
    FUZZ_PROMISE(config.error().code() == backstay::Code::config);
    FUZZ_PROMISE(!config.error().message().empty());
  }
  return 0;
}
