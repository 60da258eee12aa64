"""What saving at three levels costs a job on a machine, to first order. docs/plan/advise.md has the
equations.

Levels: local (0), protected (1), durable (2). Times in s, sizes in B, bandwidths in B/s.
"""

import math
from typing import NamedTuple

import numpy as np

from . import interval, protection
from .check import fraction, positive, whole
from .words import counted

# Nodes that an incident takes: about LANL's, docs/plan/replay.md.
SIZES = {1: 0.96, 2: 0.03, 8: 0.01}
REPLICAS, GROUPS = (1, 2, 3, 4), ((4, 1), (8, 2), (14, 2))
# Per second of computing; beyond it failures strike what first order takes for undisturbed.
LOST_MAX = 0.5


class Machine(NamedTuple):
    """`saved_bytes`: what a node saves; bandwidths of a node (storage: of all shared storage), in
    B/s.
    """

    nodes: int
    saved_bytes: float
    copy_bytes_per_s: float
    disk_bytes_per_s: float
    network_bytes_per_s: float
    storage_bytes_per_s: float


class Failures(NamedTuple):
    """`mtti_s` of the whole job; `shape` of Weibull's law; `sizes`: share of incidents by nodes
    lost; `software_share`: of all failures those after which every node is still there."""

    mtti_s: float
    shape: float = 1.0
    sizes: dict[int, float] = SIZES
    software_share: float = 0.0


class Choice(NamedTuple):
    """A way to protect. Per byte saved: `extra` bytes stored more, `sent` by a node, `read` to
    rebuild a lost node's; `lost_share`: of incidents those it cannot mend."""

    name: str
    scheme: protection.Scheme
    extra: float
    sent: int
    read: int
    lost_share: float


class Plan(NamedTuple):
    """Every `interval_s` a version, each durable_every-th of them to shared storage. `blocked_s`:
    how long it stops the job; `lag_s`: from captured to each level; `restart_s`: from each level.
    """

    choice: Choice
    interval_s: float
    durable_every: int
    blocked_s: float
    lag_s: tuple[float, float, float]
    restart_s: tuple[float, float, float]


class Lost(NamedTuple):
    """Seconds lost per second of computing."""

    saving: float
    rework: float
    under_way: float
    restarts: float

    @property
    def efficiency(self) -> float:
        return 1 / (1 + sum(self))


def checked(machine: Machine, found: Failures) -> None:
    """PlanError for what cannot be."""
    whole("nodes", machine.nodes, 2, 2**20)
    for name in Machine._fields[1:]:
        positive(name, getattr(machine, name))
    positive("mtti_s", found.mtti_s)
    fraction("software_share", found.software_share)
    fraction("sizes", list(found.sizes.values()))


def choices(nodes: int, found: Failures) -> list[Choice]:
    """The protections that fit on this many nodes: random replicas, parity groups."""
    ways = [(counted(count, "replica"), protection.RandomReplicas(nodes, replicas=count),
             float(count), count, 1)
            for count in REPLICAS if count < nodes]  # fmt: skip
    ways += [(f"parity {data}+{parity}", protection.Parity(nodes, data=data, parity=parity),
              parity / data, parity, data)
             for data, parity in GROUPS if data + parity <= nodes]  # fmt: skip
    return [Choice(*way, lost_share(way[1], found)) for way in ways]


def lost_share(scheme: protection.Scheme, found: Failures) -> float:
    """Share of all failures after which only durable is left."""
    hard = 1 - found.software_share
    return hard * sum(share * scheme.loss(min(size, scheme.units)) for size,
                      share in found.sizes.items())


def rates(choice: Choice, found: Failures) -> np.ndarray:
    """Failures a second that need local, protected, durable."""
    hard = 1 - found.software_share - choice.lost_share
    return np.array([found.software_share, max(0.0, hard), choice.lost_share]) / found.mtti_s


def plan(machine: Machine, found: Failures, choice: Choice) -> Plan:
    """A version is protected, and a durable one durable, before the next of its kind begins."""
    saved, all_saved = machine.saved_bytes, machine.saved_bytes * machine.nodes
    blocked = saved / machine.copy_bytes_per_s
    local = saved / machine.disk_bytes_per_s
    network, disk = machine.network_bytes_per_s, machine.disk_bytes_per_s
    # Sends while others write.
    protected = local + saved * max(choice.sent / network, choice.extra / disk)
    rebuilt = saved * max(choice.read / network, 1 / disk)
    drain = all_saved / min(machine.storage_bytes_per_s,
                            machine.nodes * machine.network_bytes_per_s)
    tau = max(float(interval.long_job_s(blocked, found.mtti_s)), protected)
    return Plan(choice, tau, max(1, math.ceil(drain / tau)), blocked,
                (local, protected, protected + drain),
                (local, rebuilt, drain))  # fmt: skip


def lost(planned: Plan, found: Failures) -> Lost:
    """A failure loses half an interval of the level that it needs, what was under way to that
    level, and the restart.
    """
    rate = rates(planned.choice, found)
    spans = np.array([1.0, 1.0, float(planned.durable_every)]) * planned.interval_s
    return Lost(planned.blocked_s / planned.interval_s, float(rate @ spans) / 2,
                float(rate @ planned.lag_s),
                float(rate @ planned.restart_s))  # fmt: skip
