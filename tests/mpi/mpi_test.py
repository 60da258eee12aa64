#!/usr/bin/env python3
"""Real MPI jobs with a real agent: checkpoint, kill, restart, signals, an agent that dies.

Usage: mpi_test.py MPIRUN JOB BACKSTAYD [unittest arguments]. Standard library only.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from processes import agents_at, end_agents, processes, resident_peak_bytes, wait_for, wait_for_end  # noqa: E402

MPIRUN, JOB, BACKSTAYD = sys.argv[1:4]
RANKS = 4
DEADLINE_S = 100


class Jobs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="backstay-mpi-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.socket = self.folder / "agent.sock"
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("BACKSTAY_")},
            "BACKSTAY_JOB": "mpi-test",
            "BACKSTAY_DIR": str(self.folder / "store"),
            "BACKSTAY_AGENT_SOCKET": str(self.socket),
            "BACKSTAY_AGENT_PROGRAM": BACKSTAYD,
            "BACKSTAY_AGENT_IDLE_EXIT_S": "60",
            "BACKSTAY_POOL_SIZE_MIB": "64",
            "BACKSTAY_POOL_BUFFER_MIB": "1",
            "BACKSTAY_CHECKPOINT_POLICY": "request",
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_rmaps_base_oversubscribe": "1",
        }
        self.addCleanup(end_agents, self.socket)
        self.addCleanup(self.expect_bounded_memory)

    def expect_bounded_memory(self):
        """At any load: the pool, and 64 MiB."""
        pool = int(self.environment["BACKSTAY_POOL_SIZE_MIB"]) << 20
        for pid in self.agents():
            self.assertLessEqual(resident_peak_bytes(pid), pool + (64 << 20))

    def agents(self):
        return agents_at(self.socket)

    def start(self, *arguments, ranks=RANKS, command=(JOB,)):
        return subprocess.Popen([MPIRUN, "-n", str(ranks), *command, *map(str, arguments)],
                                env=self.environment, cwd=self.folder, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def finish(self, job):
        try:
            output, _ = job.communicate(timeout=DEADLINE_S)
        except subprocess.TimeoutExpired:
            job.kill()
            output, _ = job.communicate()
            self.fail(f"mpirun does not return:\n{output}")
        return output

    def run_job(self, *arguments, ranks=RANKS):
        job = self.start(*arguments, ranks=ranks)
        output = self.finish(job)
        return job.returncode, output

    def result(self, output):
        found = re.search(r"^result .*$", output, re.MULTILINE)
        self.assertIsNotNone(found, output)
        return found.group()

    def ranks(self, job):
        """Process ids of the ranks of a running job, in the order of the ranks."""
        def find():
            found = {}
            for pid, words in processes():
                if words[0] == os.fsencode(JOB) and self.is_child(pid, job.pid):
                    environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                    for variable in environment:
                        name, _, value = variable.partition(b"=")
                        if name in (b"PMI_RANK", b"OMPI_COMM_WORLD_RANK"):
                            found[int(value)] = pid
            return [found[rank] for rank in range(RANKS)] if len(found) == RANKS else None
        return wait_for(find, "the ranks")

    @staticmethod
    def is_child(pid, ancestor):
        while pid > 1:
            if pid == ancestor:
                return True
            try:
                pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                return False
        return False

    def undisturbed(self, steps):
        code, output = self.run_job(steps, 1000000)
        self.assertEqual(code, 0, output)
        return self.result(output)

    # ---------------------------------------------------------------------------------------------

    def test_a_killed_job_comes_back_and_ends_as_if_nothing_had_happened(self):
        code, output = self.run_job(40, 10, "kill_step=35", "kill_rank=2")
        self.assertNotEqual(code, 0, output)
        self.assertIn("checkpoint step=30 code=0 version=3", output)
        code, output = self.run_job(40, 10)
        self.assertEqual(code, 0, output)
        self.assertIn("restarted version=3 step=30", output)
        result = self.result(output)
        self.environment["BACKSTAY_JOB"] = "undisturbed"
        self.assertEqual(result, self.undisturbed(40))

    def test_a_restart_from_the_disk_gives_the_same(self):
        code, output = self.run_job(20, 10)
        self.assertEqual(code, 0, output)
        end_agents(self.socket)  # drains: the versions are local
        code, output = self.run_job(40, 10)
        self.assertEqual(code, 0, output)
        self.assertIn("restarted version=2 step=20", output)
        result = self.result(output)
        self.environment["BACKSTAY_JOB"] = "undisturbed"
        self.assertEqual(result, self.undisturbed(40))

    def test_a_pool_smaller_than_the_job_is_enough(self):
        self.environment["BACKSTAY_POOL_SIZE_MIB"] = "4"  # the job saves 9.6 MB
        code, output = self.run_job(20, 10)
        self.assertEqual(code, 0, output)
        code, output = self.run_job(30, 10)
        self.assertEqual(code, 0, output)
        self.assertIn("restarted version=2 step=20", output)
        result = self.result(output)
        self.environment["BACKSTAY_JOB"] = "undisturbed"
        self.assertEqual(result, self.undisturbed(30))

    def test_many_ranks_many_versions_and_a_small_pool(self):
        self.environment["BACKSTAY_POOL_SIZE_MIB"] = "16"
        self.environment["BACKSTAY_STORAGE_KEEP"] = "3"
        code, output = self.run_job(30, 1, ranks=24)
        self.assertEqual(code, 0, output)
        code, output = self.run_job(31, 1, ranks=24)
        self.assertEqual(code, 0, output)
        self.assertIn("restarted version=30 step=30", output)

    def test_the_agent_is_nobodys_child_and_mpirun_does_not_wait_for_it(self):
        code, output = self.run_job(10, 5)
        self.assertEqual(code, 0, output)
        agents = self.agents()
        self.assertEqual(len(agents), 1, "one agent, still alive after mpirun has returned")
        pid = agents[0]
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        self.assertNotEqual(int(fields[2]), os.getpgid(0))
        self.assertEqual(os.readlink(f"/proc/{pid}/cwd"), "/")
        for number in range(3):
            self.assertEqual(os.readlink(f"/proc/{pid}/fd/{number}"), "/dev/null")
        names = {name.partition(b"=")[0]
                 for name in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")}
        mpi = [n for n in names if n.startswith((b"OMPI_", b"PMI", b"MPI", b"HYD"))]
        self.assertEqual(mpi, [])
        cpus = re.search(r"Cpus_allowed:\s*(\S+)", Path(f"/proc/{pid}/status").read_text()).group(1)
        ours = re.search(r"Cpus_allowed:\s*(\S+)", Path("/proc/self/status").read_text()).group(1)
        self.assertEqual(cpus, ours, "not pinned as the rank that started it was")

    def test_the_program_survives_its_agent(self):
        gate = self.folder / "gate"
        job = self.start(30, 10, "gate_step=15", f"gate={gate}")
        wait_for(Path(f"{gate}.reached").exists, "step 15")
        killed = self.agents()
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        for pid in killed:
            wait_for_end(pid, "the agent")
        gate.touch()
        output = self.finish(job)
        self.assertEqual(job.returncode, 0, output)
        self.assertIn("checkpoint step=10 code=0", output)
        self.assertIn("checkpoint step=20 code=0", output, "a new agent was started")
        self.assertIn("checkpoint step=30 code=0", output)
        code, again = self.run_job(30, 10)
        self.assertEqual(code, 0, again)
        self.assertIn("step=30", again)
        self.assertEqual(self.result(again), self.result(output))

    def test_a_signal_at_one_rank_checkpoints_and_stops_the_job(self):
        gate = self.folder / "gate"
        gate.touch()
        job = self.start(100000000, 0, "until_stop=1", "gate_step=3", f"gate={gate}")
        wait_for(Path(f"{gate}.reached").exists, "step 3")
        ranks = self.ranks(job)
        os.kill(ranks[1], signal.SIGUSR1)
        # Its version exists as soon as the line is printed; SIGTERM comes after it.
        lines = []
        while not any("checkpoint" in line for line in lines):
            line = job.stdout.readline()
            self.assertNotEqual(line, "", "".join(lines))
            lines.append(line)
        os.kill(ranks[3], signal.SIGTERM)
        output = "".join(lines) + self.finish(job)
        self.assertEqual(job.returncode, 0, output)
        self.assertIn("version=1", output)
        self.assertIn("version=2", output)
        self.assertIn("result", output)

    def test_two_jobs_at_once_start_one_agent(self):
        first = self.start(20, 5)
        self.environment["BACKSTAY_JOB"] = "other"
        second = self.start(20, 5)
        outputs = [self.finish(job) for job in (first, second)]
        self.assertEqual([first.returncode, second.returncode], [0, 0], outputs)
        wait_for(lambda: len(self.agents()) == 1, "the loser's agent to end")
        for output in outputs:
            self.assertIn("checkpoint step=20 code=0", output)

    def test_ranks_of_a_node_that_differ_in_its_settings_are_refused(self):
        mpich = "mpich" in Path(MPIRUN).name
        for key, told in (("BACKSTAY_DIR", "storage.dir"),
                          ("BACKSTAY_AGENT_SOCKET", "agent.socket")):
            values = [str(self.folder / name) for name in ("one", "other")]
            self.addCleanup(end_agents, values[1])
            said = self.folder / key  # a launcher may lose the last words of a job that it ends
            parts = []
            for value in values:
                parts += [":"] * bool(parts) + ["-n", "1",
                                                *(["-env", key, value] if mpich
                                                  else ["-x", f"{key}={value}"])]
                parts += ["sh", "-c", f"exec {JOB} 5 1 >>{said} 2>&1"]
            code = subprocess.run([MPIRUN, *parts], env=self.environment, cwd=self.folder,
                                  timeout=DEADLINE_S,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                  check=False).returncode
            self.assertNotEqual(code, 0)
            for words in (f"must have the same {told} ({key})", f"rank 0 has {values[0]}",
                          f"rank 1 has {values[1]}"):
                self.assertIn(words, said.read_text())

    def test_another_run_of_a_job_that_is_alive_is_refused(self):
        gate = self.folder / "gate"
        job = self.start(20, 5, "gate_step=8", f"gate={gate}")
        wait_for(Path(f"{gate}.reached").exists, "step 8")
        said = self.folder / "said"  # a launcher may lose the last words of a job that it ends
        other = self.start(command=("sh", "-c", f"exec {JOB} 20 5 >>{said} 2>&1"))
        self.finish(other)
        self.assertNotEqual(other.returncode, 0)
        self.assertIn("another run", said.read_text())
        gate.touch()
        output = self.finish(job)
        self.assertEqual(job.returncode, 0, output)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]], verbosity=2)
