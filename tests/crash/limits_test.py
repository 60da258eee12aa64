#!/usr/bin/env python3
"""Limits of the process that an agent runs into: locked memory, io_uring, O_DIRECT, descriptors,
memory, sizes of files. It works with less, or says what is missing, to the program too.

Usage: limits_test.py CRASH_JOB BACKSTAYD [unittest arguments]
"""

import ctypes
import os
import re
import resource
import socket
import struct
import unittest
from pathlib import Path

from process_case import JOB, SANITIZED, ProcessCase, main, wait_for

PR_CAPBSET_DROP, CAP_IPC_LOCK = 24, 14
CONFIG, AGENT_LOST = 6, 40
FAILURE = 25


def lock_only(size):
    """For the child: a memlock limit that counts, also for root."""
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (size, size))
    if os.geteuid() == 0 and ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_IPC_LOCK, 0, 0, 0) != 0:
        os._exit(126)


class Limits(ProcessCase):
    def saves_and_comes_back(self):
        run = self.run_job(2, 6, 2, "wait=1")
        self.assertEqual(run.code, 0, run)
        self.assertEqual({line["code"] for line in run.lines("local")}, {0}, run)
        self.kill_agents()
        return run.reported("local")

    def said(self, pattern):
        return re.findall(pattern, (self.folder / "agent.out").read_text())

    def test_it_stands_back_as_far_as_it_shall(self):
        ours = os.getpriority(os.PRIO_PROCESS, 0)
        further = min(max(ours, 0) + 7, 19)  # the tests may be standing back themselves
        for more, wanted in ((0, further), (11, further), (0, 0)):
            with self.subTest(more=more, wanted=wanted):
                self.environment["BACKSTAY_AGENT_NICE"] = str(wanted)
                agent = self.start_agent(preexec_fn=lambda by=more: os.nice(by))
                threads = [int(name) for name in os.listdir(f"/proc/{agent.pid}/task")]
                nice = max(min(ours + more, 19), wanted)
                self.assertEqual({os.getpriority(os.PRIO_PROCESS, thread) for thread in threads},
                                 {nice})
                self.kill_agents()

    def test_a_small_memlock_limit(self):
        self.start_agent(preexec_fn=lambda: lock_only(64 * 1024))
        local = self.saves_and_comes_back()
        # Old kernels do not even make a ring then.
        self.assertEqual(len(self.said("not pinned for io_uring|io_uring is not used")), 1,
                         self.agent_log())
        self.start_agent(preexec_fn=lambda: lock_only(64 * 1024))
        self.must_come_back(local, steps=8)

    @unittest.skipIf(SANITIZED, "the sanitizer's memory is private too")
    def test_a_rank_needs_no_second_copy_of_its_data(self):
        """64 MiB a rank, and 16 MiB of private memory beyond them: enough to save them and to bring
        them back.
        """
        large = ("cells=8388608", "spare_mib=16")
        run = self.run_job(2, 4, 2, "wait=1", *large)
        self.assertEqual(run.code, 0, run)
        self.assertEqual([line["code"] for line in run.lines("local")], [0, 0], run)
        for where in ("pool", "disk"):
            with self.subTest(where=where):
                run = self.run_job(2, 4, 2, *large)
                self.assertEqual([(line["code"], line["version"]) for line
                                  in run.lines("restart")], [(0, 2)], run)
            self.kill_agents()

    def test_io_uring_is_refused(self):
        launcher = str(Path(JOB).parent / "without_io_uring")
        self.start_agent(prefix=(launcher,))
        local = self.saves_and_comes_back()
        self.assertEqual(len(self.said("io_uring is not used, threads write instead: .*not "
                                       "permitted")), 1,
                         self.agent_log())
        self.start_agent(prefix=(launcher,))
        self.must_come_back(local, steps=8)

    def test_o_direct_is_refused(self):
        launcher = str(Path(JOB).parent / "without_direct")
        self.start_agent(prefix=(launcher,))
        local = self.saves_and_comes_back()
        self.assertEqual(len(self.said("O_DIRECT is refused by the file system of .*: versions go "
                                       "through the page cache")), 1,
                         self.agent_log())
        self.start_agent(prefix=(launcher,))
        self.must_come_back(local, steps=8)

    @unittest.skipIf(SANITIZED, "the sanitizer checks objects through descriptors of its own")
    def test_the_limit_of_descriptors_is_raised_and_its_end_is_told(self):
        hard = 24
        agent = self.start_agent(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE,
            (12, hard)))
        wait_for(lambda: "agent listens" in self.agent_log(),
                 "the agent to listen")  # its path is there before
        self.assertEqual(resource.prlimit(agent.pid, resource.RLIMIT_NOFILE), (hard, hard))
        held = []
        self.addCleanup(lambda: [one.close() for one in held])
        while len(held) < hard:  # each takes one descriptor of the agent
            one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            one.settimeout(20)
            one.connect(str(self.socket))
            held.append(one)
        answer = held[-1].recv(65536)
        kind, = struct.unpack_from("<H", answer)
        self.assertEqual(kind, FAILURE, answer)
        self.assertIn(b"ulimit -n", answer)
        run = self.start_job(1, 2, 2)
        self.assertNotEqual(self.finish(run).code, 0)
        for one in held:
            one.close()
        held.clear()
        self.assertEqual(self.run_job(1, 2, 2).code, 0, self.agent_log())

    def test_a_file_that_would_grow_too_large_ends_no_agent(self):
        agent = self.start_agent()
        limit = 1 << 20
        resource.prlimit(agent.pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        run = self.run_job(2, 2, 2, "wait=1")
        self.assertEqual(run.lines("captured")[0]["code"], 0, run)
        line = run.lines("local")[0]
        self.assertNotEqual(line["code"], 0, run)
        self.assertIn("File too large", line["message"])
        self.assertIsNone(agent.poll(), self.agent_log())
        resource.prlimit(agent.pid, resource.RLIMIT_FSIZE,
                         (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        # The captured version was not lost with the agent: it comes back, and goes to the disk with
        # the next one.
        self.assertEqual(self.must_come_back(1, steps=4), 1)
        self.assertEqual(self.committed(), [1, 2])

    def test_soft_limits_of_the_program_are_not_the_agents(self):
        def low():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
            resource.setrlimit(resource.RLIMIT_CPU, (30, 3000))

        agent = self.start_agent(preexec_fn=low)
        self.assertEqual(resource.prlimit(agent.pid, resource.RLIMIT_CPU), (3000, 3000))
        self.assertEqual(resource.prlimit(agent.pid, resource.RLIMIT_FSIZE)[0],
                         resource.RLIM_INFINITY)
        self.assertEqual(len(self.said("after 3000 s of processor time")), 1, self.agent_log())
        self.assertEqual(self.said("can grow over"), [])
        self.saves_and_comes_back()

    def test_a_pool_over_the_limit_of_file_sizes_is_told(self):
        def low():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

        with self.assertRaisesRegex(AssertionError, "size the pool: File too large"):
            self.start_agent(preexec_fn=low)
        self.assertEqual(len(self.said("no file can grow over 1048576 bytes .ulimit -f.")), 1,
                         self.agent_log())
        self.assertEqual(self.children[-1].returncode, 1)

    def test_a_pool_larger_than_the_memory_is_refused_before_it_is_touched(self):
        mib = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2**20 * 2
        self.environment["BACKSTAY_POOL_SIZE_MIB"] = str(mib)
        run = self.run_job(1, 2, 2)
        line = run.lines("init")[0]
        self.assertEqual(line["code"], AGENT_LOST, run)
        self.assertIn(f"pool.size_mib = {mib}", line["message"])
        self.assertIn("set pool.size_mib to at most", line["message"])

    def test_a_folder_that_cannot_be_made_is_named(self):
        self.environment["BACKSTAY_DIR"] = "/proc/backstay"
        run = self.run_job(1, 2, 2)
        line = run.lines("init")[0]
        self.assertEqual(line["code"], CONFIG, run)
        self.assertIn("/proc/backstay", line["message"])
        self.assertIn("storage.dir", line["message"])
        self.assertEqual(len(self.agents()), 1, "it runs, and is asked once")

    def test_what_an_agent_says_before_its_log_is_open_reaches_the_program(self):
        closed = self.folder / "open_to_all"
        closed.mkdir()
        closed.chmod(0o777)
        self.environment["BACKSTAY_AGENT_SOCKET"] = str(closed / "agent.sock")
        run = self.run_job(1, 2, 2)
        line = run.lines("init")[0]
        self.assertEqual(line["code"], AGENT_LOST, run)
        self.assertIn("others may write to the socket's folder", line["message"])


if __name__ == "__main__":
    main()
