"""Random balanced placement of replicas: paper 002, Algorithm 1, extended by failure domains.

The extension keeps the algorithm and asks of each swap, besides, that a node's replicas lie in domains other
than its own and each other's. With domains of one node it is the algorithm as printed.
"""

import numpy as np

from .check import PlanError, whole


def initial_shifts(nodes: int, replicas: int, domain_nodes: int = 1) -> np.ndarray:
    """Lines 1 to 4 (Fig. 6): replica j of node i on node i + (j + 1) × domain_nodes."""
    steps = (np.arange(replicas) + 1) * domain_nodes
    return (np.arange(nodes)[:, None] + steps) % nodes


def random_replicas(
    nodes: int, replicas: int, rng: np.random.Generator, domain_nodes: int = 1, sweeps: int = 1
) -> np.ndarray:
    """Replicas[i, j], the node of node i's j-th replica: never i, no duplicates, each node stores exactly `replicas`.

    Domains are consecutive runs of `domain_nodes` nodes; replicas of a node lie in different ones. Raises PlanError
    if that cannot be. Algorithm 1 is one sweep; for fewer than about 64 nodes it favours the initial shifts (by half
    at 16 nodes), which more sweeps even out.
    """
    n, d = whole("nodes", nodes, 2), whole("domain_nodes", domain_nodes)
    if n % d:
        raise PlanError("domain_nodes", f"must divide the number of nodes ({n})")
    r = whole("replicas", replicas, 1, n // d - 1, "each replica needs another node in another failure domain")
    table = initial_shifts(n, r, d).tolist()
    for _ in range(whole("sweeps", sweeps)):
        _sweep(table, n, r, d, iter(rng.integers(0, n - 1, size=n * r).tolist()))
    return np.array(table)


def _sweep(table: list[list[int]], n: int, r: int, d: int, drawn) -> None:
    """Lines 5 to 24: every replica is offered one swap with the same column of a random node."""
    for i in range(n):
        mine = table[i]
        for j in range(r):
            z = next(drawn)
            z += z >= i  # lines 7 to 10: a random node other than i
            theirs = table[z]
            if _may_swap(i, z, mine, theirs, j, d):
                mine[j], theirs[j] = theirs[j], mine[j]  # lines 19 and 20


def _may_swap(i: int, z: int, mine: list[int], theirs: list[int], j: int, d: int) -> bool:
    """Lines 11 to 17: neither node would replicate into its own domain or twice into one."""
    gives, takes = mine[j] // d, theirs[j] // d
    if takes == i // d or gives == z // d:
        return False
    return not any(k != j and (mine[k] // d == takes or theirs[k] // d == gives) for k in range(len(mine)))
