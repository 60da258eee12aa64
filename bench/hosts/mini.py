"""The cluster that a benchmark runs on: made for it, and gone after it."""

import argparse
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
MINI = ROOT / "tests" / "cluster" / "mini"
STREAM = ROOT / "tests" / "cluster" / "stream.py"
sys.path.insert(0, str(MINI.parent))

from minicluster import checks, state  # noqa: E402
from minicluster.errors import MissingFeature  # noqa: E402

DEADLINE_S = 120
LEFT_OUT = 77  # exit status where no cluster can be made


def say(text):
    print(text, file=sys.stderr, flush=True)


def a_setting(text):
    """protect.buffers=16 as (protect_buffers, 16): a name in the environment."""
    key, equal, value = text.partition("=")
    if not equal or "." not in key:
        raise argparse.ArgumentTypeError(
            f"'{text}' is not a setting; write it like protect.buffers=16")
    return key.replace(".", "_"), value


def add_options(parser):
    """What both benchmarks take."""
    parser.add_argument("--json", action="store_true", help="the result as JSON in place of tables")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: shows only that it works")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release",
                        help="build folder")
    parser.add_argument("--out", type=pathlib.Path, metavar="FILE",
                        help="keep the JSON there as well")
    parser.add_argument("--hosts", type=int, default=4, dest="host_count", metavar="N",
                        help="of the job (default 4)")
    parser.add_argument("--rate", default="1gbit", help="of each link, each way (default 1gbit)")
    parser.add_argument("--shared-mb-s", type=int, default=100, metavar="MB/S",
                        help="of the shared directory, for all hosts together (default 100)")
    parser.add_argument("--repetitions", type=int, default=5, metavar="N",
                        help="medians of this many (default 5)")
    parser.add_argument("--steps", type=int, default=40, metavar="N",
                        help="steps of the program in a part of a round (default %(default)s)")
    parser.add_argument("--work-us", type=int, default=4000,
                        help="that a step computes (default 4000)")
    parser.add_argument("--idle-us", type=int, default=12000,
                        help="that a step leaves the core to others; all hosts share this "
                             "machine's (default 12000)")
    parser.add_argument("--halo-kib", type=int, default=64,
                        help="to each of both neighbours in a step (default 64)")
    parser.add_argument("--set", type=a_setting, action="append", default=[], metavar="KEY=VALUE",
                        help="a setting of Backstay, such as protect.buffers=16")


def shape_of(options):
    """What the numbers hold for."""
    names = ("host_count", "rate", "shared_mb_s", "repetitions", "work_us", "idle_us", "halo_kib")
    return {"shape": {name: getattr(options, name) for name in names} | {"set": dict(options.set)}}


def what_is_missing(build):
    """Why no cluster can be made here, in one line; None where one can."""
    if not (build / "bench" / "hosts_program").exists():
        return "the program for the hosts is not built (needs Open MPI: libopenmpi-dev)"
    os.environ["PATH"] = checks.system_path()
    try:
        checks.require_cluster()
        checks.require_tools({"mpirun.openmpi": "openmpi-bin", "pkill": "procps"})
    except MissingFeature as missing:
        return " ".join(str(missing).split())
    return None


class Failed(Exception):
    """A part of a benchmark went wrong; the text says which and how."""


class Cluster:
    """tests/cluster/mini with a name of its own."""

    def __init__(self, name):
        self.environment = {**os.environ, "BACKSTAY_MINI_NAME": name}
        self.disks = state.Paths(name).disks

    def start(self, *words):
        return subprocess.Popen([MINI, *map(str, words)], env=self.environment, text=True,
                                stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def finish(self, process, deadline_s=DEADLINE_S):
        """All that it writes. Raises Failed where it fails or hangs."""
        try:
            output, _ = process.communicate(timeout=deadline_s)
        except subprocess.TimeoutExpired:
            process.kill()
            output = f"{process.communicate()[0]}\nit hangs"
        if process.returncode != 0:
            raise Failed(f"{' '.join(map(str, process.args))}: exit "
                         f"{process.returncode}\n{output}\n{self.logs()}")
        return output

    def __call__(self, *words):
        return self.finish(self.start(*words))

    def on(self, host, script):
        return self("exec", host, "--", "bash", "-c", script)

    def on_all(self, hosts, script):
        for process in [self.start("exec", host, "--", "bash", "-c", script) for host in hosts]:
            self.finish(process)

    def host_names(self):
        return [host["name"] for host in self.status()["hosts"]]

    def status(self):
        return json.loads(self("status", "--json"))

    def logs(self):
        show = "hostname; tail -n 20 /tmp/backstay-0/agent.log 2>/dev/null || true"
        texts = []
        for host in json.loads(self.start("status", "--json").communicate()[0]
                               or '{"hosts": []}')["hosts"]:
            if host["state"] == "up":
                texts.append(self.start("exec", host["name"], "--", "bash", "-c",
                                        show).communicate()[0])
        return "".join(texts)

    def stop_agents(self, hosts):
        self.on_all(hosts,
                    "pkill -TERM -f '[/]backstayd ' || true; while pgrep -f '[/]backstayd ' "
                    ">/dev/null; do sleep 0.02; done")

    def forget_versions(self, hosts):
        self.stop_agents(hosts)
        self.on_all(hosts, "rm -rf /var/tmp/backstay-*")

    def lose(self, hosts):
        """Power and disk; they come back with empty ones, as spares would."""
        for host in hosts:
            self("kill", host)
            self("lose-disk", host)
            self("restore-disk", host)
            self("boot", host)
        self.write_through()

    def write_through(self):
        """Disks write and read past this machine's page cache, as those of real nodes do: else all
        that a host has written since would reach the one disk below in its next sync."""
        for image in self.disks.glob("*.img"):
            device = subprocess.run(["losetup", "--noheadings", "--output", "NAME", "--associated",
                                     image], capture_output=True, text=True, check=True)
            for name in device.stdout.split():
                subprocess.run(["losetup", "--direct-io=on", name], capture_output=True,
                               check=False)  # refused: the cache it is

    def drop_caches(self):
        """What the disks' files and the shared directory's have in memory: later reads are reads of
        the disk.
        """
        shared = pathlib.Path(self.status()["shared"]["from_outside"])
        files = [path for path in shared.rglob("*") if path.is_file() and not path.is_symlink()]
        for path in [*files, *self.disks.glob("*.img")]:
            with open(path, "rb+") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def streams(self, hosts, mib, to_each=1):
        """MB/s that a host sends by plain TCP streams of `mib` MiB to the `to_each` next ones, all
        hosts at once, until the last ends.
        """
        receivers, senders = self.start_streams(hosts, mib, to_each)
        for sender in senders:
            self.finish(sender)
        return self.end_streams(receivers, to_each)

    def start_streams(self, hosts, mib, to_each):
        pairs = [(host, (at + 1 + step) % len(hosts), 7000 + step) for step in range(to_each)
                 for at, host in enumerate(hosts)]
        receivers = [self.start("exec", hosts[to], "--", sys.executable, STREAM, "receive", port)
                     for _, to, port in pairs]
        for receiver in receivers:
            if receiver.stdout.readline().strip() != "ready":
                raise Failed(f"no receiver of a plain stream: {self.finish(receiver)}")
        return receivers, [self.start("exec", host, "--", sys.executable, STREAM, "send",
                                      hosts[to], port, mib << 20) for host, to, port in pairs]

    def end_streams(self, receivers, to_each):
        return to_each * min(float(self.finish(receiver)) for receiver in receivers) / 1e6

    @contextlib.contextmanager
    def streaming(self, hosts, to_each):
        """Such streams for as long as the block runs."""
        receivers, senders = self.start_streams(hosts, 1 << 30, to_each) if to_each else ([], [])
        try:
            yield
        finally:
            if senders:
                self.on_all(hosts, "pkill -TERM -f '[/]stream.py send'")
                for sender in senders:
                    sender.communicate(timeout=DEADLINE_S)
                self.end_streams(receivers, to_each)


def end_once(*_):
    """`timeout` sends a second SIGTERM, which must not end the clean-up."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit("ended by SIGTERM")


@contextlib.contextmanager
def cluster(hosts, networks=1):
    """A Cluster that is up; taken away afterwards, whatever happens."""
    signal.signal(signal.SIGTERM, end_once)
    made = Cluster(f"bench-{os.getpid()}")
    made("up", hosts, "--networks", networks, "--disk-size", "6G")
    try:
        made.write_through()
        yield made
    finally:
        made.start("down").communicate(timeout=DEADLINE_S)
