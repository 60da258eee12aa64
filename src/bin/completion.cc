// `backstay completion`: made from the parser itself, so that it cannot lag behind.
#include <fmt/format.h>

#include <memory>

#include "bin/command.h"
#include "bin/exit_code.h"

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

// What else may stand after `backstay NAME`: names of jobs, fixed words.
std::string words_after(const CLI::App& sub) {
  if (sub.get_name() == "completion") return "bash zsh";
  if (sub.get_name() == "agent") return "start stop status";
  if (sub.get_name() == "plan")
    return "interval multilevel model fill-time strategy aggregation survive cost validate figures "
           "replay advise explore";
  const CLI::Option* job = sub.get_option_no_throw("job");
  return job ? "$(backstay ls --names 2>/dev/null)" : "";
}

std::string cases(const CLI::App& root, const char* form) {
  std::string text;
  for (const CLI::App* sub : root.get_subcommands([](const CLI::App*) { return true; }))
    text += fmt::format(fmt::runtime(form), sub->get_name(), joined(option_names(*sub)),
                        words_after(*sub));
  return text;
}

void print_bash(const CLI::App& root) {
  fmt::print(
      "# Completion of backstay for bash: eval \"$(backstay completion bash)\"\n"
      "_backstay() {{\n"
      "  local word=\"${{COMP_WORDS[COMP_CWORD]}}\" options= words=\n"
      "  case \"${{COMP_WORDS[COMP_CWORD-1]}}\" in\n"
      "    --config|--dir|--to|--from|-o|--output) COMPREPLY=($(compgen -f -- \"$word\")); "
      "return;;\n"
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
      joined(subcommand_names(root)), cases(root, "    {}) options=\"{}\" words=\"{}\";;\n"));
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

void print_zsh(const CLI::App& root) {
  fmt::print(
      "#compdef backstay\n"
      "# Completion of backstay for zsh: eval \"$(backstay completion zsh)\", or a file _backstay "
      "in "
      "$fpath\n"
      "_backstay() {{\n"
      "  local -a commands options extra\n"
      "  commands=(\n{}  )\n"
      "  if (( CURRENT == 2 )); then _describe command commands; return; fi\n"
      "  case $words[CURRENT-1] in --config|--dir|--to|--from|-o|--output) _files; return;; esac\n"
      "  case $words[2] in\n{}  esac\n"
      "  if [[ $words[CURRENT] == -* ]]; then compadd -- $options\n"
      "  elif (( $#extra )); then compadd -- $extra\n"
      "  else _files; fi\n"
      "}}\n"
      "compdef _backstay backstay\n",
      described_subcommands(root), cases(root, "    {}) options=({}) extra=({});;\n"));
}

}  // namespace

Action declare_completion(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  app.add_option("shell", *shell, "bash or zsh")->required()->check(CLI::IsMember({"bash", "zsh"}));
  app.footer(
      "Examples:\n"
      "  eval \"$(backstay completion bash)\"      in ~/.bashrc\n"
      "  eval \"$(backstay completion zsh)\"       in ~/.zshrc, after compinit");
  return [shell, &app]() -> Result<int> {
    if (*shell == "bash")
      print_bash(*app.get_parent());
    else
      print_zsh(*app.get_parent());
    return exit_ok;
  };
}

}  // namespace backstay::bin
