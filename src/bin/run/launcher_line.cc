#include "bin/run/launcher_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <string_view>

#include "base/program_name.h"

namespace backstay::bin {
namespace {

// The meaning of an option and the number of words that follow it.
enum class About {
  nothing,
  ranks,
  nodes,
  ranks_per_node,
  cpus_per_rank,
  host_file,
  host_list,
  node_choice,  // Slurm
  folder,
  shell,
  how,        // MPICH: -launcher ssh
  parameter,  // Open MPI: --mca NAME VALUE
  variable,   // Open MPI: -x
  oversubscribe,
  mapping,
  app_file
};
struct Option {
  About about;
  unsigned values;
};

struct Options : std::map<std::string, Option, std::less<>> {
  struct Row {
    std::string_view names;  // words between blanks
    unsigned values;
    About about = About::nothing;
  };
  Options(std::initializer_list<Row> rows) {
    for (auto [names, values, about] : rows) {
      for (std::size_t end = 0; !names.empty();
           names.remove_prefix(std::min(end + 1, names.size()))) {
        end = std::min(names.find(' '), names.size());
        emplace(names.substr(0, end), Option{about, values});
      }
    }
  }
};

Options openmpi_options() {
  return {
      {"n np c", 1, About::ranks},
      {"host H", 1, About::host_list},
      {"hostfile machinefile default-hostfile", 1, About::host_file},
      {"mca prtemca", 2, About::parameter},
      {"x", 1, About::variable},
      {"oversubscribe", 0, About::oversubscribe},
      {"map-by", 1, About::mapping},
      {"wdir wd", 1, About::folder},
      {"app", 1, About::app_file},
      {"gmca omca pmixmca", 2},
      {"bind-to rank-by prefix path output-filename report-uri rf rankfile npernode N npersocket "
       "stdin timeout tune am cpu-set cpu-list launch-agent personality xterm debugger ppr "
       "cartofile cf hnp report-pid xml-file ompi-server preload-files max-restarts max-vm-size "
       "report-events cpus-per-proc cpus-per-rank",
       1}};
}

Options mpich_options() {
  return {
      {"n np", 1, About::ranks},
      {"f hostfile machinefile", 1, About::host_file},
      {"hosts host", 1, About::host_list},
      {"launcher-exec bootstrap-exec", 1, About::shell},
      {"launcher bootstrap", 1, About::how},
      {"wdir", 1, About::folder},
      {"configfile", 1, About::app_file},
      {"env genv", 2},
      {"rmk iface ppn perhost genvlist envlist bind-to map-by membind topolib demux "
       "prepend-pattern outfile-pattern errfile-pattern nameserver localhost usize gpus-per-proc "
       "order-nodes",
       1}};
}

Options slurm_options() {
  return {
      {"n ntasks", 1, About::ranks},
      {"N nodes", 1, About::nodes},
      {"w nodelist", 1, About::node_choice},
      {"c cpus-per-task", 1, About::cpus_per_rank},
      {"ntasks-per-node", 1, About::ranks_per_node},
      {"O overcommit", 0, About::oversubscribe},
      {"D chdir", 1, About::folder},
      {"multi-prog", 0, About::app_file},
      {"A C d e F nodefile G i J L m o p r t T W x mpi cpu-bind export exclude output error input "
       "job-name distribution mem time account partition qos reservation constraint gres gpus "
       "licenses dependency jobid signal wait hint network prolog epilog task-prolog task-epilog "
       "mem-per-cpu mem-bind cpu-freq comment begin deadline tmp switches threads mincpus "
       "relative slurmd-debug mail-type mail-user gpus-per-node gpus-per-task gpu-bind gpu-freq "
       "mem-per-gpu het-group profile uid gid open-mode ntasks-per-core ntasks-per-socket "
       "ntasks-per-gpu threads-per-core cores-per-socket sockets-per-node extra-node-info "
       "core-spec thread-spec time-min wckey cluster-constraint cpus-per-gpu export-file "
       "acctg-freq bb bbf power priority mcs-label max-threads",
       1}};
}

const Options& options_of(LauncherKind kind) {
  static const auto& openmpi = *new Options(openmpi_options());
  static const auto& mpich = *new Options(mpich_options());
  static const auto& slurm = *new Options(slurm_options());
  switch (kind) {
    case LauncherKind::openmpi: return openmpi;
    case LauncherKind::mpich: return mpich;
    case LauncherKind::slurm: return slurm;
  }
  return openmpi;
}

unsigned number_of(const std::string& text) {
  unsigned value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// One option as written on the line: "-n 4", "--ntasks=4", and for Slurm "-n4".
struct Found {
  bool known = false;
  About about = About::nothing;
  Words values;
  std::size_t words = 1;  // how many it takes
};

Found read_option(const Words& words, std::size_t at, LauncherKind kind) {
  const Options& options = options_of(kind);
  std::string name = words[at].substr(words[at].starts_with("--") ? 2 : 1);
  Found found;
  if (const auto equals = name.find('='); equals != std::string::npos) {
    found.values.push_back(name.substr(equals + 1));
    name.resize(equals);
  } else if (kind == LauncherKind::slurm && !words[at].starts_with("--") && name.size() > 1) {
    found.values.push_back(name.substr(1));
    name.resize(1);
  }
  const auto known = options.find(name);
  if (known == options.end()) return found;
  found.known = true;
  found.about = known->second.about;
  while (found.values.size() < known->second.values && at + found.words < words.size())
    found.values.push_back(words[at + found.words++]);
  found.values.resize(known->second.values);
  return found;
}

void take_parameter(LauncherLine& line, const std::string& name, const std::string& value) {
  if (name == "plm_rsh_agent" || name == "plm_ssh_agent") line.remote_shell = first_of_list(value);
  if (name == "mca_base_env_list") line.env_list = true;
  if (name == "mca_base_env_list_delimiter") line.env_delimiter = value;
  if (name == "rmaps_base_oversubscribe" && value != "0") line.oversubscribe = true;
}

void take(LauncherLine& line, const Found& found, std::size_t at) {
  const auto chooses_hosts = [&] {
    for (std::size_t i = 0; i < found.words; ++i) line.words_of_hosts.push_back(at + i);
  };
  switch (found.about) {
    case About::nothing: return;
    case About::ranks:
      line.ranks = number_of(found.values[0]);
      if (line.kind == LauncherKind::slurm) chooses_hosts();
      return;
    case About::nodes: line.nodes = number_of(found.values[0]); return chooses_hosts();
    case About::ranks_per_node: line.ranks_per_node = number_of(found.values[0]); return;
    case About::cpus_per_rank: line.cpus_per_rank = number_of(found.values[0]); return;
    case About::node_choice: line.host_list = found.values[0]; return chooses_hosts();
    case About::host_file: line.host_file = found.values[0]; return chooses_hosts();
    case About::host_list:  // Open MPI takes several; the others refuse a second one
      line.host_list += (line.host_list.empty() ? "" : ",") + found.values[0];
      return chooses_hosts();
    case About::folder: line.folders.back() = found.values[0]; return;
    case About::shell: line.remote_shell = found.values[0]; return;
    case About::how:
      if (line.remote_shell.empty() && found.values[0] != "ssh")
        line.remote_shell = found.values[0] == "rsh" ? "rsh" : "off";
      return;
    case About::parameter: return take_parameter(line, found.values[0], found.values[1]);
    case About::variable:
      line.exported.push_back(found.values[0].substr(0, found.values[0].find('=')));
      return;
    case About::oversubscribe: line.oversubscribe = true; return;
    case About::app_file:
      line.app_file = found.values.empty() ? "--multi-prog" : found.values[0];
      return;
    case About::mapping: {
      std::string how = found.values[0];
      std::transform(how.begin(), how.end(), how.begin(),
                     [](unsigned char c) { return std::tolower(c); });
      const auto at_word = how.find("oversubscribe");
      const bool no =
          at_word != std::string::npos && at_word >= 2 && how.substr(at_word - 2, 2) == "no";
      if (at_word != std::string::npos && !no) line.oversubscribe = true;
      return;
    }
  }
}

// The place of the program whose options begin at `at`; as many as there are words: not found.
// Takes what the options say. Open MPI finds a name without a slash in its folder, too.
std::size_t find_program_of(LauncherLine& line, const Words& words, std::size_t at,
                            const IsProgramIn& is_program) {
  bool perhaps_value = false;  // of an option that is not known
  const auto is_here = [&] {
    const std::string& folder = line.folders.back();
    if (is_program(folder, words[at])) return true;
    const bool there = line.kind == LauncherKind::openmpi && !perhaps_value &&
                       is_program(folder, "./" + words[at]);
    if (there) line.of_folder.push_back(at);
    return there;
  };
  line.folders.emplace_back();
  while (at < words.size() && words[at] != ":") {
    if (words[at] == "--") return std::min(at + 1, words.size());
    if (words[at].size() < 2 || words[at].front() != '-') {
      if (is_here()) return at;
      perhaps_value = false;
      ++at;
      continue;
    }
    const Found found = read_option(words, at, line.kind);
    take(line, found, at);
    perhaps_value = !found.known;
    at += found.words;
  }
  return words.size();
}

}  // namespace

std::string first_of_list(const std::string& shells) {
  const auto colon = shells.find(':');
  std::string first = shells.substr(0, colon);
  while (!first.empty() && first.back() == ' ') first.pop_back();
  return first;
}

std::optional<LauncherKind> kind_of_name(const std::string& name) {
  if (name == "srun") return LauncherKind::slurm;
  if (name == "orterun" || name == "prterun") return LauncherKind::openmpi;
  // Names of programs may end so, too: Debian's nwchem.openmpi.
  if (!is_launcher(name)) return std::nullopt;
  if (name.ends_with(".openmpi")) return LauncherKind::openmpi;
  if (name.ends_with(".mpich") || name.ends_with(".hydra")) return LauncherKind::mpich;
  return std::nullopt;
}

std::optional<LauncherKind> kind_of_version(const std::string& text) {
  for (const char* sign : {"Open MPI", "OpenRTE", "PRRTE"})
    if (text.find(sign) != std::string::npos) return LauncherKind::openmpi;
  for (const char* sign : {"HYDRA", "Hydra", "Intel(R) MPI"})
    if (text.find(sign) != std::string::npos) return LauncherKind::mpich;
  return std::nullopt;
}

std::optional<std::size_t> find_launcher(const Words& words) {
  for (std::size_t at = 0; at < words.size(); ++at) {
    const std::string& word = words[at];
    const std::string name = std::filesystem::path(word).filename().string();
    if (kind_of_name(name) || name == "mpirun" || name == "mpiexec") return at;
    const bool of_a_wrapper = word.empty() || word.front() == '-' ||
                              word.find('=') != std::string::npos ||
                              std::isdigit(static_cast<unsigned char>(word.front()));
    if (!of_a_wrapper && !is_wrapper(name)) return std::nullopt;
  }
  return std::nullopt;
}

LauncherLine parse_launcher_line(const Words& words, std::size_t launcher, LauncherKind kind,
                                 const IsProgramIn& is_program) {
  LauncherLine line;
  line.kind = kind;
  line.launcher = launcher;
  line.program = find_program_of(line, words, launcher + 1, is_program);
  for (std::size_t at = line.program; at < words.size();) {
    line.programs.push_back(at);
    const auto colon = std::find(words.begin() + static_cast<std::ptrdiff_t>(at), words.end(), ":");
    if (colon == words.end()) break;
    LauncherLine next;  // its options are of its own program
    next.kind = kind;
    const auto behind = static_cast<std::size_t>(colon - words.begin()) + 1;
    at = find_program_of(next, words, behind, is_program);
    if (line.app_file.empty()) line.app_file = next.app_file;
    line.folders.push_back(next.folders.back());
    line.of_folder.insert(line.of_folder.end(), next.of_folder.begin(), next.of_folder.end());
    if (at == words.size()) line.programs.push_back(at);
  }
  line.several_programs = std::find(words.begin(), words.end(), ":") != words.end();
  return line;
}

Words with_hosts(const Words& words, const LauncherLine& line, const OtherHosts& other) {
  Words added;
  const bool more_ranks_than_slots = other.oversubscribe && !line.oversubscribe;
  switch (line.kind) {
    case LauncherKind::openmpi:
      added = {"--hostfile", other.host_file};
      if (more_ranks_than_slots) added.emplace_back("--oversubscribe");
      break;
    case LauncherKind::mpich: added = {"-f", other.host_file}; break;
    case LauncherKind::slurm:
      // Slurm may still count the step of a lost node, and would wait for it.
      added = {"--overlap", fmt::format("--nodes={}", other.hosts.size()),
               "--nodelist=" + names_text(other.hosts, ",")};
      if (more_ranks_than_slots) added.emplace_back("--overcommit");
      if (other.ranks > 0) added.push_back(fmt::format("--ntasks={}", other.ranks));
      break;
  }
  if (line.kind != LauncherKind::slurm && line.ranks == 0 && other.ranks > 0)
    added.insert(added.end(), {"-n", std::to_string(other.ranks)});
  Words result;
  for (std::size_t at = 0; at < words.size(); ++at) {
    const auto& dropped = line.words_of_hosts;
    if (std::find(dropped.begin(), dropped.end(), at) == dropped.end()) result.push_back(words[at]);
    if (at == line.launcher) result.insert(result.end(), added.begin(), added.end());
  }
  return result;
}

Words with_exports(const Words& words, const LauncherLine& line,
                   const std::vector<std::string>& variables, const EnvList& set) {
  if (line.kind != LauncherKind::openmpi) return words;
  Words result = words;
  const auto behind_launcher = result.begin() + static_cast<std::ptrdiff_t>(line.launcher) + 1;
  if (line.env_list || !set.value.empty()) {
    const std::string name = "mca_base_env_list";
    const auto at = line.env_list ? std::find(behind_launcher, result.end(), name)
                                  : result.insert(behind_launcher, {"--mca", name, set.value}) + 1;
    const auto& known = line.env_delimiter.empty() ? set.delimiter : line.env_delimiter;
    for (const std::string& variable : variables)
      *(at + 1) += (known.empty() ? ";" : known) + variable;
    return result;
  }
  Words added;
  for (const std::string& variable : variables)
    if (std::find(line.exported.begin(), line.exported.end(), variable) == line.exported.end())
      added.insert(added.end(), {"-x", variable});
  result.insert(behind_launcher, added.begin(), added.end());
  return result;
}

Result<Words> with_words_before_programs(const Words& words, const LauncherLine& line,
                                         const Words& added) {
  const std::string launcher = words[line.launcher];
  const std::string by_hand =
      fmt::format("put `{}` before each program there by hand", fmt::join(added, " "));
  if (!line.app_file.empty())
    return Error(
        Code::invalid,
        line.app_file == "--multi-prog"
            ? "srun --multi-prog has its programs in a file, which is not rewritten: " + by_hand
            : fmt::format("{} has its programs in the file {}, which is not rewritten: {}",
                          launcher, line.app_file, by_hand));
  if (line.programs.empty() || line.programs.back() == words.size())
    return Error(
        Code::invalid,
        fmt::format("none of the words behind {}{} is a program that can be executed here; "
                    "is its path right? If it is on other hosts only, {}",
                    launcher, line.programs.empty() ? "" : " and each \":\"", by_hand));
  const auto has = [](const auto& all, std::size_t at) {
    return std::find(all.begin(), all.end(), at) != all.end();
  };
  Words result;
  for (std::size_t at = 0; at < words.size(); ++at) {
    if (has(line.programs, at)) result.insert(result.end(), added.begin(), added.end());
    result.push_back((has(line.of_folder, at) ? "./" : "") + words[at]);
  }
  return result;
}

}  // namespace backstay::bin
