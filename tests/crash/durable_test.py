#!/usr/bin/env python3
"""The durable directory with a real agent: the node's disk is lost, the agent is killed at each
step of a copy.

Usage: durable_test.py CRASH_JOB BACKSTAYD [unittest arguments]
"""

import json
import shutil
import signal
import time

from process_case import ProcessCase, main, wait_for

# The number is that of the passing in version 2.
POINTS = ["copy.1@2", "copy.2@2", "copy.3@2", "copy.4@2", "copy.5@2", "copy.6@2"]


class Durable(ProcessCase):
    def setUp(self):
        super().setUp()
        self.shared = self.folder / "shared"
        self.shared.mkdir()
        self.environment["BACKSTAY_DURABLE_DIR"] = str(self.shared)

    def durable(self):
        return sorted(int(path.parent.name[1:]) for path
                      in self.shared.glob("crash/v*/commit.durable"))

    def events(self, kind):
        lines = (self.store / "crash" / "events.jsonl").read_text().splitlines()
        return [event for event in map(json.loads, lines) if event["event"] == kind]

    def lose_the_disk(self):
        self.kill_agents()
        shutil.rmtree(self.store)

    def test_everything_comes_back_from_there_alone(self):
        self.start_agent()
        run = self.run_job(3, 4, 2, "wait=1")
        self.assertEqual(run.code, 0, run)
        wait_for(lambda: self.durable() == [1, 2], "both versions to be durable")
        self.lose_the_disk()
        self.start_agent()
        self.assertEqual(self.must_come_back(2, ranks=3), 2)
        self.assertEqual([e["from"] for e in self.events("restored")], ["durable"])
        wait_for(lambda: 3 in self.durable(), "the next version to be durable")
        wait_for(lambda: [e["version"] for e in self.events("durable")][-1:] == [3], "the event")

    def test_the_agent_is_killed_at_each_step(self):
        for point in POINTS:
            with self.subTest(point=point):
                self.kill_agents()
                shutil.rmtree(self.store, ignore_errors=True)
                shutil.rmtree(self.shared / "crash", ignore_errors=True)
                name, _, passing = point.partition("@")
                agent = self.start_agent(failpoint=f"{name}=kill@{passing}")
                self.run_job(2, 4, 2, "wait=1")
                wait_for(lambda: agent.poll() is not None, "the point to be passed")
                self.assertEqual(agent.wait(), -signal.SIGKILL)
                self.lose_the_disk()
                there = self.durable()
                self.assertIn(there, ([1], [1, 2]))
                self.start_agent()
                self.assertEqual(self.must_come_back(there[-1]), there[-1])

    def test_a_missing_directory_does_not_disturb_the_job(self):
        self.start_agent()
        self.assertEqual(self.run_job(2, 2, 2, "wait=1").code, 0)
        self.kill_agents()
        shutil.rmtree(self.shared)
        self.start_agent()
        run = self.run_job(2, 4, 2, "wait=1")
        self.assertEqual((run.lines("restart")[0]["version"], run.reported("local")), (1, 2), run)
        wait_for(lambda: self.events("durable_failed"), "the event")
        self.assertFalse(self.shared.exists(), "it is never made")

    def test_a_job_does_not_begin_anew_where_its_versions_cannot_be_seen(self):
        self.shared.rmdir()
        self.start_agent()
        restart, = self.run_job(2, 2, 2).lines("restart")
        self.assertEqual(restart["code"], 30)
        self.assertIn(str(self.shared), restart["message"])

    def test_sigterm_copies_what_is_under_way(self):
        self.environment["BACKSTAY_DURABLE_RATE_LIMIT_MIB_S"] = "1"
        agent = self.start_agent()
        self.run_job(2, 2, 2, "wait=1")
        agent.terminate()
        self.assertEqual(agent.wait(60), 0)
        self.assertEqual(self.durable(), [1])

    def test_sigterm_waits_for_so_long_only(self):
        self.environment["BACKSTAY_DURABLE_RATE_LIMIT_MIB_S"] = "1"
        self.environment["BACKSTAY_DURABLE_STOP_TIMEOUT_S"] = "0"
        agent = self.start_agent()
        self.run_job(2, 2, 2, "wait=1")
        begun = time.monotonic()
        agent.terminate()
        self.assertEqual(agent.wait(60), 0)
        self.assertLess(time.monotonic() - begun, 10)
        if not self.durable():
            self.assertIn("not durable yet", self.agent_log())
        self.assertEqual(self.committed(), [1])


if __name__ == "__main__":
    main()
