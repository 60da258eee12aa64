#include "bench/harness/program.h"

#include <cstdio>
#include <exception>

namespace backstay::bench {

namespace {

int parse_and_run(const char* description, CommonOptions& options, int argc, char** argv,
                  const Program& program) {
  CLI::App app(description);
  program.add_options(app);
  app.add_option("--repetitions", options.repetitions)->check(CLI::Range(1, 1000));
  app.add_option("--dir", options.dir,
                 "folder on the disk to measure; must not hold anything else");
  app.add_option("--agent", options.agent, "path of backstayd");
  app.add_flag("--json", options.json, "print JSON instead of a table");
  CLI11_PARSE(app, argc, argv);
  const nlohmann::json json = program.run();
  if (options.json) {
    std::printf("%s\n", json.dump(2).c_str());
  } else {
    program.print_table(json);
  }
  return 0;
}

}  // namespace

void ShapeOptions::add_to(CLI::App& app) {
  app.add_option("--ranks", ranks, "processes")->check(CLI::Range(1, 1024));
  app.add_option("--mib", mib, "MiB of each process")->check(CLI::Range(1, 1 << 20));
}

int run_program(const char* description, CommonOptions& options, int argc, char** argv,
                const Program& program) {
  try {
    return parse_and_run(description, options, argc, argv, program);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s: %s\n", argv[0], failure.what());
    return 1;
  }
}

}  // namespace backstay::bench
