"""What the tests of real processes share: one agent and one job in a folder of their own, and the
rule.

The rule: a reported level is never lost; a restart gives the exact bytes of a complete version
(crash_job compares them), the same on all ranks, or a clear error. Everything started is ended, by
process id, also when a test fails. Standard library only.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from header_codes import listed  # noqa: E402
from processes import agents_at, end_agents, wait_for  # noqa: E402

JOB, BACKSTAYD = sys.argv[1:3]
DEADLINE_S = 60
# What crash_job says of a call, and which function of backstay.h that is.
CALLS = {"init": "init_group", "restart": "restart", "captured": "checkpoint", "local": "wait",
         "test": "test",
         "wait": "wait", "read_region": "read_region", "finalize": "finalize"}


stopping = False


def stop(*_):
    """A test runner that loses patience: this test fails, its cleanup runs, the others are skipped.
    """
    global stopping
    stopping = True
    raise SystemExit("asked to end")


signal.signal(signal.SIGTERM, stop)


SANITIZED = bool(os.environ.get("BACKSTAY_SANITIZE"))  # memory and descriptors are the sanitizer's too


class ProcessCase(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        if stopping:
            self.skipTest("asked to end")
        self.folder = Path(tempfile.mkdtemp(prefix="backstay-crash-"))
        self.folder.chmod(0o755)
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.store = self.folder / "store"
        self.socket = self.folder / "agent" / "agent.sock"
        self.children = []
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("BACKSTAY_")},
            "BACKSTAY_JOB": "crash",
            "BACKSTAY_DIR": str(self.store),
            "BACKSTAY_AGENT_SOCKET": str(self.socket),
            "BACKSTAY_AGENT_PROGRAM": BACKSTAYD,
            "BACKSTAY_AGENT_IDLE_EXIT_S": "60",
            "BACKSTAY_POOL_SIZE_MIB": "24",
            "BACKSTAY_POOL_BUFFER_MIB": "1",
            "BACKSTAY_CHECKPOINT_POLICY": "request",
        }
        self.addCleanup(self.end_everything)

    # --- agents ----------------------------------------------------------------------------------

    def agents(self, socket=None):
        return agents_at(socket or self.socket)

    def start_agent(self, failpoint=None, prefix=(), socket=None, **popen):
        environment = dict(self.environment)
        if failpoint:
            environment["BACKSTAY_FAILPOINT"] = failpoint
        socket = socket or self.socket
        if not self.agents(socket):
            # Of an agent that was killed: the new one is there with its own.
            socket.unlink(missing_ok=True)
        with open(self.folder / "agent.out", "ab") as log:
            begin = log.tell()
            agent = subprocess.Popen(
                [*prefix, BACKSTAYD, "--foreground", "--socket", str(socket)], env=environment,
                cwd=self.folder, stdout=log, stderr=log, **popen)
        self.children.append(agent)
        # Not its name alone: between bind() and this line the name is not watched.
        wait_for(lambda: b"agent listens" in (self.folder / "agent.out").read_bytes()[begin:]
                 or agent.poll() is not None,
                 "the agent to listen")
        self.assertIsNone(agent.poll(), self.agent_log())
        return agent

    def agent_log(self):
        return (self.folder / "agent.out").read_text(errors="replace")[-3000:]

    def kill_agents(self, number=signal.SIGKILL):
        end_agents(self.socket, number)
        self.reap()

    def reap(self):
        for child in self.children:
            child.poll()

    def end_everything(self):
        for child in self.children:
            if child.poll() is None:
                child.kill()
                child.wait()
        end_agents(self.socket, signal.SIGKILL)

    # --- the program -----------------------------------------------------------------------------

    def start_job(self, ranks=2, steps=6, every=2, *options, **popen):
        job = subprocess.Popen([*popen.pop("prefix", ()), JOB,
                                *map(str, (ranks, steps, every, *options))], text=True,
                               env=popen.pop("env", self.environment), cwd=self.folder,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, **popen)
        self.children.append(job)
        return job

    def finish(self, job):
        try:
            output, errors = job.communicate(timeout=DEADLINE_S)
        except subprocess.TimeoutExpired:
            job.kill()
            output, errors = job.communicate()
            self.fail(f"the program hangs:\n{output}\n{errors}\n{self.agent_log()}")
        self.assertNotIn("WRONG BYTES", output)
        run = Run(job.returncode, output, errors)
        self.check_codes(run)
        return run

    def check_codes(self, run):
        """Whatever went wrong: no call returns a code that backstay.h does not list for it."""
        for what, function in CALLS.items():
            for line in run.lines(what):
                self.assertIn(line["code"], listed()[function] | {0}, f"{what}: {line}\n{run}")

    def run_job(self, ranks=2, steps=6, every=2, *options, **popen):
        return self.finish(self.start_job(ranks, steps, every, *options, **popen))

    def committed(self):
        """Versions with a commit record on the disk."""
        return sorted(int(path.parent.name[1:]) for path
                      in self.store.glob("crash/v*/commit.local"))

    # --- the rule --------------------------------------------------------------------------------

    def must_come_back(self, at_least, steps=6, ranks=2):
        """A new run restarts from `at_least` or newer, exactly, goes on, and its last version is
        good.
        """
        run = self.run_job(ranks, steps, 2, "wait=1")
        self.assertEqual(run.code, 0, run)
        restart = run.lines("restart")[-1]
        if at_least == 0:
            self.assertIn(restart["code"], (0, 1), run)
        else:
            self.assertEqual(restart["code"], 0, run)
            self.assertGreaterEqual(restart["version"], at_least, run)
        if restart["step"] < steps:
            self.assertEqual(run.lines("local")[-1]["code"], 0, run)
        return restart["version"]


class Run:
    def __init__(self, code, output, errors):
        self.code, self.output, self.errors = code, output, errors

    def __repr__(self):
        return f"exit {self.code}\n{self.output}\n{self.errors}"

    def lines(self, what):
        pattern = rf"^{what} code=(\d+) version=(\d+) step=(\d+) message=(.*)$"
        return [{"code": int(c), "version": int(v), "step": int(s), "message": m}
                for c, v, s, m in re.findall(pattern, self.output, re.MULTILINE)]

    def reported(self, what):
        """The newest version that was reported as `what` (captured or local); 0 if none."""
        return max((line["version"] for line in self.lines(what) if line["code"] == 0), default=0)


def main():
    unittest.main(module="__main__", argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
