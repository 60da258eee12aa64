"""A history as plain data, for --json: all that the page draws or sums up of nodes."""

import dataclasses

from . import spread
from .history import History, Version
from .nodes import natural

LEVELS = ("begin_s", "captured_s", "written_s", "local_s", "protected_s", "durable_s")


def _slowest(version: Version) -> dict:
    found = {name: spread.of(version, name) for name in ("blocked", "captured", "written")}
    return {name: one._asdict() for name, one in found.items() if one is not None}


def _version(version: Version) -> dict:
    parts = [{"node": name, "bytes": part.bytes, "blocked_s": part.blocked_s,
              "disk_s": part.disk_s, "captured_to_written_s": part.writing_s,
              # fmt: skip.
              **{level: getattr(part, level) for level in LEVELS}} for name,
              part in sorted(version.parts.items(), key=lambda one: natural(one[0]))]
    levels = {level: getattr(version, level) for level in LEVELS if level != "written_s"}
    return {"version": version.number, "run": version.run, "bytes": version.bytes,
            "blocked_s": version.blocked_s,
            **levels, "slowest": _slowest(version), "parts": parts}  # fmt: skip


def _node(one: spread.NodeSum) -> dict:
    return {**dataclasses.asdict(one), "bytes_per_s": one.bandwidth}


def of(history: History) -> dict:
    """Times in s since `begin_ns`."""
    wait = spread.longest_wait(history)
    return {
        "begin_ns": history.begin_ns,
        "nodes": [_node(one) for one in spread.nodes(history)],
        "nodes_without_log": history.without_log,
        "clocks": [one._asdict() for one in history.clocks],
        "lost_nodes": [dataclasses.asdict(one) for one in history.losses],
        "longest_wait": None if wait is None
        else dict(zip(("node", "rank", "version", "seconds"), wait, strict=True)),
        "versions_by_node": [_version(one) for one in history.captured],
        "marks": [{**dataclasses.asdict(one), "of": sorted(one.of)} for one in history.marks],
        "standing": [{**one._asdict(), "seconds": one.seconds} for one in history.stands],
        "restarts_by_node": [dataclasses.asdict(one) for one in history.restarts],
    }
