"""`backstay run` and its neighbours with a real MPI program (examples/heat) under both launchers.
"""

import contextlib
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import time

import pytest
from conftest import PROGRAM, press
from processes import wait_for

PROGRAMS = pathlib.Path(os.environ.get("BACKSTAY_TEST_HEAT", "/nowhere"))
LAUNCHERS = {"openmpi": ["mpirun.openmpi", "--oversubscribe", "-n", "2"],
             "mpich": ["mpiexec.mpich", "-n", "2"]}
MPIS = [name for name, words in LAUNCHERS.items() if (PROGRAMS / name / "heat").exists()
        and shutil.which(words[0])]
if not MPIS:
    pytest.skip("the heat example was built for no MPI", allow_module_level=True)
FOREVER = 10**9


class Job:
    """heat under `backstay run`; output goes to files so that no pipes must be read."""

    def __init__(self, world, mpi, steps, *options, every=100, name="", alone=False):
        self.world, self.program = world, PROGRAMS / mpi / "heat"
        self.out, self.err = world.folder / f"{name}out", world.folder / f"{name}err"
        env = {**world.env, "BACKSTAY_CHECKPOINT_POLICY": "calls" if every else "request",
               "BACKSTAY_CHECKPOINT_EVERY_CALLS": str(every)}
        supervisor = [] if alone else [PROGRAM, "run", *map(str, options), "--"]
        command = [*supervisor, *LAUNCHERS[mpi], str(self.program), str(steps), "512", "512"]
        with open(self.out, "w") as out, open(self.err, "w") as err:
            self.process = subprocess.Popen(command, env=env, cwd=world.folder,
                                            stdin=subprocess.DEVNULL, stdout=out,
                                            stderr=err)

    def line(self, pattern, seconds=60):
        def look():
            assert self.process.poll() is None or re.search(pattern, self.out.read_text(),
                re.M), self.err.read_text()
            return re.search(pattern, self.out.read_text(), re.M)
        return wait_for(look, pattern, seconds)

    def first_version(self):
        """Asks as soon as the agent knows the job, whether or not the program is in its loop yet.
        """
        deadline = time.monotonic() + 60
        while self.world.run("checkpoint", "heat").returncode != 0:
            assert time.monotonic() < deadline and self.process.poll() is None, self.err.read_text()
        self.line(r"^version 1 ")

    def ranks(self):
        """Only ours: by the socket in their environment."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if os.readlink(entry / "exe") == str(self.program.resolve()) and \
                        self.world.env["BACKSTAY_AGENT_SOCKET"].encode() in (entry
                            / "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
        return sorted(found)

    def end(self):
        return self.process.wait(timeout=90)


@pytest.fixture(params=MPIS)
def mpi(request):
    return request.param


@pytest.fixture
def start(world):
    jobs = []

    def make(*words, **more):
        jobs.append(Job(world, *words, **more))
        return jobs[-1]

    yield make
    for job in jobs:
        press(job.process)
    for job in jobs:
        for pid in job.ranks():  # of a test that failed before it ended them
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def test_a_killed_rank_is_survived(world, start, mpi):
    job = start(mpi, 1500)
    job.line(r"^version 2 ")
    os.kill(job.ranks()[-1], signal.SIGKILL)
    assert job.end() == 0, job.err.read_text()
    text, remarks = job.out.read_text(), job.err.read_text()
    said = re.search(r"restart 1 of 3 from version (\d+), captured", remarks)
    came = re.search(r"^restart version (\d+) ", text, re.M)
    assert said and came and int(came[1]) >= int(said[1]) >= 2
    assert re.search(r"^done step 1500 checksum", text, re.M)
    newest = re.findall(r"^version (\d+) ", text, re.M)[-1]
    assert re.search(rf"^backstay run: \d+ versions in .* local.*; the newest, {newest}, is "
                     rf"(captured|local)$", remarks, re.M)
    assert re.search(r"^backstay run: 1 restart, which took .* of work lost$", remarks, re.M)
    assert re.search(r"^backstay run: the program waited .* % of its time", remarks, re.M)
    assert world.run("agent", "stop").returncode == 0  # what was captured reaches the disk
    newest = world.json("ls", "heat")["versions"][-1]
    assert newest["state"] == "complete" and newest["ranks"] == 2
    assert {r["name"] for r in world.json("show", "heat")["regions"]} == {"n", "u"}
    assert all(v["good"] for v in world.json("verify", "heat")["versions"])


def test_a_killed_launcher_is_survived(start, mpi):
    job = start(mpi, 1500)
    job.line(r"^version 2 ")
    children = subprocess.check_output(["ps", "-o", "pid=,comm=", "--ppid", str(job.process.pid)],
                                       text=True).splitlines()
    launcher, = [line.split()[0] for line in children if not line.endswith("backstayd")]
    os.kill(int(launcher), signal.SIGKILL)
    assert job.end() == 0, job.err.read_text()
    assert re.search(r"^restart version \d+ ", job.out.read_text(), re.M)


def test_sigterm_saves_and_ends(world, start, mpi):
    job = start(mpi, FOREVER, every=0)
    job.first_version()
    job.process.send_signal(signal.SIGTERM)
    assert job.end() == 0, job.err.read_text()
    last = re.findall(r"^version (\d+) ", job.out.read_text(), re.M)[-1]
    assert int(last) >= 2 and "done step" in job.out.read_text()
    assert f"stopped; the same command starts from version {last}" in job.err.read_text()


def test_sigusr1_and_checkpoint_ask_for_versions(world, start, mpi):
    job = start(mpi, FOREVER, every=0)
    job.first_version()
    job.process.send_signal(signal.SIGUSR1)
    job.line(r"^version 2 ")
    done = world.json("checkpoint", "heat", "--stop", "--wait")
    assert done["version"]["version"] >= 3 and done["version"]["level"] == "local"
    assert job.end() == 0
    assert "done step" in job.out.read_text()


def test_status_and_top_show_the_job(world, start):
    job = start(MPIS[0], FOREVER)
    job.line(r"^version 2 ")
    wait_for(lambda: world.json("status")["disk"]["written_bytes"] > 0, "bytes on the disk")
    status = world.json("status")
    heat, = status["jobs"]
    assert (heat["job"], heat["ranks"], heat["connected"], heat["dir"]) == ("heat", 2, 2,
        str(world.dir))
    found = {one["check"]: one["found"] for one in
             json.loads(world.run("doctor", "--quick", "--json").stdout)["checks"]}
    assert status["disk"]["io_uring"] == (found["io_uring"] == "used"), (status["disk"], found)

    def writes():
        looks = world.run("top", "--json", "--count", 2, "--interval", 1).stdout.splitlines()
        first, second = map(json.loads, looks)
        assert second["disk"]["written_bytes"] >= first["disk"]["written_bytes"]
        return second["rates"]["write_bytes_per_s"] > 0

    wait_for(writes, "a second in which bytes are written")
    lines = world.run("top", "--count", 1).stdout
    assert "2 of 2 ranks connected" in lines
    again = world.run("run", "--job", "heat", "--", "true")
    assert again.returncode == 7 and "a program of job heat is running here (2 ranks); wait for its end" in again.stderr
    assert all(f"process {pid})" in again.stderr for pid
               in job.ranks()) and "--take-over" in again.stderr, again.stderr
    # A program that saves faster than the disk has its newest versions only in the pool.
    assert re.search(r"version +\d+ .*(captured|local)", lines), lines


@pytest.mark.skipif(not shutil.which("tmux"), reason="tmux is not installed")
def test_top_on_a_terminal(world, start):
    job = start(MPIS[0], FOREVER)
    job.line(r"^version 2 ")
    tmux = ["tmux", "-S", str(world.folder / "tmux")]
    env = {**world.env, "SHELL": "/bin/sh"}
    screen = lambda: subprocess.check_output([*tmux, "capture-pane", "-p", "-t", "t"], text=True)
    subprocess.run([*tmux, "new-session", "-d", "-s", "t", "-x", "80", "-y", "20", "sh"], env=env,
                   check=True)
    try:
        subprocess.run([*tmux, "send-keys", "-t", "t",
                        f"{PROGRAM} top --interval 0.2; echo ended $?", "Enter"], check=True)
        wait_for(lambda: "2 of 2 ranks connected" in screen(), "the screen")
        shown = screen()
        assert shown.startswith("backstay top  agent pid") and "pool [" in shown and "q quit" in shown
        assert re.search(r"cached, \d+ free$", shown, re.MULTILINE), "cut at 80 columns:\n" + shown
        assert re.search(r"version +\d+ .* (local|captured)", shown)
        before = re.search(r"version +(\d+)", shown)[1]
        wait_for(lambda: re.search(r"version +(\d+)", screen())[1] != before,
                 "a change on the screen")
        subprocess.run([*tmux, "send-keys", "-t", "t", "q"], check=True)
        wait_for(lambda: "ended 0" in screen(), "the end")
        assert "q quit" not in screen()  # the screen from before is back
    finally:
        subprocess.run([*tmux, "kill-server"], check=False)


def test_ranks_that_hold_the_job_are_ended_by_take_over(world, start, mpi):
    """Here their launcher lives; on several hosts it may be lost (tests/cluster/test_run_hosts.py).
    """
    first = start(mpi, FOREVER, alone=True)
    first.line(r"^version 2 ")
    ranks = first.ranks()
    assert len(ranks) == 2
    refused = start(mpi, FOREVER, name="refused")
    assert refused.end() == 7 and "--take-over ends them" in refused.err.read_text()
    assert all(map(alive, ranks))
    again = start(mpi, FOREVER, "--take-over", name="again")
    again.line(r"^restart version \d+ ")
    said = again.err.read_text()
    assert all(f"process {pid})" in said for pid
               in ranks) and "backstay run: ended rank 0" in said, said
    assert not any(map(alive, ranks)) and first.end() != 0


def test_ranks_that_outlived_their_agent_are_seen(world, start, mpi):
    """Two programs of one job would write the same files."""
    first = start(mpi, FOREVER)
    first.line(r"^version 2 ")
    ranks, agent = first.ranks(), world.json("agent", "status")["pid"]
    for pid in (first.process.pid, agent):
        os.kill(pid, signal.SIGKILL)
    first.end()
    refused = start(mpi, FOREVER, name="refused")
    assert refused.end() == 7, refused.err.read_text()
    named = re.search(r"process (\d+) of an earlier run of job heat is alive .*\(kill \1\)",
                      refused.err.read_text())
    assert named and int(named[1]) in ranks, refused.err.read_text()
    assert all(map(alive, ranks))
    for pid in ranks:
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not any(map(alive, ranks)), "the end of the ranks")
    again = start(mpi, FOREVER, name="again")
    again.line(r"^restart version \d+ ")


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_a_removed_version_is_not_restarted_from(world, start):
    """The agent has it in its pool, and would be quicker with it than with an older one on the
    disk.
    """
    def versions(word):
        found = [v["version"] for v in world.json("ls", "heat")["versions"]
                 if v["state"] == "complete"]
        return word in found and found

    assert start(MPIS[0], 300).end() == 0
    wait_for(lambda: versions(3), "version 3 to be complete")
    done = world.run("rm", "heat", 3, "--force")
    assert done.returncode == 0, done.stderr
    assert 3 not in [v["version"] for job in world.json("status")["jobs"] for v in job["versions"]]
    again = start(MPIS[0], 300)
    assert again.end() == 0
    assert re.search(r"^restart version 2 ", again.out.read_text(), re.M), again.out.read_text()
    newest = int(re.findall(r"^version (\d+) ", again.out.read_text(), re.M)[-1])
    wait_for(lambda: versions(newest), "the newest to be complete")
    assert world.run("rm", "heat", "--all", "--force").returncode == 0
    fresh = start(MPIS[0], 200)
    assert fresh.end() == 0
    assert not re.search(r"^restart version", fresh.out.read_text(), re.M), fresh.out.read_text()


def test_rm_takes_what_could_not_be_written_out_of_the_pool(world, start):
    """No trace of it is on the disk: the file size limit represents any reason not to write."""
    def in_agent():
        return {v["version"]: v["error"] for job in world.json("status")["jobs"] for v
                in job["versions"]}

    assert world.run("agent", "start").returncode == 0
    resource.prlimit(world.json("agent", "status")["pid"], resource.RLIMIT_FSIZE,
                     (1 << 20, 1 << 20))
    start(MPIS[0], 150).end()
    held = in_agent()
    assert 1 in held and all(held.values()), held
    assert not list(world.dir.glob("heat/v*")), "it was written after all"
    assert world.run("rm", "heat", 77).returncode == 3
    assert world.json("rm", "heat", 1, "--dry-run")["removed"] == [1] and 1 in in_agent()
    assert world.json("rm", "heat", "--all", "--force")["removed"] == sorted(held)
    assert in_agent() == {}


def test_an_agent_is_stopped_by_its_process(world):
    assert world.run("agent", "start").returncode == 0
    pid = world.json("agent", "status")["pid"]
    done = world.run("agent", "stop", "--pid", os.getpid())
    assert done.returncode == 2 and "is no agent" in done.stderr, done
    assert world.run("agent", "stop", "--pid", pid, "--now").returncode == 0
    assert world.run("agent", "status").returncode == 5
