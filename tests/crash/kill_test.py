#!/usr/bin/env python3
"""kill -9 of one rank, of the agent, of both, at every named point; then a restart.

Usage: kill_test.py CRASH_JOB BACKSTAYD [unittest arguments]
"""

import os
import signal
import subprocess
from pathlib import Path

from process_case import BACKSTAYD, ProcessCase, main, wait_for

# Two ranks, a version every second step: the number is that of the passing in version 2.
AGENT_POINTS = ["capture.begin@2", "capture.end@3", "capture.end@4", "capture.captured@2",
                "commit.1@2",
                "commit.2@2", "publish.1@3", "publish.2@3", "commit.3@2", "publish.1@4",
                "publish.2@4",
                "commit.4@2", "commit.5@2", "commit.6@2"]
# While two ranks connect: before it listens, when it does, at each rank's first message and after
# it.
INIT_POINTS = ["start.0", "start.1", "start.2", "hello.1@1", "hello.2@1", "hello.1@2", "hello.2@2"]
RANK_POINTS = ["rank.begin@2", "rank.filled@2", "rank.end@2", "rank.ended@2"]
RESTART_POINTS = ["rank.verify", "rank.deliver", "rank.restored"]
EAGENT = 40


def armed(point):
    name, _, passing = point.partition("@")
    return f"{name}=kill@{passing or 1}"


class Kill(ProcessCase):
    def test_the_agent_at_each_point(self):
        for point in AGENT_POINTS:
            with self.subTest(point=point):
                self.fresh()
                agent = self.start_agent(failpoint=armed(point))
                run = self.run_job(2, 6, 2, "wait=1")
                self.assertEqual(agent.wait(), -signal.SIGKILL, "the point was not passed")
                # The program went on, said it once, and its last version is good.
                self.assertEqual(run.code, 0, run)
                self.assertEqual(run.lines("captured")[-1]["code"], 0, run)
                self.assertEqual(run.lines("local")[-1]["code"], 0, run)
                self.assertLessEqual(run.errors.count("the program goes on"), 1, run)
                local = run.reported("local")
                self.kill_agents()
                self.assertGreaterEqual(self.must_come_back(local), local)

    def first_agents_end_at(self, point, number=1):
        """The first `number` agents that programs start end there, later ones do not."""
        program = self.folder / "agent-program"
        program.write_text(f"""#!/bin/sh
for number in $(seq {number}); do
  if mkdir {self.folder}/began-$number 2>/dev/null; then export BACKSTAY_FAILPOINT={armed(point)}; break; fi
done
exec {BACKSTAYD} "$@"
""")
        program.chmod(0o755)
        for began in self.folder.glob("began-*"):
            began.rmdir()
        return {**self.environment, "BACKSTAY_AGENT_PROGRAM": str(program)}

    def test_an_agent_that_dies_during_init(self):
        for point in INIT_POINTS:
            with self.subTest(point=point):
                self.fresh()
                run = self.run_job(2, 6, 2, "wait=1", env=self.first_agents_end_at(point))
                self.assertEqual((run.code, run.reported("local")), (0, 3), run)
                self.assertTrue((self.folder / "began-1").exists(), "it was not started")
                self.assertLessEqual(run.errors.count("another agent is tried"), 1, run)
                self.kill_agents()

    def test_two_agents_that_die_during_init(self):
        """The message says that both did, and what to look at."""
        for point in ("start.1", "hello.1@1"):
            with self.subTest(point=point):
                self.fresh()
                run = self.run_job(2, 6, 2, env=self.first_agents_end_at(point, 2))
                said = run.lines("init")[0]
                self.assertEqual(said["code"], EAGENT, run)
                for advice in ("the second agent that was tried", "agent.log", "backstay doctor"):
                    self.assertIn(advice, said["message"])
                self.assertEqual(run.errors.count("another agent is tried"), 1, run)

    def test_the_agent_during_a_restart(self):
        self.start_agent()
        local = self.run_job(2, 4, 2, "wait=1").reported("local")
        self.kill_agents()
        agent = self.start_agent(failpoint="restart.verified=kill")
        run = self.run_job(2, 6, 2, "wait=1")
        self.assertEqual(agent.wait(), -signal.SIGKILL)
        self.assertEqual([line["code"] for line in run.lines("restart")], [0], run)
        self.assertEqual(run.errors.count("restart tries once more"), 1, run)
        self.assertEqual(run.lines("restart")[-1]["version"], local, run)
        self.assertEqual(run.code, 0, run)

    def test_a_rank_at_each_point_of_a_checkpoint(self):
        for point in RANK_POINTS:
            with self.subTest(point=point):
                self.fresh()
                self.start_agent()
                run = self.run_job(2, 6, 2, f"fail={point}")
                self.assertEqual(run.code, 128 + signal.SIGKILL, run)
                captured = run.reported("captured")
                self.assertGreaterEqual(captured, 1, run)
                self.must_come_back(captured)
                self.assertEqual(len(self.agents()), 1, "the agent outlives a rank")

    def test_a_rank_at_each_point_of_a_restart(self):
        for point in RESTART_POINTS:
            for where in ("pool", "disk"):
                with self.subTest(point=point, where=where):
                    self.fresh()
                    self.start_agent()
                    local = self.run_job(2, 4, 2, "wait=1").reported("local")
                    self.assertEqual(local, 2)
                    if where == "disk":
                        self.kill_agents()
                        self.start_agent()
                    run = self.run_job(2, 6, 2, f"fail={point}")
                    self.assertEqual(run.code, 128 + signal.SIGKILL, run)
                    self.must_come_back(local)

    def test_both_at_once(self):
        for agent_point in ("capture.end@3", "capture.captured@2", "commit.1@2", "commit.3@2",
                            "publish.2@4", "commit.6@2"):
            for rank_point in RANK_POINTS[2:]:
                with self.subTest(agent=agent_point, rank=rank_point):
                    self.fresh()
                    self.start_agent(failpoint=armed(agent_point))
                    run = self.run_job(2, 6, 2, "wait=1", f"fail={rank_point}")
                    self.assertEqual(run.code, 128 + signal.SIGKILL, run)
                    local = run.reported("local")
                    self.assertGreaterEqual(local, 1, run)
                    self.kill_agents()
                    self.must_come_back(local)

    def test_a_captured_version_becomes_local_after_the_program_has_died(self):
        agent = self.start_agent()
        run = self.run_job(3, 6, 2, "die_after=2")
        self.assertEqual(run.code, 128 + signal.SIGKILL, run)
        self.assertEqual(run.reported("captured"), 2, run)
        wait_for(lambda: 2 in self.committed(), "version 2 to become local")
        self.assertIsNone(agent.poll())
        self.kill_agents()
        self.must_come_back(2, ranks=3)

    def test_sigterm_brings_captured_versions_to_the_disk_first(self):
        agent = self.start_agent()
        job = self.start_job(2, 6, 2, "cells=1000000", "die_after=2")
        captured = next(line for line in job.stdout if line.startswith("captured code=0 version=2"))
        agent.terminate()
        self.assertEqual(agent.wait(timeout=60), 0, self.agent_log())
        self.assertIn(2, self.committed(), captured)
        self.finish(job)
        self.assertFalse(self.socket.exists())

    def test_an_agent_that_nobody_needs_ends(self):
        self.environment["BACKSTAY_AGENT_IDLE_EXIT_S"] = "2"  # a busy machine starts the job late
        agent = self.start_agent()
        gate = self.folder / "gate"
        job = self.start_job(2, 4, 2, f"gate={gate}", "gate_step=1")
        wait_for(lambda: Path(f"{gate}.reached").exists(), "step 1")
        with self.assertRaises(subprocess.TimeoutExpired,
                               msg="it is needed for as long as the program lives"):
            agent.wait(timeout=3)
        gate.touch()
        self.assertEqual(self.finish(job).code, 0)
        self.assertEqual(agent.wait(timeout=60), 0, self.agent_log())
        self.assertIn("idle for 2 s, shutting down", self.agent_log())
        self.assertEqual(self.committed(), [1, 2])

    def test_a_rank_that_forked_a_helper(self):
        """A helper without exec holds the connection open after the rank's death: the rank still
        counts as gone.
        """
        self.start_agent()
        run = self.run_job(2, 6, 2, "die_after=1", f"helper={self.folder / 'helper'}")
        helpers = [int(path.read_text()) for path in self.folder.glob("helper.*")]
        for helper in helpers:
            self.addCleanup(os.kill, helper, signal.SIGKILL)
        self.assertEqual((len(helpers), run.reported("captured")), (2, 1), run)
        self.must_come_back(1)
        for helper in helpers:
            os.kill(helper, 0)

    def test_the_program_ends_while_the_agent_lives(self):
        """Pipes of the program close with it: an agent that it started holds none of them."""
        run = self.run_job(2, 4, 2)  # communicate() returns at the end of file only
        self.assertEqual(run.code, 0, run)
        self.assertEqual(len(self.agents()), 1)

    def fresh(self):
        self.kill_agents()
        if self.store.exists():
            subprocess.run(["rm", "-rf", str(self.store)], check=True)


if __name__ == "__main__":
    main()
