"""`backstay run --transparent` and a launcher over several hosts: processes that call no MPI, saved
together; a host that dies, other hosts at the next start, an agent and a host's companion that die.
"""

import re
import signal

import pytest
from conftest import HERE, finish
from minicluster import waiting
from supervised import LAUNCHERS
from whole_processes import REPLICAS, Job, hosts_option, kinds, slurm

STEPS = 1000
SOURCE = (HERE.parent / "support" / "ranks.py").read_text()


class Counters(Job):
    program = re.search(r'COUNTER = """\n(.*?)"""', SOURCE, re.DOTALL)[1]

    def command(self):
        return [*super().command(), STEPS]


@pytest.fixture
def job(whole):
    yield lambda launcher: Counters(whole, launcher, **REPLICAS)
    whole.end_agents()


@pytest.fixture(scope="module")
def undisturbed(cluster):
    return Counters(cluster, []).run_undisturbed()


@kinds
def test_a_host_that_dies(job, whole, undisturbed, kind):
    one = job(LAUNCHERS[kind])
    running = one.start("--spares 1 --retries 9", hosts_option(kind, "n0", "n1", "n2"))
    one.wait_for_protected()
    whole("kill", "n1")
    code, output = finish(running)
    assert code == 0, output
    assert "goes on without n1, with n2 instead" in output and "from version" in output, output
    assert one.outputs() == undisturbed, output


@kinds
def test_other_hosts_at_the_next_start(job, whole, undisturbed, kind):
    one = job(LAUNCHERS[kind])
    running = one.start("", hosts_option(kind, "n0", "n1"))
    one.wait_for_protected()
    running.send_signal(signal.SIGTERM)
    code, output = finish(running)
    assert code == 143 and "the same command starts from version" in output, output
    waiting.until(lambda: one.protected() > 0, "its last version on both")
    code, output = finish(one.start("", hosts_option(kind, "n1", "n2"), on="n1"))
    assert code == 0, output
    assert one.outputs() == undisturbed, output


def ends_on(mini, one, running, victim):
    """Once one more version is on other hosts. False: the job had ended before."""
    seen = one.protected()
    kill = f"pkill -KILL -o -f '{victim}' && echo ended || true"
    over = lambda: running.poll() is not None  # noqa: E731
    waiting.until(lambda: one.protected() > seen or over(), "a version on other hosts")
    waiting.until(lambda: "ended" in mini.on("n1", kill) or over(), f"{victim} on n1")
    return not over()


@kinds
def test_what_dies_on_another_host(job, whole, undisturbed, kind):
    """An agent costs no life of the job; a companion, and a program, one."""
    for _ in range(3):  # on a busy machine the job may end before the last victim
        one = job(LAUNCHERS[kind])
        running = one.start("--retries 9", hosts_option(kind, "n0", "n1"))
        victims = ("[/]backstayd ", "[/]backstay-companion ", "^/usr/bin/python3 app.py")
        all_ended = all(ends_on(whole, one, running, victim) for victim in victims)
        code, output = finish(running)
        assert code == 0, output
        assert one.outputs() == undisturbed, output
        if all_ended:
            return
    raise AssertionError("the job had ended before the last victim, three times")


def test_srun_in_an_allocation(job, whole, undisturbed):
    with slurm(whole):
        one = job(["srun", "--mpi=none"])
        running = one.start_in_allocation("--retries 9")
        waiting.until(lambda: "out.3" in one.outputs(), "all ranks")
        one.wait_for_protected()
        whole.on("n1", "pkill -KILL -o -f '[/]backstay-companion '")
        code, output = finish(running)
        assert code == 0 and "restart 1 of 9 from version" in output, output
        assert one.outputs() == undisturbed, output
