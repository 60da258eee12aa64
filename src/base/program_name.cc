#include "base/program_name.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <string_view>

namespace backstay {

namespace {

using Words = std::vector<std::string>;
using IsProgram = std::function<bool(const std::string&)>;

// Lists are words between blanks.
bool lists(std::string_view list, std::string_view word) {
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = std::min(list.find(' ', at), list.size());
    if (list.substr(at, end - at) == word) return true;
    at = end + 1;
  }
  return false;
}

std::string file_name(const std::string& word) {
  return std::filesystem::path(word).filename().string();
}

bool is_option(const std::string& word) { return word.empty() || word.front() == '-'; }

// --- what runs the rest of its line --------------------------------------------------------------

struct Wrapper {
  std::string_view names;
  std::string_view values;       // options whose value is the next word
  unsigned words = 0;            // words before the program
  std::string_view marker = {};  // the program follows this option
};

constexpr std::array wrappers = {
    Wrapper{"env", "-u --unset -C --chdir -S --split-string"},
    Wrapper{"nice", "-n --adjustment"},
    Wrapper{"ionice", "-c --class -n --classdata"},
    Wrapper{"numactl",
            "-i --interleave -C --physcpubind -N --cpunodebind -m --membind -p --preferred"},
    Wrapper{"timeout", "-s --signal -k --kill-after", 1},
    Wrapper{"time", "-f --format -o --output"},
    Wrapper{"stdbuf", "-i --input -o --output -e --error"},
    Wrapper{"taskset chrt setarch", "", 1},
    Wrapper{"nohup setsid unbuffer catchsegv valgrind", ""},
    Wrapper{"sudo", "-u -g -C -D -h -p -R -T"},
    Wrapper{"perf",
            "-e --event -o --output -F --freq -c --count -m --mmap-pages -C --cpu -r --repeat -G "
            "--cgroup -x --field-separator -I --interval-print -D --delay --call-graph -j -u --uid",
            1},
    Wrapper{"nsys", "-o --output -t --trace -s --sample -c --capture-range", 1},
    Wrapper{"gdb cuda-gdb",
            "-x -ex -iex -ix -d -cd -D --command --eval-command --init-command --cd --directory"},
    Wrapper{"strace ltrace", "-o -e -s -u -p -E -P -a -I -O -S -X -b"},
    Wrapper{"apptainer singularity", "-B --bind --env --env-file -H --home --overlay -W --pwd", 2},
    Wrapper{"xterm uxterm konsole xfce4-terminal", "", 0, "-e"},
    Wrapper{"gnome-terminal", "", 0, "--"},
};

constexpr std::string_view launchers =
    "mpirun mpiexec orterun prterun srun aprun jsrun ibrun mpirun_rsh";

}  // namespace

bool is_launcher(const std::string& name) {
  return lists(launchers, name.substr(0, name.find('.')));  // mpirun.openmpi
}

namespace {

const Wrapper* wrapper_of(const std::string& name) {
  static constexpr Wrapper launcher{"", ""};  // its values are numbers and words, not programs
  if (is_launcher(name)) return &launcher;
  const auto found =
      std::ranges::find_if(wrappers, [&](const Wrapper& one) { return lists(one.names, name); });
  return found == wrappers.end() ? nullptr : &*found;
}

// The place of the first word of the command that the wrapper at `at` runs.
std::size_t behind_wrapper(const Words& words, std::size_t at, const Wrapper& wrapper,
                           const IsProgram& is_program) {
  unsigned left = wrapper.words;
  for (++at; at < words.size(); ++at) {
    const std::string& word = words[at];
    if (!wrapper.marker.empty()) {
      if (word == wrapper.marker) return at + 1;
    } else if (is_option(word)) {
      if (lists(wrapper.values, word)) ++at;
    } else if (left > 0) {
      --left;
    } else if (is_program(word)) {
      return at;
    }
  }
  return at;
}

// --- interpreters --------------------------------------------------------------------------------

struct Interpreter {
  std::string_view names;
  std::string_view code;         // letters of options after which there is no script
  std::string_view values;       // letters of options that take a value
  std::string_view module = {};  // letters of options whose value is the script or the module
  std::string_view long_code = {};
  std::string_view long_values = {};
};

constexpr std::array interpreters = {
    Interpreter{"python pypy ipython", "c", "WX", "m", "", "--check-hash-based-pycs"},
    Interpreter{"julia", "eE", "CHJLpt", "m", "--eval --print",
                "--home --load --sysimage --procs --threads --gcthreads --machine-file "
                "--cpu-target --heap-size-hint"},
    Interpreter{"Rscript", "e", ""},
    Interpreter{"R", "e", "gd", "f", "", "--gui --debugger"},
    Interpreter{"octave octave-cli", "", "p", "", "--eval",
                "--path --exec-path --image-path --info-file --info-program --doc-cache-file "
                "--texi-macros-file --built-in-docstrings-file"},
    Interpreter{"bash sh dash zsh ksh", "cs", "oO", "", "", "--rcfile --init-file"},
    Interpreter{"perl", "eE", "I"},
    Interpreter{"ruby", "e", "Ir"},
    Interpreter{"lua luajit", "e", "l"},
    Interpreter{"fish", "c", "CdDfo", "", "--command", "--init-command"},
    Interpreter{"tclsh wish expect", "c", "", "f"},
    Interpreter{"php", "rBR", "cdz", "f", "--run", "--php-ini --define"},
    Interpreter{"matlab", "", "", "", "-batch -r"},
    Interpreter{"node", "ep", "r", "", "--eval --print", "--require --import"},
};
// Modules of Python that run a script or another module.
constexpr std::array running_modules = {
    Interpreter{"mpi4py", "c", "", "m", "", "-rc --rc"},
    Interpreter{"cProfile profile", "", "os", "m"},
    Interpreter{"pdb", "", "c", "m"},
};

// python3.12 is python.
const Interpreter* interpreter_of(const std::string& name) {
  const std::size_t last = name.find_last_not_of("0123456789.-");
  const std::string base = last == std::string::npos ? name : name.substr(0, last + 1);
  const auto found = std::ranges::find_if(
      interpreters, [&](const Interpreter& one) { return lists(one.names, base); });
  return found == interpreters.end() ? nullptr : &*found;
}

// As the bindings for Python name it: heat for heat.py, pack for pack/__main__.py.
std::string script_name(const std::string& word) {
  std::filesystem::path path(word);
  if (!path.has_filename()) path = path.parent_path();
  if (path.filename() == "__main__.py" && path.has_parent_path()) path = path.parent_path();
  return path.extension() == ".py" ? path.stem().string() : path.filename().string();
}

std::string module_name(std::string module) {
  constexpr std::string_view main = ".__main__";
  if (module.ends_with(main)) module.resize(module.size() - main.size());
  return module.substr(module.rfind('.') + 1);
}

std::string script_of(const Words& words, std::size_t at, const Interpreter& interpreter);

constexpr std::string_view script_endings =
    ".py .jl .R .r .m .sh .pl .rb .lua .tcl .php .sage .ipynb";

// A program that is found in PATH and that is not known here may run what follows; the program of a
// user has a path.
std::string may_run(const Words& words, std::size_t at, const IsProgram& is_program) {
  if (words[at].find('/') != std::string::npos) return "";
  for (++at; at < words.size(); ++at) {
    const std::string& word = words[at];
    const std::string ending = std::filesystem::path(word).extension().string();
    const bool is_script = !ending.empty() && lists(script_endings, ending);
    const bool has_path = word.find('/') != std::string::npos;
    if (is_script || ((has_path || interpreter_of(file_name(word)) != nullptr) && is_program(word)))
      return word;
  }
  return "";
}

// The value of -m or -f: of a module that runs others, what that runs.
std::string named_by_option(const Words& words, std::size_t behind, const std::string& value,
                            char letter) {
  const auto runs = std::ranges::find_if(
      running_modules, [&](const Interpreter& one) { return lists(one.names, value); });
  if (runs != running_modules.end()) return script_of(words, behind, *runs);
  return letter == 'm' ? module_name(value) : script_name(value);
}

// The first letter of "-Bum" that matters; npos: none.
std::size_t telling_letter(const std::string& word, const Interpreter& interpreter) {
  for (std::size_t k = 1; k < word.size(); ++k)
    for (const std::string_view letters :
         {interpreter.code, interpreter.module, interpreter.values})
      if (letters.find(word[k]) != std::string_view::npos) return k;
  return std::string::npos;
}

// `at`: the first word behind the interpreter's own.
std::string script_of(const Words& words, std::size_t at, const Interpreter& interpreter) {
  const bool batch = at + 2 < words.size() && words[at] == "CMD" && words[at + 1] == "BATCH";
  if (batch && lists(interpreter.names, "R")) at += 2;
  for (; at < words.size(); ++at) {
    const std::string& word = words[at];
    if (word == "--") return at + 1 < words.size() ? script_name(words[at + 1]) : "";
    if (word == "-" || lists(interpreter.long_code, word.substr(0, word.find('=')))) return "";
    if (lists(interpreter.long_values, word)) {
      ++at;
      continue;
    }
    if (!is_option(word) && word.front() != '+') return script_name(word);
    if (word.starts_with("--file=")) return script_name(word.substr(word.find('=') + 1));
    if (word.starts_with("--")) continue;
    const std::size_t k = telling_letter(word, interpreter);
    if (k == std::string::npos) continue;
    if (interpreter.code.find(word[k]) != std::string_view::npos) return "";
    const bool attached = k + 1 < word.size();
    if (!attached) ++at;
    if (interpreter.module.find(word[k]) == std::string_view::npos) continue;
    if (at >= words.size()) return "";
    return named_by_option(words, at + 1, attached ? word.substr(k + 1) : words[at], word[k]);
  }
  return "";
}

}  // namespace

bool is_wrapper(const std::string& name) {
  return wrapper_of(name) != nullptr && !is_launcher(name);
}

bool is_interpreter(const std::string& name) { return interpreter_of(name) != nullptr; }

std::string waits_for_child(const Words& words) {
  for (const std::string& word : words) {
    const std::string name = file_name(word);
    if (lists("timeout time flock unbuffer script", name)) return name;
    const bool of_wrapper = is_option(word) || word.find('=') != std::string::npos ||
                            std::isdigit(static_cast<unsigned char>(word.front()));
    if (!of_wrapper && !is_wrapper(name)) return "";
  }
  return "";
}

ProgramOfLine program_of_line(const Words& words, const IsProgram& is_program) {
  const Wrapper line{"", ""};
  std::size_t at = 0;
  if (!words.empty() && !is_program(words[0])) at = behind_wrapper(words, 0, line, is_program);
  while (at < words.size()) {
    const std::string name = file_name(words[at]);
    if (const Wrapper* wrapper = wrapper_of(name)) {
      at = behind_wrapper(words, at, *wrapper, is_program);
    } else if (const Interpreter* interpreter = interpreter_of(name)) {
      return {words[at], script_of(words, at + 1, *interpreter), true};
    } else {
      const std::string behind = may_run(words, at, is_program);
      return {words[at], behind.empty() ? script_name(words[at]) : "", false, behind};
    }
  }
  return {};
}

std::string job_name_of(const std::string& program) {
  std::string name = program;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '_' && c != '-') c = '_';
  if (!name.empty() && (name.front() == '.' || name.front() == '-')) name.insert(0, 1, '_');
  name.resize(std::min<std::size_t>(name.size(), 100));
  if (name.ends_with(".tmp")) name[name.size() - 4] = '_';
  return name;
}

}  // namespace backstay
