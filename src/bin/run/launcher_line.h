// Reads a command line as its launcher does: hosts, number of ranks, remote shell. Also makes the
// same command line for other hosts. No I/O: tested alone.
//
// Launchers have more options than are known here. A word that is no option and no program is taken
// as the value of the unknown option before it, so the program is still found.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bin/run/hosts.h"

namespace backstay::bin {

using Words = std::vector<std::string>;
// Whether a word is a program for one that is started in this folder ("": here).
using IsProgramIn = std::function<bool(const std::string& folder, const std::string& word)>;

struct LauncherLine {
  LauncherKind kind = LauncherKind::openmpi;
  std::size_t launcher = 0;  // which word it is
  std::size_t program = 0;   // which word it is; as many as there are words: not found
  unsigned ranks = 0;        // 0: not said
  unsigned nodes = 0;        // Slurm, 0: not said
  unsigned ranks_per_node = 0;
  unsigned cpus_per_rank = 0;
  std::string host_file;
  std::string host_list;     // wins if there are both; Slurm: as it writes lists
  std::string remote_shell;  // "": the launcher's default, "off": it uses none
  bool oversubscribe = false;
  bool several_programs = false;  // "a : b"
  // The first word of each program of "a : b"; as many as there are words for one that is not
  // found.
  std::vector<std::size_t> programs;
  std::vector<std::string> folders;    // in which these start, "": here
  std::vector<std::size_t> of_folder;  // those that are found there by their name alone
  std::string app_file;                // has the programs in place of the line; Slurm: --multi-prog
  bool env_list = false;               // Open MPI: mca_base_env_list, which excludes -x
  std::string env_delimiter;           // Open MPI: of its parts, "": the default
  std::vector<std::string> exported;   // Open MPI: -x
  std::vector<std::size_t> words_of_hosts;  // they choose hosts; for Slurm also the number of ranks

  bool has_hosts() const { return !host_file.empty() || !host_list.empty(); }
};

// The word that is a launcher of parallel programs, after env, nice and the like; nullopt if there
// is none.
std::optional<std::size_t> find_launcher(const Words& words);
// By the launcher's file name, or by the first lines that it prints for --version. Nothing: not
// known.
std::optional<LauncherKind> kind_of_name(const std::string& file_name);
std::optional<LauncherKind> kind_of_version(const std::string& text);

// A list such as "ssh : rsh" names shells to try; the first exists almost everywhere.
std::string first_of_list(const std::string& shells);

LauncherLine parse_launcher_line(const Words& words, std::size_t launcher, LauncherKind kind,
                                 const IsProgramIn& is_program);

struct OtherHosts {
  std::string host_file;    // for mpirun
  std::vector<Host> hosts;  // for Slurm
  unsigned ranks = 0;       // added if the line has none; 0: not known
  bool oversubscribe = false;
};
Words with_hosts(const Words& words, const LauncherLine& line, const OtherHosts& other);
// The list of variables that Open MPI's environment and files name.
struct EnvList {
  std::string value;  // mca_base_env_list
  std::string delimiter = ";";
};
// Open MPI passes on only the variables that are named to it: by -x, or, where it has one already,
// in mca_base_env_list.
Words with_exports(const Words& words, const LauncherLine& line,
                   const std::vector<std::string>& variables, const EnvList& set = {});

// The same line with `added` before each program: it runs in each rank, and in no process of the
// launcher. `line` must be parsed again for the result where there are several programs.
// Errors: invalid (a program is not found, or they are in a file).
Result<Words> with_words_before_programs(const Words& words, const LauncherLine& line,
                                         const Words& added);

}  // namespace backstay::bin
