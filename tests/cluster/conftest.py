"""What the tests share: a folder of clusters of their own, the tool as a person calls it, one
cluster of four hosts.
"""

import glob
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
FOLDER = "/var/lib/backstay-mini-test-"  # and our process id
os.environ["BACKSTAY_MINI_DIR"] = f"{FOLDER}{os.getpid()}"

from minicluster import checks, cli, cluster as clusters_here, remote  # noqa: E402
from minicluster.errors import MissingFeature  # noqa: E402

MINI = HERE / "mini"
DEADLINE_S = 120
in_soak = pytest.mark.skipif("BACKSTAY_TEST_SOAK" not in os.environ, reason="make soak runs it")


def finish(process, text=None):
    """(exit status, all that it still writes); ends it where it hangs."""
    try:
        output, _ = process.communicate(text, timeout=DEADLINE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        pytest.fail(f"it hangs: {process.args}")
    return process.returncode, output


def wait_for_line(process, wanted):
    """Reads on until the program has written this line."""
    lines = []
    end = threading.Timer(DEADLINE_S, process.kill)
    end.start()
    for line in iter(process.stdout.readline, ""):
        lines.append(line)
        if line == f"{wanted}\n":
            end.cancel()
            return
    end.cancel()
    pytest.fail(f"no line '{wanted}' from {process.args}, but:\n{''.join(lines)}")


class Mini:
    """tests/cluster/mini with --name."""

    def __init__(self, name):
        self.name = name
        self.environment = {**os.environ, "BACKSTAY_MINI_NAME": name}

    def start(self, *words, **popen):
        return subprocess.Popen([sys.executable, MINI, *map(str, words)], env=self.environment,
                                text=True,
                                stdin=popen.pop("stdin", subprocess.DEVNULL),
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **popen)

    def run(self, *words):
        """(exit status, output)."""
        return finish(self.start(*words))

    def __call__(self, *words):
        code, output = self.run(*words)
        assert code == 0, f"mini {' '.join(map(str, words))}: exit {code}\n{output}"
        return output

    def on(self, host, script):
        """As `mini exec HOST -- bash -c SCRIPT`, without a new Python each time: it is called
        hundreds of times.
        """
        paths = clusters_here.find(self.name)[0]
        environment = cli.environment(paths,
                                      {**remote.caller_environment(),
                                       "BACKSTAY_MINI_NAME": self.name})
        with open(os.devnull) as nothing, tempfile.TemporaryFile("w+") as output:
            descriptors = [nothing.fileno(), output.fileno(), output.fileno()]
            with remote.request(paths.server(host), ["bash", "-c", script], descriptors,
                                environment) as connection:
                connection.settimeout(DEADLINE_S)
                code = remote.wait(connection, host)
            output.seek(0)
            text = output.read()
        assert code == 0, f"on {host}: {script}: exit {code}\n{text}"
        return text

    def status(self):
        return clusters_here.status(self.name)

    def host(self, name):
        return next(host for host in self.status()["hosts"] if host["name"] == name)

    def end_on_all(self, *programs):
        """Kills these programs on each host that is up."""
        kills = "; ".join(f"pkill -KILL -f '[/]{program}' || true" for program in programs)
        for host in self.status()["hosts"]:
            if host["state"] == "up":
                self.on(host["name"], kills)

    def end_agents(self):
        self.end_on_all("backstayd ")


@pytest.fixture(scope="session", autouse=True)
def able():
    try:
        checks.require_cluster()
    except MissingFeature as missing:
        pytest.skip(f"no cluster can be made here: {missing}", allow_module_level=True)


def remove_those_of_killed_tests():
    for folder in glob.glob(f"{FOLDER}*"):
        if not Path(f"/proc/{folder.removeprefix(FOLDER)}").exists():
            subprocess.run([sys.executable, MINI, "down", "--all"],
                           env={**os.environ, "BACKSTAY_MINI_DIR": folder}, check=True)


@pytest.fixture(scope="session")
def clusters(able):
    """Makes Mini objects; whatever they leave is taken away at the end."""
    remove_those_of_killed_tests()
    yield Mini
    Mini("any")("down", "--all")
    assert not Path(os.environ["BACKSTAY_MINI_DIR"]).exists()


@pytest.fixture(scope="session")
def cluster(clusters):
    mini = clusters("four")
    mini("up", 4)
    return mini


@pytest.fixture
def whole(cluster):
    """The cluster; what a test cuts, kills or loses is repaired after it."""
    yield cluster
    hosts = cluster.status()["hosts"]
    links = [link for host in hosts for link in host["links"]]
    if any(host["state"] == "down" for host in hosts):
        cluster("up", 4)
    if any(link["state"] == "cut" for link in links):
        cluster("heal", "all")
    if any(link["rate_bits_per_s"] for link in links):
        cluster("unshape")
    for host in cluster.status()["hosts"]:
        if host["disk_rate_bytes_per_s"]:
            cluster("slow-disk", host["name"], "off")
        if host["disk"] == "lost":
            cluster("restore-disk", host["name"])
