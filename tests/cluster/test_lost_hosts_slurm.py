"""Copies of captured files on another node of an allocation of Slurm: at the next attempt in the
same allocation, and in the next one, on other nodes.
"""

import pytest

from captured import COPY, Captured
from conftest import finish
from minicluster import checks, waiting
from minicluster.errors import MissingFeature

SLURM_UP = ("slurm", "up", "--silence-s", 6)
CMP = "cmp in/a out/a && cmp in/b out/b && cmp in/c out/c && echo all of them"


@pytest.fixture(scope="module")
def able_to_slurm(cluster):
    try:
        checks.require_tools(checks.SLURM_TOOLS)
    except MissingFeature as missing:
        pytest.skip(str(missing))
    yield
    cluster("up", 4)
    cluster("slurm", "down")


@pytest.fixture
def captured(able_to_slurm, whole):
    whole(*SLURM_UP)
    one = Captured(whole, "n1", durable=False)
    one.launcher = ["srun"]
    yield one
    whole.end_on_all("backstayd ", "backstay-collector")


def allocation(nodes, count):
    return ["salloc", "--no-kill", "--oversubscribe", f"--nodelist={nodes}", f"--nodes={count}"]


def test_a_lost_node_and_the_next_attempt_in_the_same_allocation(captured, whole):
    """n1 is lost, its keeper n2 is a spare."""
    running = captured.start(
        ["--spares", "1"], ["-N2", "-n2"], f"case $(hostname)$BACKSTAY_ATTEMPT in "
        f"n10) {COPY} in/a in/b in/c; read x <never;; n00) read x <never;; *) {CMP};; esac",
        before=allocation("n[0-2]", 3))
    captured.wait_for_protected("n1", 3)
    assert captured.count("n2", "n1", "commit.local") == 3
    whole("kill", "n1")
    code, output = finish(running)
    assert code == 0 and output.count("all of them") == 2, output
    assert "brought 3 captured files home out of the copies of " in output, output
    assert f"{captured.job}.files.n1 on n2" in output, output
    assert captured.count("n2", "n1", "*") == 0
    for host in ("n0", "n2"):
        look = "pgrep -f '[g]ive-copies|[k]eep-copies' || true"
        waiting.until(lambda: whole.on(host, look) == "", f"the end of the steps on {host}")


def test_the_next_allocation_has_the_node_that_keeps_the_copies(captured, whole):
    """`backstay run` is killed, and its allocation ends; the node that wrote the files is lost."""
    running = captured.start([], ["-N1", "-n1"], f"{COPY} in/a in/b in/c; read x <never",
                             before=allocation("n[1-2]", 2))
    captured.wait_for_protected("n1", 3)
    whole.on("n0", f"pkill -KILL -f '^[^ ]*/backstay run --job {captured.job} '")
    finish(running)
    whole("kill", "n1")
    code, output = finish(captured.start(["--spares", "1"], ["-N1", "-n1"], CMP,
                                         before=allocation("n[2-3]", 2)))
    assert code == 0 and "all of them" in output, output
    assert f"home out of the copies of {captured.job}.files.n1 on n2" in output, output
