#include "base/program_name.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

namespace backstay {
namespace {

// As if everything in PATH were what HPC machines have.
bool is_program(const std::string& word) {
  static const auto& known = *new std::vector<std::string>{
      "env",           "nice",    "timeout", "time",   "stdbuf",  "numactl", "perf",
      "valgrind",      "xterm",   "gdb",     "strace", "taskset", "mpirun",  "srun",
      "mpiexec.hydra", "python",  "bash",    "sh",     "julia",   "Rscript", "R",
      "octave",        "python3", "lj",      "sleep",  "stat",    "record",  "octave-cli",
      "python3.12",    "perl",    "node",    "lua5.3", "ruby",    "setsid",  "chrt",
      "apptainer",     "ls"};
  return word.find('/') != std::string::npos || std::ranges::count(known, word) > 0;
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

ProgramOfLine of(const std::string& line) { return program_of_line(words_of(line), is_program); }

std::string name(const std::string& line) { return of(line).name; }

TEST(ProgramName, IsTheProgramBehindTheLauncher) {
  EXPECT_EQ(name("lj in.lj"), "lj");
  EXPECT_EQ(name("mpirun -n 4 --bind-to none-such /bin/true x"), "true");
  EXPECT_EQ(name("env /usr/bin/mpiexec.hydra -n 4 sleep 1"), "sleep");
  EXPECT_EQ(name("no-such-program-anywhere"), "");
  EXPECT_EQ(of("no-such-program-anywhere").file, "");
  EXPECT_EQ(program_of_line({}, is_program).name, "");
}

TEST(ProgramName, IsTheProgramBehindWrappersAndFurtherLaunchers) {
  for (const char* front : {"env OMP_NUM_THREADS=2 LD=1",
                            "env -u time -i",
                            "nice -n 5",
                            "timeout -k 5 1h",
                            "stdbuf -oL",
                            "stdbuf -o L",
                            "time -p",
                            "/usr/bin/time -v -o time",
                            "numactl -C 0-3 --membind=0",
                            "numactl -m 0",
                            "taskset -c 0-3",
                            "chrt -f 10",
                            "perf stat -e cycles -r 3",
                            "perf record -g -F 99 -o record --",
                            "perf record --call-graph=dwarf",
                            "valgrind --tool=memcheck --log-file=x",
                            "xterm -T ls -e",
                            "xterm -hold -e gdb -ex run --args",
                            "gdb -x ls --args",
                            "strace -f -o ls",
                            "setsid",
                            "mpirun -n 1 mpirun -n 4",
                            "srun -n 2 mpirun --host a:2",
                            "mpirun -n 4 xterm -e valgrind",
                            "srun numactl -l time",
                            "apptainer exec --bind /data:/data image.sif",
                            "apptainer exec /images/a.sif"}) {
    EXPECT_EQ(name(std::string(front) + " ./lj in.lj"), "lj") << front;
    EXPECT_EQ(name(std::string(front) + " ./eam in.lj"), "eam") << front;
    EXPECT_EQ(name(std::string(front) + " python sor.py in.lj"), "sor") << front;
    EXPECT_EQ(name(std::string(front) + " bash job.sh"), "job.sh") << front;
  }
}

TEST(ProgramName, OfAnInterpreterIsTheScripts) {
  const std::pair<const char*, const char*> lines[] = {
      {"python sor.py 100", "sor"},
      {"python other.py 100", "other"},
      {"/opt/venv/bin/python3.12 -u -X dev -W ignore /home/me/sor.py", "sor"},
      {"python3 -Xdev -Bu other.py", "other"},
      {"python -m pack.solve sor.py", "solve"},
      {"python -mpack", "pack"},
      {"python -Bm pack.__main__", "pack"},
      {"python -m mpi4py sor.py", "sor"},
      {"python -m mpi4py -rc threads=false sor.py", "sor"},
      {"python -m mpi4py -m pack", "pack"},
      {"python -m cProfile -o out.prof -s time sor.py", "sor"},
      {"python -m pdb -c continue sor.py", "sor"},
      {"python pack/", "pack"},
      {"python pack/__main__.py", "pack"},
      {"python -- -odd.py", "-odd"},
      {"julia sor.jl", "sor.jl"},
      {"julia --project=. -t 4 -O3 -L setup.jl other.jl", "other.jl"},
      {"julia --threads 4 --project sor.jl", "sor.jl"},
      {"Rscript --vanilla sor.R", "sor.R"},
      {"Rscript --default-packages=stats other.R", "other.R"},
      {"R --no-save -f sor.R", "sor.R"},
      {"R --no-save --file=other.R", "other.R"},
      {"octave sor.m", "sor.m"},
      {"octave-cli --path /lib -q other.m", "other.m"},
      {"bash sor.sh", "sor.sh"},
      {"bash -eu -o pipefail +x other.sh", "other.sh"},
      {"sh --rcfile=x sor.sh", "sor.sh"},
      {"perl -w -I lib sor.pl", "sor.pl"},
      {"lua5.3 -l mod other.lua", "other.lua"},
      {"ruby sor.rb", "sor.rb"},
      {"node -r ./setup.js other.js", "other.js"},
  };
  for (const auto& [line, expected] : lines) {
    EXPECT_EQ(name(line), expected) << line;
    EXPECT_TRUE(of(line).interpreted) << line;
    EXPECT_EQ(name(std::string("mpirun -n 2 env A=b ") + line), expected) << line;
  }
}

TEST(ProgramName, AnInterpreterWithoutAScriptHasNone) {
  for (const char* line :
       {"python", "python -c print(1) sor.py", "python -Bc pass", "python -", "python -u",
        "python -m", "python -m mpi4py -c pass", "julia -e 1", "julia --eval=1 sor.jl",
        "julia --eval 1", "Rscript -e 1", "octave --eval 1", "bash -c ./lj", "bash -lc ./lj",
        "bash -s", "sh", "perl -e 1", "node -p 1", "R --no-save"}) {
    EXPECT_EQ(name(line), "") << line;
    EXPECT_TRUE(of(line).interpreted) << line;
    EXPECT_NE(of(line).file, "") << line;
  }
}

// Programs that are not known here, which run others.
TEST(ProgramName, WhatMayRunSomethingElseHasNone) {
  for (const char* line :
       {"ls ./lj in.lj", "ls run python sor.py", "ls sor.py", "ls --standalone --nproc 2 train.py",
        "sleep sh job.sh", "mpirun -n 2 ls -k all ./lj"}) {
    EXPECT_EQ(name(line), "") << line;
    EXPECT_NE(of(line).behind, "") << line;
  }
  EXPECT_EQ(name("ls in.lj -log lj.out time"), "ls");
  EXPECT_EQ(name("./lj ./in.lj x.py"), "lj") << "a user's program has a path";
  EXPECT_EQ(name("R CMD BATCH a.R"), "a.R");
}

TEST(ProgramName, AScriptThatIsExecutedItselfIsNamedAsUnderItsInterpreter) {
  EXPECT_EQ(name("./sor.py 100"), name("python sor.py 100"));
  EXPECT_EQ(name("./job.sh"), name("bash job.sh"));
  EXPECT_FALSE(of("./sor.py").interpreted);
}

TEST(ProgramName, WhatRunsItsLineAsAChild) {
  const auto is = [](const char* line) { return waits_for_child(words_of(line)); };
  EXPECT_EQ(is("timeout -k 5 60 ./lj"), "timeout");
  EXPECT_EQ(is("nice -n 5 env A=b /usr/bin/time ./lj"), "time");
  EXPECT_EQ(is("flock lock ./lj"), "flock");
  for (const char* line : {"nice ./lj", "./lj timeout", "./timeout.py", "", "sh -c time"})
    EXPECT_EQ(is(line), "") << line;
}

TEST(ProgramName, BecomesAJobsName) {
  EXPECT_EQ(job_name_of("lj"), "lj");
  EXPECT_EQ(job_name_of("my prog"), "my_prog");
  EXPECT_EQ(job_name_of(".hidden"), "_.hidden");
  EXPECT_EQ(job_name_of("-odd"), "_-odd");
  EXPECT_EQ(job_name_of(std::string(150, 'x')), std::string(100, 'x'));
  EXPECT_EQ(job_name_of(""), "");
  EXPECT_EQ(job_name_of("solve.tmp"), "solve_tmp");
}

}  // namespace
}  // namespace backstay
