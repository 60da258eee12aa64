// `backstay completion`: made from the parser itself, so that it cannot lag behind.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "bin/commands/python.h"
#include "bin/parts/command.h"
#include "bin/parts/exit_code.h"
#include "bin/parts/print.h"

namespace backstay::bin {
namespace {

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

std::vector<std::string> subcommand_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(sub->get_name());
  return names;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// The words that may follow `backstay NAME`: names of jobs, fixed words.
std::string words_after(const CLI::App& sub) {
  if (sub.get_name() == "completion") return "bash zsh";
  if (sub.get_name() == "help") return joined(subcommand_names(*sub.get_parent()));
  if (sub.get_name() == "agent") return "start stop status";
  if (sub.get_name() == "tune") return "";  // a folder
  if (sub.get_name() == "plan")
    return "interval multilevel model fill-time strategy aggregation survive cost validate figures "
           "replay advise explore";
  const bool takes_job = sub.get_option_no_throw("job") || is_python_command(sub.get_name());
  return takes_job ? "$(backstay ls --names 2>/dev/null)" : "";
}

// Python's parsers know the options of their commands; they are asked where an option is typed,
// because their start takes a moment. `question`: the shell's variable for the word after `plan`.
std::string options_after(const CLI::App& sub, std::string_view question) {
  if (!is_python_command(sub.get_name())) return joined(option_names(sub));
  return fmt::format("$(backstay {}{} --help 2>/dev/null | grep -oE -- '--[a-z][-a-z]*' | sort -u)",
                     sub.get_name(), sub.get_name() == "plan" ? fmt::format(" {}", question) : "");
}

struct Form {
  const char* compiled;  // name, options, words
  const char* python;    // the same, its options only where a word begins with "-"
  const char* question;
};

std::string cases(const CLI::App& root, const Form& form) {
  std::string text;
  for (const CLI::App* sub : root.get_subcommands([](const CLI::App*) { return true; }))
    text +=
        fmt::format(fmt::runtime(is_python_command(sub->get_name()) ? form.python : form.compiled),
                    sub->get_name(), options_after(*sub, form.question), words_after(*sub));
  return text;
}

std::string bash_script(const CLI::App& root) {
  return fmt::format(
      "# Completion of backstay for bash: eval \"$(backstay completion bash)\"\n"
      "_backstay() {{\n"
      "  local word=\"${{COMP_WORDS[COMP_CWORD]}}\" options= words=\n"
      "  case \"${{COMP_WORDS[COMP_CWORD-1]}}\" in\n"
      "    --from) [ \"${{COMP_WORDS[1]}}\" = copy ] || return\n"
      "      COMPREPLY=($(compgen -f -- \"$word\")); return;;\n"
      "    --config|--dir|--to|--over|-o|--output)\n"
      "      COMPREPLY=($(compgen -f -- \"$word\")); return;;\n"
      "  esac\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    COMPREPLY=($(compgen -W \"{} --help --version\" -- \"$word\")); return\n"
      "  fi\n"
      "  case \"${{COMP_WORDS[1]}}\" in\n{}  esac\n"
      "  case \"$word\" in\n"
      "    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$word\"));;\n"
      "    *) COMPREPLY=($(compgen -W \"$words\" -- \"$word\"));;\n"
      "  esac\n"
      "}}\n"
      "complete -o default -F _backstay backstay\n",
      joined(subcommand_names(root)),
      cases(root, {"    {}) options=\"{}\" words=\"{}\";;\n",
                   "    {}) case \"$word\" in -*) options=\"{}\";; *) words=\"{}\";; esac;;\n",
                   "\"${COMP_WORDS[2]}\""}));
}

std::string described_subcommands(const CLI::App& root) {
  std::string text;
  for (const CLI::App* sub : root.get_subcommands([](const CLI::App*) { return true; })) {
    std::string summary = sub->get_description();
    for (std::size_t at = 0; (at = summary.find('\'', at)) != std::string::npos; at += 4)
      summary.replace(at, 1, "'\\''");
    text += fmt::format("    '{}:{}'\n", sub->get_name(), summary);
  }
  return text;
}

std::string zsh_script(const CLI::App& root) {
  return fmt::format(
      "#compdef backstay\n"
      "# Completion of backstay for zsh: eval \"$(backstay completion zsh)\", or a file _backstay "
      "in "
      "$fpath\n"
      "_backstay() {{\n"
      "  local -a commands options extra\n"
      "  commands=(\n{}  )\n"
      "  if (( CURRENT == 2 )); then _describe command commands; return; fi\n"
      "  case $words[CURRENT-1] in\n"
      "    --from) [[ $words[2] != copy ]] || _files; return;;\n"
      "    --config|--dir|--to|--over|-o|--output) _files; return;;\n"
      "  esac\n"
      "  case $words[2] in\n{}  esac\n"
      "  if [[ $words[CURRENT] == -* ]]; then compadd -- $options\n"
      "  elif (( $#extra )); then compadd -- $extra\n"
      "  else _files; fi\n"
      "}}\n"
      "compdef _backstay backstay\n",
      described_subcommands(root),
      cases(root,
            {"    {}) options=({}) extra=({});;\n",
             "    {}) if [[ $words[CURRENT] == -* ]]; then options=({}); else extra=({}); fi;;\n",
             "\"$words[3]\""}));
}

}  // namespace

Action declare_completion(CLI::App& app) {
  struct CompletionOptions {
    std::string shell;
    bool json = false;
  };
  auto options = std::make_shared<CompletionOptions>();
  app.add_option("shell", options->shell, "bash or zsh")
      ->type_name("SHELL")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh"}).description(""));
  app.add_flag("--json", options->json, "Print JSON (its keys are stable)");
  app.footer(
      "Examples:\n"
      "  eval \"$(backstay completion bash)\"      in ~/.bashrc\n"
      "  eval \"$(backstay completion zsh)\"       in ~/.zshrc, after compinit");
  return [options, &app]() -> Result<int> {
    const CLI::App& root = *app.get_parent();
    const std::string script = options->shell == "bash" ? bash_script(root) : zsh_script(root);
    if (options->json)
      print_json({{"shell", options->shell}, {"script", script}});
    else
      fmt::print("{}", script);
    return exit_ok;
  };
}

}  // namespace backstay::bin
