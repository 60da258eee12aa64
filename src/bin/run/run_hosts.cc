#include "bin/run/run_hosts.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/fd.h"
#include "base/program.h"
#include "bin/parts/print.h"
#include "bin/parts/spawn.h"
#include "bin/run/slurm.h"
#include "bin/run/this_host.h"
#include "meet/server.h"

namespace backstay::bin {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr double version_s = 10;      // for mpirun --version
constexpr double agent_start_s = 60;  // until srun and the agents of all nodes are there

std::optional<LauncherKind> kind_of(const std::string& launcher) {
  const fs::path path(launcher);
  if (const auto kind = kind_of_name(path.filename().string())) return kind;
  std::error_code failure;
  const fs::path real = fs::canonical(find_program(launcher), failure);
  if (const auto kind = kind_of_name(real.filename().string())) return kind;
  const auto text = run_and_read({launcher, "--version"}, version_s);
  return text.ok() ? kind_of_version(*text) : std::nullopt;
}

Result<std::string> read_file(const std::string& path) {
  std::error_code unknown;
  if (fs::is_directory(path, unknown)) return errno_error("read the file of hosts " + path, EISDIR);
  std::ifstream file(path);
  if (!file) return errno_error("read the file of hosts " + path, errno);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// For Open MPI, which passes on only the variables that are named to it.
std::vector<std::string> own_variables() {
  std::vector<std::string> names;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string name = std::string(*variable).substr(0, std::string(*variable).find('='));
    if (name.starts_with("BACKSTAY_")) names.push_back(name);
  }
  return names;
}

// Its environment and its files may set mca_base_env_list, as sites do: it knows best itself.
EnvList env_list_of(const std::string& launcher) {
  const std::string beside = fs::path(find_program(launcher)).parent_path() / "ompi_info";
  const auto text = run_and_read({is_program(beside) ? beside : "ompi_info", "--parsable",
                                  "--param", "mca", "base", "--level", "9"},
                                 version_s);
  const auto value_of = [&](const std::string& name) {
    const std::string begins = "mca:mca:base:param:" + name + ":value:";
    const std::size_t at = text->find(begins);
    if (at == std::string::npos) return std::string();
    return text->substr(at + begins.size(), text->find('\n', at) - at - begins.size());
  };
  if (text.ok()) return {value_of("mca_base_env_list"), value_of("mca_base_env_list_delimiter")};
  const char* set = std::getenv("OMPI_MCA_mca_base_env_list");
  return {set == nullptr ? "" : set};
}

std::string list_text(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

// srun without a number starts as many tasks as were requested with the allocation, else one on
// each node.
unsigned ranks_of_srun(const LauncherLine& line, std::size_t nodes) {
  if (line.ranks > 0) return line.ranks;
  const unsigned per_node = line.ranks_per_node > 0 ? line.ranks_per_node : slurm_tasks_per_node();
  const unsigned on_each = std::max(per_node, 1u) * static_cast<unsigned>(nodes);
  return per_node > 0 || line.nodes > 0 || slurm_tasks() == 0 ? on_each : slurm_tasks();
}

}  // namespace

std::optional<LauncherLine> read_launcher(const Words& words) {
  const auto launcher = find_launcher(words);
  if (!launcher) return std::nullopt;
  const auto kind = kind_of(words[*launcher]);
  if (!kind) return std::nullopt;
  return parse_launcher_line(words, *launcher, *kind, is_program_from);
}

Result<std::unique_ptr<RunHosts>> RunHosts::make(const HostOptions& options, const Words& words,
                                                 const std::optional<LauncherLine>& launcher,
                                                 Say say) {
  const bool wanted = !options.hosts_file.empty() || options.spares > 0;
  const auto none = [&](const std::string& why) -> Result<std::unique_ptr<RunHosts>> {
    if (!wanted) return std::unique_ptr<RunHosts>();
    return Error(Code::invalid, "--hosts and --spares cannot be used: " + why);
  };
  if (!launcher)
    return none("the command is no mpirun or mpiexec of Open MPI or MPICH, and no srun");
  LauncherLine line = *launcher;
  if (line.several_programs) return none("they are for one program, not for \"a : b\"");
  const bool slurm = line.kind == LauncherKind::slurm;
  if (slurm && !in_slurm())
    return none("srun runs outside of an allocation; submit with sbatch, or begin with salloc");
  if (slurm && !options.hosts_file.empty()) return none("Slurm has chosen the nodes");
  if (!options.hosts_file.empty() && line.has_hosts())
    return none("the launcher names its hosts too; leave them out there, or leave out --hosts");
  if (!slurm && options.hosts_file.empty() && !line.has_hosts())
    return none("no hosts are named; --hosts FILE does, or the launcher's own option");
  std::unique_ptr<RunHosts> result(new RunHosts(options, words, std::move(line), std::move(say)));
  BACKSTAY_ASSIGN(auto hosts, result->find_hosts());
  BACKSTAY_TRY(result->choose(std::move(hosts)));
  if (launcher->kind == LauncherKind::openmpi)
    result->env_list_ = env_list_of(words[launcher->launcher]);
  return result;
}

Result<std::vector<Host>> RunHosts::find_hosts() {
  if (slurm()) {
    BACKSTAY_ASSIGN(auto hosts, slurm_hosts());
    if (!line_.host_list.empty()) {
      BACKSTAY_ASSIGN(const auto named, slurm_nodes(line_.host_list));
      std::erase_if(hosts, [&](const Host& host) {
        return std::find(named.begin(), named.end(), host.name) == named.end();
      });
    }
    for (Host& host : hosts) host.slots /= std::max(line_.cpus_per_rank, 1u);
    return hosts;
  }
  const std::string file = options_.hosts_file.empty() ? line_.host_file : options_.hosts_file;
  if (options_.hosts_file.empty() && !line_.host_list.empty())
    return parse_host_list(line_.host_list);
  BACKSTAY_ASSIGN(const std::string text, read_file(file));
  BACKSTAY_ASSIGN(auto hosts, parse_host_file(text, file));
  if (line_.kind == LauncherKind::mpich)
    for (Host& host : hosts) host.slots = std::max(host.slots, 1u);
  return hosts;
}

Status RunHosts::choose(std::vector<Host> hosts) {
  unsigned spares = options_.spares;
  // srun -N 4 in an allocation of five nodes needs four.
  if (slurm() && spares == 0 && line_.nodes > 0 && line_.nodes < hosts.size())
    spares = static_cast<unsigned>(hosts.size()) - line_.nodes;
  BACKSTAY_ASSIGN(choice_, HostChoice::make(std::move(hosts), spares));
  changed_ = !options_.hosts_file.empty() || spares > 0;
  ranks_ = slurm() ? ranks_of_srun(line_, choice_.in_use().size()) : line_.ranks;
  // mpirun of Open MPI fills all slots if it gets no number; the job must keep that number.
  if (ranks_ == 0 && line_.kind == LauncherKind::openmpi) ranks_ = slots_of(choice_.in_use());
  oversubscribe_ = options_.oversubscribe || line_.oversubscribe;
  if (!oversubscribe_ && !choice_.enough_for(ranks_)) {
    // A launcher takes or refuses its own hosts by itself: it has settings that are not visible
    // here.
    if (options_.hosts_file.empty() || line_.kind == LauncherKind::mpich)
      oversubscribe_ = true;
    else
      return Error(
          Code::few_nodes,
          fmt::format("the job has {} ranks, and {} have {} slots; name more hosts, or let "
                      "ranks share slots with --oversubscribe",
                      ranks_, names_text(choice_.in_use()), slots_of(choice_.in_use())));
  }
  const std::string shell = choose_shell(options_.remote_shell, line_);
  if (shell.find_first_not_of(' ') == std::string::npos || (shell == "off" && !slurm())) return {};
  // After this silence the other end asks Slurm whether to requeue: by then a host counts as gone
  // here.
  const double silence_s = options_.requeue ? 2 * options_.timeout_s : 0;
  shell_ = std::make_unique<RemoteShell>(
      slurm() ? RemoteShell::srun(program_folder() + "/backstay", silence_s)
              : RemoteShell::rsh(shell, options_.timeout_s));
  watch_ = std::make_unique<HostWatch>(
      [shell = *shell_](const std::vector<std::string>& names) { return shell.line(names); },
      options_.timeout_s);
  return {};
}

RunHosts::~RunHosts() {
  if (!file_.empty()) ::unlink(file_.c_str());
}

Status RunHosts::reachable() {
  if (!watch_) return {};
  std::vector<std::string> names;
  for (const auto* list : {&choice_.in_use(), &choice_.spares()})
    for (const Host& host : *list)
      if (slurm() || !is_this_host(host.name)) names.push_back(host.name);
  watch_->add(names, slurm(), slurm() ? agent_start_s : options_.timeout_s);
  watch_->settle();
  std::vector<std::string> missing;
  for (const auto& [host, why] : watch_->news()) {
    const std::string unknown = slurm() ? "" : why_unknown(host);
    say_("host_unreachable",
         fmt::format("{} cannot be reached{}: {}", host,
                     unknown.empty() ? "" : " (" + unknown + ")", why),
         {{"host", host}});
    missing.push_back(host);
  }
  if (missing.empty()) return {};
  return Error(
      Code::unreachable,
      fmt::format(
          "nothing was started, as {} cannot be reached; mend {} or take {} out of the list of "
          "hosts{}",
          list_text(missing), missing.size() == 1 ? "it" : "them",
          missing.size() == 1 ? "it" : "them", slurm() ? "" : ", or name another --remote-shell"));
}

Status RunHosts::can_capture(const CaptureOptions& options) const {
  constexpr double start_s = 10;
  Words trial = words_of_exec(options, "");
  const std::string tool = trial.front();
  trial.erase(trial.begin());
  trial.emplace_back("true");
  std::vector<Question> questions;
  if (shell_)
    for (const std::string& host : reach().others) questions.push_back({host, trial});
  const auto answers = ask_each(questions, start_s);
  std::vector<std::string> without;
  for (std::size_t i = 0; i < answers.size(); ++i)
    if (!answers[i].ok()) without.push_back(questions[i].host);
  if (without.empty()) return {};
  return Error(
      Code::unsupported,
      fmt::format("nothing was started, as `{} exec` does not work on {}: install the same "
                  "Backstay there at the same path, or on a file system that all hosts "
                  "share",
                  tool, list_text(without)));
}

std::vector<pollfd> RunHosts::fds() const { return watch_ ? watch_->fds() : std::vector<pollfd>{}; }

double RunHosts::next_step_s() const { return watch_ ? watch_->next_step_s() : -1; }

std::vector<pid_t> RunHosts::processes() const {
  return watch_ ? watch_->processes() : std::vector<pid_t>{};
}

bool RunHosts::is_in_use(const std::string& name) const {
  const auto& used = choice_.in_use();
  return std::any_of(used.begin(), used.end(), [&](const Host& host) { return host.name == name; });
}

bool RunHosts::take_news() {
  bool any = false;
  for (const auto& [host, why] : watch_->news()) {
    gone_.insert(host);
    const bool used = is_in_use(host);
    any |= used;
    say_("host_lost", fmt::format("{}{} is gone: {}", host, used ? "" : ", a spare,", why),
         {{"host", host}, {"spare", !used}});
  }
  return any;
}

bool RunHosts::lost() {
  if (!watch_) return false;
  watch_->step();
  return take_news();
}

RunHosts::Next RunHosts::replace() {
  if (!watch_) return Next::same;
  watch_->settle();
  take_news();
  const auto change = choice_.lose(gone_, ranks_);
  gone_.clear();
  if (change.lost.empty()) return Next::same;
  changed_ = true;
  lost_.insert(lost_.end(), change.lost.begin(), change.lost.end());
  if (choice_.in_use().empty() || (!oversubscribe_ && !choice_.enough_for(ranks_))) {
    say_too_few();
    return Next::too_few;
  }
  const std::string instead =
      change.taken.empty() ? "" : fmt::format(", with {} instead", list_text(change.taken));
  say_("hosts",
       fmt::format("goes on without {}{}, on {}", list_text(change.lost), instead,
                   names_text(choice_.in_use())),
       {{"lost", change.lost}, {"taken", change.taken}});
  return Next::replaced;
}

void RunHosts::say_too_few() const {
  const auto& used = choice_.in_use();
  const std::string left = used.empty() ? "no host is left"
                                        : fmt::format("{} have {} slots and the job has {} ranks",
                                                      names_text(used), slots_of(used), ranks_);
  say_("too_few_hosts",
       left + (used.empty()
                   ? "; start the same command on other hosts"
                   : "; start the same command with more hosts, or let ranks share slots with "
                     "--oversubscribe. Spare hosts (--spares) are used by themselves"),
       {{"ranks", ranks_}, {"slots", slots_of(used)}});
}

Result<Words> RunHosts::command() {
  Words words = words_;
  if (changed_) {
    OtherHosts other{"", choice_.in_use(), ranks_, oversubscribe_};
    if (!slurm()) {
      if (file_.empty()) {
        std::string path = (fs::temp_directory_path() / "backstay-hosts-XXXXXX").string();
        const Fd made(::mkstemp(path.data()));
        if (!made.valid()) return errno_error("make a file of hosts " + path, errno);
        file_ = path;
      }
      std::ofstream file(file_, std::ios::trunc);
      file << host_file_text(choice_.in_use(), line_.kind);
      if (!file.flush()) return errno_error("write the file of hosts " + file_, errno);
      other.host_file = file_;
    }
    words = with_hosts(words, line_, other);
  }
  return with_exports(words, line_, own_variables(), env_list_);
}

bool RunHosts::runs_here() const {
  const auto& used = choice_.in_use();
  return std::any_of(used.begin(), used.end(),
                     [](const Host& host) { return is_this_host(host.name); });
}

bool RunHosts::starts_here() const { return is_this_host(choice_.in_use().front().name); }

// Passes our own settings along, as a remote shell passes no variables on. What leads to the ranks'
// meeting is for ranks alone: others can read a command line.
Words RunHosts::tool_on(const std::string& host, const Words& arguments) const {
  Words command;
  if (!is_this_host(host)) {
    command.emplace_back("env");
    for (const std::string& name : own_variables())
      if (!name.starts_with(meet::addresses_variable))
        command.push_back(name + "=" + std::getenv(name.c_str()));
  }
  command.push_back(program_folder() + "/backstay");
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

Words RunHosts::on_host(const std::string& host, const Words& arguments) const {
  const Words command = tool_on(host, arguments);
  return is_this_host(host) ? command : shell_->run(host, command);
}

RunHosts::Reach RunHosts::reach() const {
  Reach reach;
  for (const Host& host : choice_.in_use()) reach.in_use.push_back(host.name);
  reach.all = reach.in_use;
  for (const Host& host : choice_.spares()) reach.all.push_back(host.name);
  if (!shell_) return reach;
  if (!slurm())
    std::ranges::remove_copy_if(reach.all, std::back_inserter(reach.others), is_this_host);
  reach.line = [this](const std::string& host, const Words& arguments) {
    const Words command = tool_on(host, arguments);
    return is_this_host(host) ? command : shell_->stream(host, command);
  };
  return reach;
}

std::vector<Result<std::string>> RunHosts::ask_each(const std::vector<Question>& questions,
                                                    double work_s) const {
  if (!shell_)
    return {questions.size(), Error(Code::unreachable, "there is no remote shell to other hosts")};
  std::vector<Words> commands;
  for (const auto& [host, arguments] : questions) commands.push_back(on_host(host, arguments));
  return run_and_read_each(commands, options_.timeout_s + work_s);
}

std::vector<std::string> RunHosts::ask(const Words& arguments, std::size_t count) const {
  std::vector<std::string> answers;
  if (!shell_) return answers;
  for (const Host& host : choice_.in_use()) {
    if (count == 0) break;
    if (gone_.contains(host.name) || is_this_host(host.name)) continue;
    --count;
    auto answer = run_and_read(on_host(host.name, arguments), options_.timeout_s);
    if (answer.ok()) answers.push_back(std::move(answer).value());
  }
  return answers;
}

Json RunHosts::summary() const {
  Json names = Json::array();
  for (const Host& host : choice_.in_use()) names.push_back(host.name);
  return {{"hosts", names}, {"lost_hosts", lost_}};
}

void RunHosts::close(double patience_s) {
  if (watch_) watch_->close(patience_s);
}

}  // namespace backstay::bin
