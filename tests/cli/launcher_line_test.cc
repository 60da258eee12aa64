#include "bin/run/launcher_line.h"

#include <gtest/gtest.h>

#include <sstream>

#include "bin/run/remote_shell.h"

namespace backstay::bin {
namespace {

Words split(const std::string& text) {
  std::istringstream stream(text);
  Words words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

std::string joined(const Words& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

bool is_program(const std::string& folder, const std::string& word) {
  const bool there = word == "./there" && !folder.empty();
  return there || word == "./lj" || word == "env" || word == "/bin/agent";
}

LauncherLine parsed(const std::string& text, LauncherKind kind) {
  const Words words = split(text);
  const auto launcher = find_launcher(words);
  EXPECT_TRUE(launcher);
  return parse_launcher_line(words, launcher.value_or(0), kind, is_program);
}

TEST(LauncherLine, TheLauncherIsFoundBehindOthers) {
  EXPECT_EQ(find_launcher(split("mpirun -n 4 ./lj")), 0u);
  EXPECT_EQ(find_launcher(split("env A=b nice -n 5 /opt/bin/mpiexec.hydra ./lj")), 5u);
  EXPECT_FALSE(find_launcher(split("./lj mpirun")));
  EXPECT_FALSE(find_launcher({}));
}

TEST(LauncherLine, KindsByNameAndByVersion) {
  EXPECT_EQ(kind_of_name("mpirun.openmpi"), LauncherKind::openmpi);
  EXPECT_EQ(kind_of_name("mpiexec.hydra"), LauncherKind::mpich);
  EXPECT_EQ(kind_of_name("srun"), LauncherKind::slurm);
  EXPECT_FALSE(kind_of_name("mpirun"));
  for (const char* program : {"nwchem.openmpi", "nwchem.mpich", "lmp.hydra"}) {
    EXPECT_FALSE(kind_of_name(program)) << program;
    EXPECT_FALSE(find_launcher({program, "in"})) << program;
  }
  EXPECT_EQ(kind_of_version("mpirun (Open MPI) 4.1.4\n"), LauncherKind::openmpi);
  EXPECT_EQ(kind_of_version("HYDRA build details:\n"), LauncherKind::mpich);
  EXPECT_FALSE(kind_of_version("mpirun 1.0"));
}

TEST(LauncherLine, OpenMpi) {
  const auto line = parsed(
      "mpirun --mca plm_rsh_agent /bin/agent -np 8 --hostfile h --map-by node:OVERSUBSCRIBE -x A=1 "
      "--unknown value ./lj -np 3 --host x",
      LauncherKind::openmpi);
  EXPECT_EQ(line.ranks, 8u);
  EXPECT_EQ(line.program, 14u);
  EXPECT_EQ(line.host_file, "h");
  EXPECT_EQ(line.host_list, "");
  EXPECT_EQ(line.remote_shell, "/bin/agent");
  EXPECT_TRUE(line.oversubscribe);
  EXPECT_EQ(line.exported, Words{"A"});
  EXPECT_FALSE(
      parsed("mpirun --map-by core:NOOVERSUBSCRIBE ./lj", LauncherKind::openmpi).oversubscribe);
  EXPECT_EQ(parsed("mpirun --host=a,b ./lj", LauncherKind::openmpi).host_list, "a,b");
  const auto several = parsed("mpirun --host a:2 -H b -host c,d ./lj", LauncherKind::openmpi);
  EXPECT_EQ(several.host_list, "a:2,b,c,d");
  EXPECT_EQ(several.words_of_hosts, (std::vector<std::size_t>{1, 2, 3, 4, 5, 6}));
}

TEST(LauncherLine, Mpich) {
  const auto line = parsed("mpiexec -launcher-exec /bin/agent -genv X ./lj -f h -n 4 ./lj -f x",
                           LauncherKind::mpich);
  EXPECT_EQ(line.ranks, 4u);
  EXPECT_EQ(line.host_file, "h");
  EXPECT_EQ(line.remote_shell, "/bin/agent");
  EXPECT_EQ(parsed("mpiexec -launcher sge -hosts a,b ./lj", LauncherKind::mpich).remote_shell,
            "off");
  EXPECT_TRUE(parsed("mpiexec -n 1 ./lj : -n 2 ./lj", LauncherKind::mpich).several_programs);
}

TEST(LauncherLine, Slurm) {
  const auto line =
      parsed("srun -N4 --ntasks-per-node=2 -c 3 -O -w n[0-3] ./lj -n 9", LauncherKind::slurm);
  EXPECT_EQ(line.nodes, 4u);
  EXPECT_EQ(line.ranks, 0u);
  EXPECT_EQ(line.ranks_per_node, 2u);
  EXPECT_EQ(line.cpus_per_rank, 3u);
  EXPECT_EQ(line.host_list, "n[0-3]");
  EXPECT_TRUE(line.oversubscribe);
  EXPECT_EQ(parsed("srun -n6 ./lj", LauncherKind::slurm).ranks, 6u);
}

std::string on_other_hosts(const std::string& text, LauncherKind kind, unsigned ranks,
                           bool oversubscribe = false) {
  return joined(with_hosts(split(text), parsed(text, kind),
                           {"/t/h", {{"a", 2, ""}, {"b", 2, ""}}, ranks, oversubscribe}));
}

TEST(LauncherLine, OtherHosts) {
  EXPECT_EQ(on_other_hosts("nice mpirun --host a,b,c -n 4 ./lj --host x", LauncherKind::openmpi, 4),
            "nice mpirun --hostfile /t/h -n 4 ./lj --host x");
  EXPECT_EQ(on_other_hosts("mpirun --hostfile h ./lj", LauncherKind::openmpi, 6, true),
            "mpirun --hostfile /t/h --oversubscribe -n 6 ./lj");
  EXPECT_EQ(on_other_hosts("mpirun --oversubscribe -n 6 ./lj", LauncherKind::openmpi, 6, true),
            "mpirun --hostfile /t/h --oversubscribe -n 6 ./lj");
  EXPECT_EQ(on_other_hosts("mpiexec -hosts a,b,c -n 4 ./lj -f x", LauncherKind::mpich, 4),
            "mpiexec -f /t/h -n 4 ./lj -f x");
  EXPECT_EQ(on_other_hosts("srun -N 3 -n6 --mpi=pmi2 -w c,d ./lj", LauncherKind::slurm, 6, true),
            "srun --overlap --nodes=2 --nodelist=a,b --overcommit --ntasks=6 --mpi=pmi2 ./lj");
}

TEST(LauncherLine, VariablesForOpenMpi) {
  const auto with = [](const std::string& text, LauncherKind kind) {
    return joined(with_exports(split(text), parsed(text, kind), {"A", "B"}));
  };
  EXPECT_EQ(with("mpirun -x A ./lj", LauncherKind::openmpi), "mpirun -x B -x A ./lj");
  EXPECT_EQ(with("mpirun --mca mca_base_env_list C=1 ./lj", LauncherKind::openmpi),
            "mpirun --mca mca_base_env_list C=1;A;B ./lj");
  EXPECT_EQ(with("mpiexec ./lj", LauncherKind::mpich), "mpiexec ./lj");
}

// By its environment or its files, as sites do: it refuses -x then.
TEST(LauncherLine, VariablesForOpenMpiThatHasAListAlready) {
  const auto with = [](const std::string& text, const EnvList& set) {
    return joined(with_exports(split(text), parsed(text, LauncherKind::openmpi), {"A", "B"}, set));
  };
  EXPECT_EQ(with("nice mpirun -n 2 ./lj", {"C=1;D"}),
            "nice mpirun --mca mca_base_env_list C=1;D;A;B -n 2 ./lj");
  EXPECT_EQ(with("mpirun ./lj", {"C=1", ","}), "mpirun --mca mca_base_env_list C=1,A,B ./lj");
  EXPECT_EQ(with("mpirun --mca mca_base_env_list E ./lj", {"C=1"}),
            "mpirun --mca mca_base_env_list E;A;B ./lj")
      << "the line wins";
}

const Words start_ours{"/b/backstay", "exec", "--capture-files=o/*", "--"};

// "EXEC" stands for the words that are put in.
std::string with_exec(const std::string& text, LauncherKind kind) {
  const auto words = with_words_before_programs(split(text), parsed(text, kind), start_ours);
  if (!words.ok()) return "error: " + words.error().message();
  std::string line = joined(*words);
  const std::string ours = joined(start_ours);
  for (std::size_t at = 0; (at = line.find(ours, at)) != std::string::npos; at += 4)
    line.replace(at, ours.size(), "EXEC");
  return line;
}

TEST(WordsBeforePrograms, OpenMpi) {
  const auto is = [](const std::string& text, const std::string& expected) {
    EXPECT_EQ(with_exec(text, LauncherKind::openmpi), expected);
  };
  is("mpirun ./lj", "mpirun EXEC ./lj");
  is("mpirun -n 4 ./lj in.lj -x A", "mpirun -n 4 EXEC ./lj in.lj -x A");
  is("mpirun -n 4 -- ./lj", "mpirun -n 4 -- EXEC ./lj");
  is("nice -n 5 mpirun -np 4 env A=b ./lj", "nice -n 5 mpirun -np 4 EXEC env A=b ./lj");
  is("mpirun -n=2 --map-by ppr:2:node --bind-to core -x A=1 -x B ./lj",
     "mpirun -n=2 --map-by ppr:2:node --bind-to core -x A=1 -x B EXEC ./lj");
  is("mpirun --mca btl tcp,self --mca plm_rsh_agent env -H a:2,b:2 ./lj",
     "mpirun --mca btl tcp,self --mca plm_rsh_agent env -H a:2,b:2 EXEC ./lj");
  is("mpirun --hostfile h --oversubscribe --tag-output --wdir /w ./lj",
     "mpirun --hostfile h --oversubscribe --tag-output --wdir /w EXEC ./lj");
  is("mpirun --debugger ./lj --report-pid - --cpus-per-rank 2 ./lj",
     "mpirun --debugger ./lj --report-pid - --cpus-per-rank 2 EXEC ./lj");
  is("mpirun --brand-new-option value ./lj", "mpirun --brand-new-option value EXEC ./lj");
  is("mpirun -n 1 ./lj a : -n 2 -x C ./lj b -n 3 : env ./lj",
     "mpirun -n 1 EXEC ./lj a : -n 2 -x C EXEC ./lj b -n 3 : EXEC env ./lj");
  is("mpirun -n 1 ./lj : -n 2 --host ./lj -- ./lj : ./lj",
     "mpirun -n 1 EXEC ./lj : -n 2 --host ./lj -- EXEC ./lj : EXEC ./lj");
}

TEST(WordsBeforePrograms, Mpich) {
  const auto is = [](const std::string& text, const std::string& expected) {
    EXPECT_EQ(with_exec(text, LauncherKind::mpich), expected);
  };
  is("mpiexec -n 4 ./lj in.lj", "mpiexec -n 4 EXEC ./lj in.lj");
  is("mpiexec.hydra -f h -ppn 2 -genv A 1 -genvlist A,B -bind-to core:1 ./lj",
     "mpiexec.hydra -f h -ppn 2 -genv A 1 -genvlist A,B -bind-to core:1 EXEC ./lj");
  is("mpiexec -launcher ssh -launcher-exec /bin/agent -hosts a,b -iface eth0 ./lj",
     "mpiexec -launcher ssh -launcher-exec /bin/agent -hosts a,b -iface eth0 EXEC ./lj");
  is("mpiexec -l -prepend-rank -env LD_PRELOAD ./lj -n 2 ./lj",
     "mpiexec -l -prepend-rank -env LD_PRELOAD ./lj -n 2 EXEC ./lj");
  is("mpiexec -n 1 -env A 1 ./lj : -n 3 -env A 2 -wdir /w ./lj x",
     "mpiexec -n 1 -env A 1 EXEC ./lj : -n 3 -env A 2 -wdir /w EXEC ./lj x");
}

TEST(WordsBeforePrograms, Slurm) {
  const auto is = [](const std::string& text, const std::string& expected) {
    EXPECT_EQ(with_exec(text, LauncherKind::slurm), expected);
  };
  is("srun ./lj", "srun EXEC ./lj");
  is("srun -N4 -n16 -c2 --mpi=pmix ./lj in.lj -n 9",
     "srun -N4 -n16 -c2 --mpi=pmix EXEC ./lj in.lj -n 9");
  is("srun -n 4 --mpi pmix -p debug -t 10 --gres gpu:1 --account a ./lj",
     "srun -n 4 --mpi pmix -p debug -t 10 --gres gpu:1 --account a EXEC ./lj");
  is("srun --task-prolog ./lj --kill-on-bad-exit=1 --label -u --exclusive ./lj",
     "srun --task-prolog ./lj --kill-on-bad-exit=1 --label -u --exclusive EXEC ./lj");
  is("srun -n1 ./lj a : -n2 --cpu-bind=cores ./lj b",
     "srun -n1 EXEC ./lj a : -n2 --cpu-bind=cores EXEC ./lj b");
}

TEST(WordsBeforePrograms, WhatCannotBeWrittenIsRefusedByName) {
  const auto refuses = [](const std::string& text, LauncherKind kind, const std::string& why) {
    const std::string said = with_exec(text, kind);
    EXPECT_TRUE(said.starts_with("error: ") && said.find(why) != std::string::npos) << said;
    EXPECT_NE(said.find("by hand"), std::string::npos) << said;
    EXPECT_NE(said.find(joined(start_ours)), std::string::npos) << said;
  };
  refuses("mpirun --app plan", LauncherKind::openmpi, "in the file plan");
  refuses("mpirun -n 1 ./lj : -app plan", LauncherKind::openmpi, "in the file plan");
  refuses("mpiexec -configfile plan", LauncherKind::mpich, "in the file plan");
  refuses("srun -n 4 --multi-prog plan", LauncherKind::slurm, "srun --multi-prog");
  refuses("mpirun -n 4 ./nowhere", LauncherKind::openmpi, "none of the words behind mpirun");
  refuses("mpirun -n 4 ./lj : -n 2", LauncherKind::openmpi, "each \":\"");
  refuses("mpirun -n 4 : ./lj", LauncherKind::openmpi, "none of the words behind mpirun");
}

TEST(WordsBeforePrograms, AProgramIsLookedForInTheLaunchersFolder) {
  const auto is = [](const std::string& text, LauncherKind kind, const std::string& expected) {
    EXPECT_EQ(with_exec(text, kind), expected);
  };
  for (const char* option : {"-wdir d", "--wdir d", "-wd d", "--wd d"})
    is(std::string("mpirun ") + option + " ./there x", LauncherKind::openmpi,
       std::string("mpirun ") + option + " EXEC ./there x");
  is("mpiexec -wdir d ./there", LauncherKind::mpich, "mpiexec -wdir d EXEC ./there");
  for (const char* option : {"-D d", "-Dd", "--chdir d", "--chdir=d"})
    is(std::string("srun ") + option + " ./there", LauncherKind::slurm,
       std::string("srun ") + option + " EXEC ./there");
  is("mpirun -wdir d ./there : -wdir e ./there : ./lj", LauncherKind::openmpi,
     "mpirun -wdir d EXEC ./there : -wdir e EXEC ./there : EXEC ./lj");
  is("mpirun -wdir d there", LauncherKind::openmpi, "mpirun -wdir d EXEC ./there");
  is("mpirun lj", LauncherKind::openmpi, "mpirun EXEC ./lj");
  is("mpirun --unknown lj ./lj", LauncherKind::openmpi, "mpirun --unknown lj EXEC ./lj");
}

TEST(WordsBeforePrograms, TheLineCanStillGetOtherHosts) {
  const Words words = split("mpirun -x A --host a,b -n 4 ./lj --host x");
  const auto line = parse_launcher_line(words, 0, LauncherKind::openmpi, is_program);
  const auto ours = with_words_before_programs(words, line, {"/bin/agent", "--"});
  ASSERT_TRUE(ours.ok());
  const auto again = parse_launcher_line(*ours, 0, LauncherKind::openmpi, is_program);
  EXPECT_EQ(joined(with_exports(with_hosts(*ours, again, {"/t/h", {}, 4, false}), again, {"B"})),
            "mpirun -x B --hostfile /t/h -x A -n 4 /bin/agent -- ./lj --host x");
}

TEST(RemoteShell, TheCommandIsOneWordForTheOtherShell) {
  const auto ssh = RemoteShell::rsh("ssh -p 2222", 2.5);
  EXPECT_EQ(joined(ssh.run("n1", {"a b", "it's"})),
            "ssh -p 2222 -o BatchMode=yes -o ConnectTimeout=3 n1 exec 'a b' 'it'\\''s'");
  EXPECT_EQ(RemoteShell::rsh("/opt/agent", 1).line({"n1"}),
            (Words{"/opt/agent", "n1",
                   "exec 'sh' '-c' 'while read n; do echo backstay-host n1 $n; done'"}));
  const Words step = RemoteShell::srun("/b/backstay").line({"n0", "n1"});
  EXPECT_EQ(step.back(), "attend");
  EXPECT_EQ(RemoteShell::srun("/b/backstay", 20).line({"n0"}).back(), "--requeue-after=20");
  EXPECT_NE(joined(step).find("--overlap --no-kill"), std::string::npos);
  EXPECT_NE(joined(step).find("--nodelist=n0,n1"), std::string::npos);
}

TEST(RemoteShell, AStreamHoldsNothingBack) {
  const auto ssh = RemoteShell::rsh("ssh", 2);
  EXPECT_EQ(ssh.stream("n1", {"cat"}), ssh.run("n1", {"cat"}));
  const auto slurm = RemoteShell::srun("/b/backstay");
  EXPECT_EQ(joined(slurm.run("n1", {"cat", "x"})),
            "srun --overlap --nodes=1 --ntasks=1 --nodelist=n1 cat x");
  EXPECT_EQ(joined(slurm.stream("n1", {"cat", "x"})),
            "srun --overlap --nodes=1 --ntasks=1 --nodelist=n1 --unbuffered --input=0 "
            "--job-name=backstay-copies cat x");
}

TEST(RemoteShell, SlurmsOwnLinesAreKnown) {
  EXPECT_TRUE(is_of_job_step("srun: error: n1: task 0: Exited with exit code 3"));
  EXPECT_TRUE(is_of_job_step("slurmstepd: error: *** STEP 1.3 ON n1 CANCELLED AT ... ***"));
  EXPECT_FALSE(is_of_job_step("backstay: both ends are on this host"));
}

TEST(RemoteShell, TheChoice) {
  EXPECT_EQ(first_of_list("ssh : rsh"), "ssh");
  auto line = parsed("mpirun --mca plm_rsh_agent /bin/agent ./lj", LauncherKind::openmpi);
  EXPECT_EQ(choose_shell("mine -x", line), "mine -x");
  EXPECT_EQ(choose_shell("", line), "/bin/agent");
}

}  // namespace
}  // namespace backstay::bin
