"""Random losses of hosts: a job with replicas or parity, one or two hosts that lose power, with or
without their disks, while it runs or afterwards, and the same job on what is left, in another
order. One seed a round (tests/soak/README.md).

What must hold: the newest version that is protected according to the event log of any surviving
host comes back, or a newer one, and the result is that of an undisturbed run. If more is lost than
the protection tolerates: the same, or a clear error.
"""

import os
import random
import re
import subprocess
import time

import pytest

from conftest import finish
from test_nodes import JOB, Nodes, nodes, result, undisturbed  # noqa: F401

pytestmark = pytest.mark.skipif(not JOB, reason="Open MPI is missing")
SEED = int(os.environ.get("BACKSTAY_SEED", "20261123"))
ROUNDS = int(os.environ.get("BACKSTAY_TEST_HOST_ROUNDS", "2"))
# The protection, the nodes that it needs, the losses that it tolerates.
PROTECTIONS = [({"protect_replicas": 1}, 2, 1), ({"protect_replicas": 2}, 3, 2),
               ({"protect_parity": "2,1"}, 3, 1),
               ({"protect_parity": "3,1"}, 4, 1), ({"protect_parity": "2,2"}, 4, 2)]  # fmt: skip
HOSTS = ["n0", "n1", "n2", "n3"]


class Round:
    def __init__(self, seed: int, job: Nodes):
        self.dice, self.job = random.Random(seed), job
        self.protection, needed, self.bears = self.dice.choice(PROTECTIONS)
        self.hosts = self.dice.sample(HOSTS, self.dice.randrange(needed, len(HOSTS) + 1))
        self.told = [f"seed {seed} (replay: BACKSTAY_SEED={seed} BACKSTAY_TEST_HOST_ROUNDS=1): "
                     f"{self.protection} on {self.hosts}"]

    def lose(self, count: int, spared: list[str]) -> None:
        """`count` of the hosts, not those of `spared`."""
        for host in self.dice.sample([one for one in self.hosts if one not in spared], count):
            with_disk = self.dice.random() < 0.7
            self.told.append(f"{host} loses power{' and its disk' if with_disk else ''}")
            self.job.mini("kill", host)
            if with_disk:
                self.job.mini("lose-disk", host)
            self.lost[host] = with_disk

    def promised(self) -> int:
        """The newest version that is protected according to a surviving host."""
        log = f"cat /var/tmp/backstay-root/{self.job.job}/events.jsonl 2>/dev/null || true"
        found = [0]
        for host in self.left():
            for line in self.job.mini.on(host, log).splitlines():
                found += [int(one) for one in re.findall(r'"event":"protected".*"version":(\d+)',
                    line)]
        return max(found)

    def left(self) -> list[str]:
        return [one for one in self.hosts if one not in self.lost]

    def play(self, expected: dict[int, str]) -> None:
        self.lost: dict[str, bool] = {}
        count = self.dice.randrange(1, min(self.bears, len(self.hosts) - 1) + 1)
        in_the_middle = self.dice.random() < 0.5
        run = self.job.start(self.hosts, 20, **self.protection)
        if in_the_middle:
            # The point in time is what is random here; nothing waits for it.
            time.sleep(self.dice.uniform(0.3, 3))
            # The launcher's host is another matter: test_run_hosts.py.
            self.lose(count, self.hosts[:1])
        code, output = self.end(run)
        self.told += [output]
        if not in_the_middle:
            assert code == 0 and result(output) == expected[20], self.all()
            self.lose(count, [])
        promised = self.promised()
        self.told.append(f"version {promised} must come back")
        self.again(promised, expected[40])

    def end(self, run) -> tuple[int, str]:
        """A launcher that still waits for a lost host is ended, as `backstay run` does."""
        try:
            run.wait(30)
        except subprocess.TimeoutExpired:
            self.told.append("the launcher is ended")
            for host in self.left():
                self.job.mini.on(host, f"pkill -KILL mpirun; pkill -KILL -f '^{JOB}' || true")
        return finish(run)

    def again(self, promised: int, expected: str) -> None:
        """On what is left, hosts that took no part, and those that come back with their disks; at
        least two.
        """
        back = [host for host,
                with_disk in self.lost.items() if not with_disk and self.dice.random() < 0.5]
        for host in back:
            self.job.mini("boot", host)
        hosts = self.left() + back + [one for one in HOSTS if one not in self.hosts
                                      and self.dice.random() < 0.5]
        if len(hosts) == 1:
            spare = next(iter(one for one in HOSTS if one not in self.hosts), next(iter(self.lost)))
            if spare in self.lost:
                self.job.mini("boot", spare)
                if self.lost[spare]:
                    self.job.mini("restore-disk", spare)
            hosts.append(spare)
        self.dice.shuffle(hosts)
        self.told.append(f"again on {hosts}")
        code, output = finish(self.job.start(hosts, 40, protect_replicas=1))
        self.told.append(output)
        assert code == 0 and result(output) == expected, self.all()
        came = re.search(r"restarted version=(\d+)", output)
        assert int(came[1]) >= promised if came else promised == 0, self.all()

    def all(self) -> str:
        return "\n".join(self.told) + self.job.logs()


@pytest.mark.parametrize("seed", range(SEED, SEED + ROUNDS))
def test_hosts_are_lost_at_random(nodes, undisturbed, seed):  # noqa: F811
    Round(seed, nodes).play(undisturbed)
