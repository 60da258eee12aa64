"""The names of a job's nodes: numbers start again with each run, names of hosts stay."""

import collections
import re

Key = tuple[str, int]  # run, number in it


def _is_name(host) -> bool:
    return isinstance(host, str) and re.fullmatch(r"[A-Za-z0-9._-]{1,64}", host) is not None


class Names:
    """A name for each (run, number): that of the host if its log has it."""

    def __init__(self, events: list[dict]):
        self.hosts = {(one["run"], one["node"]): one["host"] for one in events
                      if one["event"] == "run_begin" and _is_name(one.get("host"))}  # fmt: skip
        self.shared = collections.Counter((run, host) for (run, _), host in self.hosts.items())

    def of(self, run: str, number: int) -> str:
        host = self.hosts.get((run, number))
        if host is None:
            return f"node {number}"
        return host if self.shared[run, host] == 1 else f"{host} (node {number})"


def natural(name: str) -> list:
    """To sort by: n2 before n10."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part
            in re.split(r"([0-9]+)", name) if part]


def listed(names, most: int = 4) -> str:
    """n0, n1 and 62 more."""
    some = sorted(names, key=natural)
    return ", ".join(some) if len(some) <= most else f"{', '.join(some[: most - 1])} and {len(some) - most + 1} more"
