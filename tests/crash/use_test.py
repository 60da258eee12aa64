#!/usr/bin/env python3
"""Wrong use: each a clear message that says what to do, a code of its own, and nothing lost.

Usage: use_test.py CRASH_JOB BACKSTAYD [unittest arguments]
"""

import hashlib
import os
import random
import shutil
import socket
import struct
import threading

from process_case import ProcessCase, main, wait_for

ENONE, EBUSY, EPROTOCOL, ELONGPATH, EMISMATCH, ERANKS, ENOTFOUND = 1, 7, 11, 16, 20, 21, 22


class Use(ProcessCase):
    def refused(self, run, what, code, *words):
        line = run.lines(what)[0]
        self.assertEqual(line["code"], code, run)
        for word in words:
            self.assertIn(word, line["message"])

    def a_run_at_its_gate(self):
        """With an agent of its own and one version; goes on once the gate is touched."""
        gate = self.folder / "gate"
        self.start_agent()
        first = self.start_job(2, 6, 2, "wait=1", f"gate={gate}", "gate_step=3")
        wait_for((self.folder / "gate.reached").exists, "step 3")
        return first, gate

    def goes_on(self, first, gate):
        gate.touch()
        run = self.finish(first)
        self.assertEqual(run.code, 0, run)
        self.assertEqual(run.reported("local"), 3, run)

    def refused_by_another_agent(self):
        other = self.folder / "other" / "agent.sock"
        self.start_agent(socket=other)
        second = self.run_job(2, 2, 2,
                              env={**self.environment, "BACKSTAY_AGENT_SOCKET": str(other)})
        self.refused(second, "init", EBUSY, "another agent")

    def test_a_socket_path_that_is_too_long(self):
        self.environment["BACKSTAY_AGENT_SOCKET"] = str(self.folder / ("s" * 120))
        run = self.run_job(2, 2, 2)
        self.refused(run, "init", ELONGPATH, "agent.socket")

    def test_an_agent_of_another_version(self):
        self.socket.parent.mkdir(mode=0o700)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(str(self.socket))
            listener.listen()
            listener.settimeout(0.1)
            over = threading.Event()

            def answer():
                while not over.is_set():
                    try:
                        peer, _ = listener.accept()
                    except TimeoutError:
                        continue
                    with peer:
                        peer.recv(1 << 16)
                        peer.send(struct.pack("<HHI", 17, 9, 3) + b"new")

            thread = threading.Thread(target=answer)
            thread.start()
            try:
                run = self.run_job(2, 2, 2)
            finally:
                over.set()
                thread.join()
        self.refused(run, "init", EPROTOCOL, "protocol 9", "end that agent", "agent.socket")

    def test_two_runs_of_one_job_with_one_agent(self):
        first, gate = self.a_run_at_its_gate()
        self.refused(self.run_job(2, 2, 2), "init", EBUSY, "another run", "BACKSTAY_JOB")
        self.goes_on(first, gate)

    def test_two_runs_of_one_job_with_two_agents(self):
        first, gate = self.a_run_at_its_gate()
        self.refused_by_another_agent()
        self.goes_on(first, gate)

    def test_a_second_run_where_the_lock_was_removed(self):
        """A purger takes the file away: the first run goes on, the second one is refused, and the
        lock is made again.
        """
        first, gate = self.a_run_at_its_gate()
        (self.store / "crash" / "lock").unlink()
        self.refused_by_another_agent()
        self.goes_on(first, gate)
        self.assertTrue((self.store / "crash" / "lock").exists())

    def test_a_second_run_in_a_new_folder_of_the_same_name(self):
        """The job's folder is moved away and another agent makes a new one: the first agent leaves
        that alone, and says so.
        """
        self.environment["BACKSTAY_STORAGE_KEEP"] = "9"  # retention has nothing to do
        first, gate = self.a_run_at_its_gate()
        folder, moved = self.store / "crash", self.folder / "moved"
        folder.rename(moved)
        before = self.versions(moved)
        other = self.folder / "other" / "agent.sock"
        other_agent = self.start_agent(socket=other)
        second = self.run_job(2, 6, 2, "wait=1",
                              env={**self.environment, "BACKSTAY_AGENT_SOCKET": str(other)})
        self.assertEqual((second.code, second.reported("local")), (0, 3), second)
        other_agent.terminate()
        other_agent.wait()
        theirs = self.content(folder)
        gate.touch()
        run = self.finish(first)
        self.assertEqual(run.reported("captured"), 3, run)
        told = [line for line in run.lines("local") if line["code"] != 0]
        self.assertEqual({line["code"] for line in told}, {EBUSY}, run)
        self.assertEqual([line["version"] for line in told], [2, 3], run)
        for line in told:
            self.assertIn(str(folder / "lock"), line["message"])
            self.assertIn("another agent", line["message"])
        self.assertEqual(self.content(folder), theirs)
        self.assertEqual(self.versions(moved), before)

    def test_a_folder_that_was_removed_between_two_runs(self):
        """`rm -rf` of the job's folder means a fresh start, also where the agent lives on and has
        the versions in its pool.
        """
        self.start_agent()
        self.assertEqual(self.run_job(2, 4, 2, "wait=1").reported("local"), 2)
        wait_for(lambda: "run_end" in (self.store / "crash" / "events.jsonl").read_text(),
                 "the end of the run in the log")
        shutil.rmtree(self.store / "crash")
        run = self.run_job(2, 2, 2, "ask=2")
        self.assertEqual(run.lines("restart")[0]["code"], ENONE, run)
        self.refused(run, "test", ENOTFOUND, "2")

    def versions(self, folder):
        """Without the log of events, to which an agent may still write a line."""
        return {path: digest for path, digest in self.content(folder).items()
                if not path.endswith("events.jsonl")}

    @staticmethod
    def content(folder):
        return {str(path): hashlib.sha256(path.read_bytes()).hexdigest()
                for path in folder.rglob("*") if path.is_file()}

    def test_a_version_that_does_not_exist(self):
        self.start_agent()
        self.run_job(2, 4, 2, "wait=1")
        run = self.run_job(2, 4, 2, "ask=99")
        for call in ("test", "wait", "read_region"):
            self.refused(run, call, ENOTFOUND, "99", "backstay ls crash")
        self.assertEqual(run.code, 0, run)

    def test_a_flipped_byte_is_found_by_the_ranks(self):
        """The real library verifies: from the disk, a damaged chunk of any rank sends all to the
        older version.
        """
        seed = int(os.environ.get("BACKSTAY_SEED", 20261120))
        print(f"seed {seed} (replay: BACKSTAY_SEED={seed})", flush=True)
        dice = random.Random(seed)
        self.start_agent()
        self.assertEqual(self.run_job(2, 4, 2, "wait=1").reported("local"), 2)
        folder = self.store / "crash" / f"v{2:016d}"
        segment, mark = folder / "node-0000000.segment", folder / "damaged"
        good = segment.read_bytes()
        for number in range(8):
            at = dice.choice((4096, 8 + 4096, dice.randrange(4096, len(good) - 8192)))
            with self.subTest(number=number, at=at):
                self.kill_agents()
                bad = bytearray(good)
                bad[at] ^= 1 << dice.randrange(8)
                segment.write_bytes(bad)
                mark.unlink(missing_ok=True)
                self.start_agent()
                run = self.run_job(2, 2, 2)
                line = run.lines("restart")[0]
                self.assertEqual((line["code"], line["version"]), (0, 1), run)
                wait_for(mark.exists, "the mark")
                again = self.run_job(2, 2, 2)
                self.assertEqual(again.lines("restart")[0]["version"], 1, again)

    def test_another_number_of_ranks(self):
        self.start_agent()
        self.assertEqual(self.run_job(2, 4, 2, "wait=1").reported("local"), 2)
        for where in ("pool", "disk"):
            with self.subTest(where=where):
                for ranks in (1, 3):
                    run = self.run_job(ranks, 6, 2)
                    self.refused(run, "restart", ERANKS, "2")
                self.kill_agents()
                self.start_agent()
        self.assertEqual(self.must_come_back(2), 2)

    def test_regions_that_differ(self):
        self.start_agent()
        self.assertEqual(self.run_job(2, 4, 2, "wait=1").reported("local"), 2)
        for where in ("pool", "disk"):
            for change in ("cells=299999", "cells=300001", "type=float", "name=v"):
                with self.subTest(where=where, change=change):
                    run = self.run_job(2, 6, 2, change)
                    self.refused(run, "restart", EMISMATCH, "v" if change == "name=v" else "u")
            self.kill_agents()
            self.start_agent()
        self.assertEqual(self.must_come_back(2), 2, "nothing was set aside")


if __name__ == "__main__":
    main()
