// Which program a command line runs, behind launchers, wrappers and interpreters; and the job's
// name that follows from it. No I/O: tested alone.
//
//   mpirun -n 4 xterm -e gdb --args ./lj in.lj     lj
//   env OMP_NUM_THREADS=2 python -u sor.py 100     sor
//   python -m pack.solve                           solve
//   bash -c "..."                                  nothing: no script has a name
//   flock lock ./lj in.lj                          nothing: flock is not known, and may run lj
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace backstay {

// env, nice and the like: they run the rest of their line. By its file name.
bool is_wrapper(const std::string& file_name);
// mpirun, srun and the like: they start programs on hosts. By its file name.
bool is_launcher(const std::string& file_name);
// python3.12, bash, julia ... By its file name.
bool is_interpreter(const std::string& file_name);

// timeout and the like, which run the rest of their line as their child: the file name of the one
// that begins this line, also behind env and nice; "": none does.
std::string waits_for_child(const std::vector<std::string>& words);

struct ProgramOfLine {
  std::string file;          // the word that is executed; "": none was found
  std::string name;          // its file name, or that of its script or module; "": it has none
  bool interpreted = false;  // `file` is an interpreter
  // A program or script that `file` may run, which is not known here: then it has no name.
  std::string behind = {};
};

// `is_program` tells programs from values of options that are not known here.
ProgramOfLine program_of_line(const std::vector<std::string>& words,
                              const std::function<bool(const std::string&)>& is_program);

// A program's name as the name of a job may be; "" of "".
std::string job_name_of(const std::string& program);

}  // namespace backstay
