#include "bench/harness/program.h"

#include <cstdio>

namespace backstay::bench {

int run_program(CLI::App& app, CommonOptions& options, int argc, char** argv,
                const std::function<nlohmann::json()>& run,
                const std::function<void(const nlohmann::json&)>& print_table) {
  app.add_option("--repetitions", options.repetitions)->check(CLI::Range(1, 1000));
  app.add_option("--dir", options.dir,
                 "folder on the disk to measure; must not hold anything else");
  app.add_option("--agent", options.agent, "path of backstayd");
  app.add_flag("--json", options.json, "print JSON instead of a table");
  CLI11_PARSE(app, argc, argv);
  const nlohmann::json json = run();
  if (options.json) {
    std::printf("%s\n", json.dump(2).c_str());
  } else {
    print_table(json);
  }
  return 0;
}

}  // namespace backstay::bench
