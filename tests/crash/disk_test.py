#!/usr/bin/env python3
"""Disks that say no: full, read-only, not ours. The agent gets a small disk of its own in a private
mount namespace, so these need root; without it they are skipped and say so.

Usage: disk_test.py CRASH_JOB BACKSTAYD [unittest arguments]
"""

import json
import os
import subprocess
import unittest
from pathlib import Path

from process_case import BACKSTAYD, JOB, ProcessCase, main, wait_for

NOBODY = 65534
TOOL = str(Path(BACKSTAYD).with_name("backstay"))
ENOSPACE, EPERMISSION = 31, 32


def can_mount():
    if os.geteuid() != 0:
        return False
    return subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], check=False,
                          capture_output=True).returncode == 0


class Disk(ProcessCase):
    def make_disk(self, mib):
        """A process that holds a mount namespace where our store is a tmpfs."""
        self.store.mkdir()
        ready = self.folder / "ready"
        script = f'mount -t tmpfs -o size={mib}m tmpfs "$0" && : > "$1" && exec sleep infinity'
        self.holder = subprocess.Popen(["unshare", "-m", "sh", "-c", script, self.store, ready])
        self.children.append(self.holder)
        wait_for(lambda: ready.exists() or self.holder.poll() is not None, "the small disk")
        self.assertIsNone(self.holder.poll(), "the small disk could not be mounted")

    def inside(self, *command):
        return subprocess.run(["nsenter", "-m", "-t", str(self.holder.pid), *map(str, command)],
                              check=True, capture_output=True, text=True).stdout

    def start_agent_inside(self):
        # -F: nsenter becomes the agent, so that its number is the agent's.
        return self.start_agent(prefix=("nsenter", "-F", "-m", "-t", str(self.holder.pid)))

    def need_mounts(self):
        if not can_mount():
            self.skipTest("needs root and mount namespaces (unshare -m) for a small disk")

    def tool(self, *arguments):
        command = ("nsenter", "-m", "-t", str(self.holder.pid), TOOL, *arguments)
        return subprocess.run(command, check=True, capture_output=True, text=True,
                              env=self.environment,
                              cwd=self.folder).stdout

    def warned(self, file_bytes, by_status):
        """Both ranks' files are needed; `show` says that there is not so much room, and `status`
        where the job is open.
        """
        for command in (("show", "crash"), ("status",))[:1 + by_status]:
            self.assertIn("a restart on this node would fail",
                          " ".join(self.tool(*command).split()), command)
        room = json.loads(self.tool("show", "crash", "--json"))["restart_room"]
        self.assertEqual(room["needed_bytes"], 2 * file_bytes)
        self.assertLess(room["free_bytes"], room["needed_bytes"])
        for job in json.loads(self.tool("status", "--json"))["jobs"]:
            self.assertEqual(job["restart_room"]["needed_bytes"], 2 * file_bytes)

    def test_a_full_disk(self):
        self.need_mounts()
        self.make_disk(16)  # a version has 4.8 MB: two fit beside the filler
        self.inside("sh", "-c", f"head -c 6M /dev/zero > {self.store}/filler")
        self.start_agent_inside()
        run = self.run_job(2, 8, 2, "wait=1")
        self.assertEqual(run.code, 0, run)
        self.assertEqual({line["code"] for line in run.lines("captured")}, {0}, run)
        refused = [line for line in run.lines("local") if line["code"] != 0]
        self.assertTrue(refused, "the disk was never full")
        for line in refused:
            self.assertEqual(line["code"], ENOSPACE, run)
            self.assertIn("No space left", line["message"])
        local, captured = run.reported("local"), run.reported("captured")
        self.assertGreaterEqual(local, 1)
        # The agent lives: what was captured comes back. Then it does not: what was local does.
        again = self.run_job(2, 8, 2)
        self.assertEqual(again.lines("restart")[0]["version"], captured, again)
        self.kill_agents()
        self.start_agent_inside()
        again = self.run_job(2, 8, 8)
        self.assertEqual(again.code, 0, again)
        self.assertGreaterEqual(again.lines("restart")[0]["version"], local, again)
        # Room again: the next version is local, and so is everything after.
        self.inside("rm", f"{self.store}/filler")
        last = self.run_job(2, 12, 2, "wait=1")
        self.assertEqual(last.code, 0, last)
        self.assertEqual(last.lines("local")[-1]["code"], 0, last)

    def test_a_restart_that_has_no_room_for_routed_files(self):
        """One rank's file has room, the other's has not: nothing is touched, and the same restart
        works once there is.
        """
        self.need_mounts()
        self.make_disk(32)
        inside = ("nsenter", "-m", "-t", str(self.holder.pid))
        options = ("cells=1000", "file_kib=4096", "wait=1")
        self.start_agent_inside()
        self.assertEqual(self.run_job(2, 2, 2, *options, prefix=inside).reported("local"), 1)
        files = f"{self.store}/crash/files"
        digests = self.inside("sh", "-c", f"sha256sum {files}/*")
        for where in ("pool", "disk"):
            with self.subTest(where=where):
                self.inside("sh", "-c",
                            f"head -c $(($(stat -f -c '%a * %S' {self.store}) - (6 << 20))) "
                                        f"/dev/zero > {self.store}/filler")
                run = self.run_job(2, 4, 2, *options, prefix=inside)  # it compares the regions
                line = run.lines("restart")[0]
                self.assertEqual((run.code, line["code"]), (4, ENOSPACE), run)
                self.assertRegex(line["message"],
                                 f"{files}/file.[01]: it needs 4194304 bytes .* [0-9]+ are free")
                self.assertEqual(self.inside("sh", "-c", f"sha256sum {files}/*"), digests,
                                 "no file more, none changed")
                self.warned(4 << 20, by_status=where == "pool")
                self.inside("rm", f"{self.store}/filler")
                run = self.run_job(2, 2, 2, *options, prefix=inside)
                self.assertEqual((run.code, run.lines("restart")[0]["code"]), (0, 0), run)
                self.kill_agents()
                self.start_agent_inside()

    def test_a_read_only_disk_can_be_restarted_from(self):
        self.need_mounts()
        self.make_disk(64)
        self.start_agent_inside()
        local = self.run_job(2, 4, 2, "wait=1").reported("local")
        self.assertEqual(local, 2)
        self.kill_agents()
        self.inside("mkdir",
                    f"{self.store}/crash/v0000000000000009")  # the rest of an unfinished version
        self.inside("mount", "-o", "remount,ro", self.store)
        self.start_agent_inside()
        run = self.run_job(2, 6, 2, "wait=1")
        self.assertEqual(run.lines("restart")[0]["code"], 0, f"{run}\n{self.agent_log()}")
        self.assertEqual(run.lines("restart")[0]["version"], local, run)
        self.assertEqual(run.code, 0, "the program goes on")
        line = run.lines("local")[-1]
        self.assertEqual(line["code"], EPERMISSION, run)
        self.assertIn("Read-only file system", line["message"])
        self.inside("mount", "-o", "remount,rw", self.store)
        run = self.run_job(2, 8, 2, "wait=1")
        self.assertEqual(run.lines("local")[-1]["code"], 0, run)

    def test_a_hung_disk_does_not_keep_an_agent_that_is_told_twice_to_end(self):
        agent = self.start_agent("commit.1=hang")
        gate = self.folder / "gate"
        job = self.start_job(1, 4, 2, f"gate={gate}", "gate_step=3")
        wait_for(lambda: Path(f"{gate}.reached").exists() or job.poll() is not None,
                 "a captured version")
        self.assertIsNone(job.poll(), self.agent_log())
        agent.terminate()
        wait_for(lambda: "agent ends" in self.agent_log(), "the agent to notice")
        self.assertIsNone(agent.poll(), "it has a version that is not on the disk")
        agent.terminate()
        agent.wait(timeout=20)
        self.assertFalse(self.socket.exists())
        self.assertEqual(self.committed(), [])

    def test_a_pipe_in_the_place_of_the_event_log(self):
        """Opening it to write, and waiting for a reader, would block the store's thread without
        end.
        """
        (self.store / "crash").mkdir(parents=True)
        os.mkfifo(self.store / "crash" / "events.jsonl")
        agent = self.start_agent()
        run = self.run_job(1, 4, 2, "wait=1")
        self.assertEqual(run.lines("local")[-1]["code"], 0, run)
        agent.terminate()
        agent.wait(timeout=20)

    def test_what_a_link_names_is_not_written_into(self):
        """A link in the place of a file that Backstay keeps in storage.dir."""
        others = self.folder / "others"
        others.write_text("precious\n")
        (self.store / "crash").mkdir(parents=True)
        for name in ("events.jsonl", "lock"):
            (self.store / "crash" / name).symlink_to(others)
        self.start_agent()
        run = self.run_job(1, 4, 2)
        self.assertIn("is a link", run.lines("init")[0]["message"], run)
        (self.store / "crash" / "lock").unlink()
        self.must_come_back(0)
        self.assertEqual(others.read_text(), "precious\n")

    def test_a_backup_of_hard_links_stays_as_it_is(self):
        """`cp -al` of a version: its segment, once it is removed here, must not become the file of
        a new one.
        """
        self.environment["BACKSTAY_STORAGE_KEEP"] = "1"
        self.start_agent()
        self.assertEqual(self.run_job(1, 4, 2, "wait=1").code, 0)
        version = max((self.store / "crash").glob("v*"))  # older ones may be going just now
        backup = self.folder / "backup"
        subprocess.run(["cp", "-al", version, backup], check=True)
        before = {path: path.read_bytes() for path in backup.iterdir()}
        self.assertEqual(self.run_job(1, 16, 2, "wait=1").code, 0)
        self.assertFalse(version.exists())
        for path, content in before.items():
            self.assertEqual(path.read_bytes() == content, True, f"{path} changed")

    def test_a_pipe_in_the_place_of_the_log(self):
        """Opening it would wait for a reader without end, with one more such agent at each start.
        """
        pipe = self.folder / "log"
        os.mkfifo(pipe)
        self.environment["BACKSTAY_AGENT_LOG_FILE"] = str(pipe)
        self.environment["BACKSTAY_AGENT_START_TIMEOUT_S"] = "20"
        run = self.run_job(1, 4, 2)
        self.assertIn("agent.log_file", run.lines("init")[0]["message"], run)
        self.assertIn("a pipe that no process reads", run.lines("init")[0]["message"], run)
        self.assertEqual(self.agents(), [])

    def test_a_directory_without_permission(self):
        options = {}
        if os.geteuid() == 0:
            options = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
            if subprocess.run(["test", "-x", JOB], check=False, **options).returncode != 0:
                self.skipTest("another user cannot run the test program here")
        closed = self.folder / "closed"
        closed.mkdir(mode=0o500)
        open_folder = self.folder / "open"
        open_folder.mkdir(mode=0o777)
        open_folder.chmod(0o777)
        self.socket = open_folder / "a" / "agent.sock"
        self.environment["BACKSTAY_AGENT_SOCKET"] = str(self.socket)
        self.environment["BACKSTAY_DIR"] = str(closed / "store")
        run = self.run_job(2, 4, 2, **options)
        self.assertNotEqual(run.code, 0, run)
        line = run.lines("init")[0]
        self.assertEqual(line["code"], EPERMISSION, run)
        self.assertIn(str(closed / "store"), line["message"])
        self.assertIn("storage.dir", line["message"])


if __name__ == "__main__":
    main()
