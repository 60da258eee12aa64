// `backstay`: the table of subcommands and the way from a command line to an exit code.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>

#include "base/check.h"
#include "base/edit_distance.h"
#include "bin/commands/python.h"
#include "bin/parts/command.h"
#include "bin/parts/exit_code.h"
#include "bin/parts/print.h"
#include "bin/parts/progress.h"
#include "bin/parts/settings.h"

namespace backstay::bin {
namespace {

constexpr std::string_view running = "Run and steer";
constexpr std::string_view versions = "Look at versions";
constexpr std::string_view machine = "This machine";
constexpr std::string_view about = "About Backstay";

// This command only shows its own help: as_help() has made `--help` of every other question.
Action declare_help(CLI::App& app) {
  app.footer(
      "Examples:\n"
      "  backstay help run\n"
      "  backstay help plan interval\n"
      "`man backstay-COMMAND` is the same text.");
  return [] { return exit_ok; };
}

constexpr Command commands[] = {
    {"run", running, "Start a program and restart it from its newest version when it fails",
     declare_run},
    {"exec", running, "Become a program whose job is set up and whose files are captured",
     declare_exec},
    {"mount", running, "Show a folder at another place, where written files are captured",
     declare_mount},
    {"unmount", running, "End a mount once its files are at their places", declare_unmount},
    {"checkpoint", running, "Ask a running job for a checkpoint", declare_checkpoint},
    {"status", running, "What this node's agent is doing", declare_status},
    {"top", running, "What this node's agent is doing, live", declare_top},
    {"agent", running, "Start or stop this node's agent", declare_agent},
    {"ls", versions, "List jobs, or the versions of one", declare_ls},
    {"show", versions, "The regions of a version: type, shape, bytes, ranks", declare_show},
    {"verify", versions, "Read versions and check every checksum", declare_verify},
    {"copy", versions, "Copy a version to another folder, or back", declare_copy},
    {"rm", versions, "Remove versions", declare_rm},
    {"doctor", machine, "Check this machine and say what to do", declare_doctor},
    {"probe", machine, "Measure memory, disk and network once and keep the result", declare_probe},
    {"config", machine, "Show the configuration, or explain its keys", declare_config},
    {"completion", about, "Print the completion script of a shell", declare_completion},
    {"version", about, "Print the release", declare_version},
    {"help", about, "Show all commands, or the help of one", declare_help},
};

using Words = std::vector<std::string>;

// Nothing and `help [COMMAND]` as what they mean.
Words as_help(Words words) {
  const bool of_itself = words.size() == 2 && words[1] == "--help";
  if (words.empty() || (words[0] == "help" && !of_itself)) {
    if (!words.empty()) words.erase(words.begin());
    words.emplace_back("--help");
  }
  return words;
}

std::size_t help_columns() {
  const char* said = std::getenv("COLUMNS");
  const int columns = said != nullptr ? std::atoi(said) : 0;
  return static_cast<std::size_t>(std::max(columns > 0 ? columns : terminal_columns(1), 50));
}

// A line that is too long goes on below the place where its text began, if there is room for
// `text_least`. Examples stay whole.
std::string folded(const std::string& text, std::size_t columns) {
  constexpr std::size_t text_least = 24;
  std::string out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t began = std::min(line.find_first_not_of(' '), line.size());
    const std::size_t first = began + text_least > columns ? 6 : began;
    line.erase(0, began - first);
    const std::size_t gap = std::min(line.find("  ", first), line.size());  // behind a name
    const std::size_t text_at = line.find_first_not_of(' ', gap < line.size() ? gap : first);
    const std::size_t indent = text_at + text_least <= columns ? text_at : first + 4;
    std::size_t least = first + 1;
    if (first == 2 && line.find("backstay ") < gap) least = gap;
    if (line.starts_with("Example: ")) least = line.size();
    for (; line.size() > columns; least = indent + 1) {
      std::size_t at = line.rfind(' ', columns);
      if (at == std::string::npos || at < least) at = line.find(' ', least);
      if (at == std::string::npos) break;
      out += line.substr(0, line.find_last_not_of(' ', at) + 1) + "\n";
      line = std::string(indent, ' ') + line.substr(line.find_first_not_of(' ', at));
    }
    out += line + "\n";
  }
  return out;
}

// Help that opens with one example.
class ExampleFirst : public CLI::Formatter {
 public:
  explicit ExampleFirst(std::string example) : example_(std::move(example)) {}
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    const std::string rest = CLI::Formatter::make_help(app, std::move(name), mode);
    return folded(fmt::format("Example: {}\n\n{}", example_, rest), help_columns());
  }

 private:
  const std::string example_;
};

// The first example of the footer becomes the first line of the help; the others stay.
void open_with_example(CLI::App& app) {
  constexpr std::string_view title = "Examples:\n";
  std::string footer = app.get_footer();
  const std::size_t at = footer.find(title);
  BACKSTAY_CHECK(at != std::string::npos);
  const std::size_t example = at + title.size();
  const std::size_t end = std::min(footer.find('\n', example), footer.size());
  const std::size_t text = footer.find_first_not_of(' ', example);
  app.formatter(std::make_shared<ExampleFirst>(footer.substr(text, end - text)));
  const bool more = footer.compare(end, 3, "\n  ") == 0;
  footer.erase(more ? example : at, end + 1 - (more ? example : at));
  app.footer(footer);
}

// Looked up in the words themselves, so that a command line that cannot be read is reported as JSON
// too.
bool wants_json(const Words& words) {
  const auto ours = std::find(words.begin(), words.end(), "--");  // the rest is a program's
  return std::find(words.begin(), ours, "--json") != ours;
}

void print_error(Code code, const std::string& message) {
  print_json({{"error", {{"code", code_name(code)}, {"message", message}}}});
}

int report(const Error& error, bool json) {
  to_stderr(fmt::format("backstay: {}\n", printable(error.message(), "\n")));
  if (json) print_error(error.code(), error.message());
  return exit_code_of(error.code());
}

std::string nearest_option(const std::string& name, const CLI::App& command) {
  std::string nearest = "--help";
  for (const CLI::Option* one : command.get_options()) {
    for (const std::string& known : one->get_lnames()) {
      if (edit_distance(name, "--" + known) < edit_distance(name, nearest)) nearest = "--" + known;
    }
  }
  return nearest;
}

// The message for the first word that looks like an option and is none of its command; empty if
// there is no such word.
std::string unknown_option(const Words& words, const CLI::App& app) {
  const CLI::App* command = &app;
  std::string title = "backstay";
  for (const std::string& word : words) {
    if (word == "--") break;
    if (!word.starts_with("--")) {
      const auto inner =
          command->get_subcommands([&](const CLI::App* one) { return one->get_name() == word; });
      if (!inner.empty()) command = inner.front(), title += " " + word;
      continue;
    }
    const std::string name = word.substr(0, word.find('='));
    if (command->get_option_no_throw(name) == nullptr)
      return fmt::format("{} has no option {}; did you mean {}? `{} --help` lists all", title, name,
                         nearest_option(name, *command), title);
  }
  return "";
}

int report_usage(const CLI::App& app, const CLI::ParseError& failure, bool json) {
  app.exit(failure);
  if (failure.get_exit_code() == 0) return exit_ok;  // help
  if (json) print_error(Code::invalid, failure.what());
  return exit_usage;
}

// The message for a first word that is meant as a command and is none, with the nearest command.
std::string unknown_command(const Words& words, const CLI::App& app) {
  if (words.empty() || words[0].empty() || words[0].front() == '-') return "";
  const auto all = app.get_subcommands([](const CLI::App*) { return true; });
  const auto distance = [&](const CLI::App* one) {
    return edit_distance(words[0], one->get_name());
  };
  if (std::any_of(all.begin(), all.end(), [&](const auto* one) { return distance(one) == 0; }))
    return "";
  const auto* nearest =
      *std::min_element(all.begin(), all.end(),
                        [&](const auto* a, const auto* b) { return distance(a) < distance(b); });
  return fmt::format("there is no command '{}'; did you mean '{}'? `backstay --help` lists all",
                     words[0], nearest->get_name());
}

// Reads the configuration here, once for all languages; Python finds the folder in BACKSTAY_DIR.
int run_python_command(const Words& arguments) {
  Settings settings;
  // The words behind "--" are a program's.
  for (std::size_t i = 0; i < arguments.size() && arguments[i] != "--"; ++i) {
    if (arguments[i] == "--config" && i + 1 < arguments.size())
      settings.config_file = arguments[i + 1];
    if (arguments[i].starts_with("--config=")) settings.config_file = arguments[i].substr(9);
  }
  const auto config = load_for_versions(settings);
  if (!config.ok()) return report(config.error(), wants_json(arguments));
  ::setenv("BACKSTAY_DIR", config->storage.dir.c_str(), 1);
  return report(run_in_python(arguments), wants_json(arguments));
}

// Help lists Python's commands beside the others: its readers look for a command.
void declare_python_commands(CLI::App& app) {
  for (const PythonCommand& command : python_commands())
    app.add_subcommand(std::string(command.name), std::string(command.summary))
        ->group(std::string(command.group))
        ->prefix_command();
}

int run(int argc, char** argv) {
  const Words words = as_help(Words(argv + 1, argv + argc));
  if (!words.empty() && is_python_command(words[0])) return run_python_command(words);
  CLI::App app{"Backstay keeps long parallel jobs alive: fast, safe checkpoints for MPI programs."};
  app.name("backstay");
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("backstay ") + BACKSTAY_VERSION);
  app.footer(
      "Examples:\n"
      "  backstay run -- mpirun -n 4 ./lj in.lj   starts it again when it fails\n"
      "`backstay help COMMAND` shows a command's options, examples and exit codes.");
  open_with_example(app);
  std::map<const CLI::App*, Action> actions;
  for (const Command& command : commands) {
    CLI::App* sub = app.add_subcommand(std::string(command.name), std::string(command.summary));
    sub->group(std::string(command.group));
    actions[sub] = command.declare(*sub);
    open_with_example(*sub);
  }
  declare_python_commands(app);
  if (const std::string message = unknown_command(words, app); !message.empty()) {
    return report(Error(Code::invalid, message), wants_json(words));
  }
  try {
    app.parse(Words(words.rbegin(), words.rend()));  // the parser takes them from the end
  } catch (const CLI::ExtrasError& failure) {
    const std::string message = unknown_option(words, app);
    if (message.empty()) return report_usage(app, failure, wants_json(words));
    return report(Error(Code::invalid, message), wants_json(words));
  } catch (const CLI::ParseError& failure) {
    return report_usage(app, failure, wants_json(words));
  }
  const CLI::App* chosen = app.get_subcommands().front();
  const Result<int> done = actions.at(chosen)();
  return done.ok() ? *done : report(done.error(), wants_json(words));
}

}  // namespace
}  // namespace backstay::bin

int main(int argc, char** argv) {
  try {
    const int code = backstay::bin::run(argc, argv);
    // A full disk behind `> file` must not look like success.
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
    backstay::bin::to_stderr(
        fmt::format("backstay: the output could not be written: {}\n", std::strerror(errno)));
    return backstay::bin::exit_failed;
  } catch (const std::system_error& failure) {  // fmt could not write
    backstay::bin::to_stderr(fmt::format("backstay: {}\n", failure.what()));
    return backstay::bin::exit_failed;
  } catch (const std::exception& failure) {
    backstay::bin::to_stderr(fmt::format("backstay: internal error: {}\n", failure.what()));
    return backstay::bin::exit_failed;
  }
}
