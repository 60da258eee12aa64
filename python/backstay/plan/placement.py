"""Random balanced placement of replicas: paper 002, Algorithm 1, extended by failure domains.

The extension keeps the algorithm and asks of each swap, besides, that a node's replicas lie in
domains other than its own and each other's. With domains of one node it is the algorithm as
printed. `placed_replicas` is what the agents compute, for domains of any size:
docs/protocol/placement.md.
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
    """Replicas[i, j], the node of node i's j-th replica: never i, no duplicates, each node stores
    exactly `replicas`.

    Domains are consecutive runs of `domain_nodes` nodes; replicas of a node lie in different ones.
    Raises PlanError if that cannot be. Algorithm 1 is one sweep; for fewer than about 64 nodes it
    favours the initial shifts (by half at 16 nodes), which more sweeps even out.
    """
    n, d = whole("nodes", nodes, 2), whole("domain_nodes", domain_nodes)
    if n % d:
        raise PlanError("domain_nodes", f"must divide the number of nodes ({n})")
    r = whole("replicas", replicas, 1, n // d - 1,
              "each replica needs another node in another failure domain")
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
    return not any(k != j and (mine[k] // d == takes or theirs[k] // d == gives) for k
                   in range(len(mine)))


def placed_replicas(domains: list[str], replicas: int, seed: int) -> list[list[int]]:
    """Replicas of each node as the agents place them: docs/protocol/placement.md. `domains`: one a
    node, "" for none.
    """
    n = whole("nodes", len(domains), 1)
    r = whole("replicas", replicas, 0, n - 1, "each replica needs another node")
    draw = _split_mix(seed)
    order = list(range(n))
    for i in range(n - 1, 0, -1):
        z = draw(i + 1)
        order[i], order[z] = order[z], order[i]
    label = [domain or node for node, domain in enumerate(domains)]
    rank = {domain: k for k, domain in enumerate(dict.fromkeys(label[node] for node in order))}
    order.sort(key=lambda node: rank[label[node]])
    where = [label[node] for node in order]
    # With its own copy first.
    table = [[(p + j * n // (r + 1)) % n for j in range(r + 1)] for p in range(n)]
    for p in list(range(n)) * 5:
        for j in range(1, r + 1):
            z = draw(n - 1)
            z += z >= p
            if _agents_may_swap(table[p], table[z], j, where):
                table[p][j], table[z][j] = table[z][j], table[p][j]
    place = {node: p for p, node in enumerate(order)}
    return [[order[p] for p in table[place[node]][1:]] for node in range(n)]


def _agents_may_swap(mine: list[int], theirs: list[int], j: int, where: list) -> bool:
    """No node would keep two copies of one segment, and no more pairs of copies would share a
    domain.
    """
    gives, takes = mine[j], theirs[j]
    others, others_z = mine[:j] + mine[j + 1:], theirs[:j] + theirs[j + 1:]
    if takes in others or gives in others_z:
        return False

    def sharing(place, copies):
        return sum(where[k] == where[place] for k in copies)

    return sharing(takes, others) + sharing(gives, others_z) <= sharing(gives,
        others) + sharing(takes, others_z)


def _split_mix(state: int):
    """draw(end): the next number of SplitMix64, in 0..end-1."""
    def draw(end: int) -> int:
        nonlocal state
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        z = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        return (z ^ z >> 31) * end >> 64

    return draw
