#!/usr/bin/env python3
"""Cuts of an MPI program that is not modified, one asked for as soon as the last has ended: alone,
with more ranks than cores, and beside a process that computes. Prints how long they took.

Usage: cuts.py BACKSTAY PROGRAMS MPI [--cuts N] [--limits]
PROGRAMS holds loop.MPI. --limits: fails where cuts take longer than they may on 2 cores
(README.md).
Standard library only.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SILENCE_S = 120  # without a cut that ends
LAUNCHERS = {"openmpi": ["mpirun.openmpi", "--oversubscribe"], "mpich": ["mpiexec.mpich"]}
# Ranks, processes that compute beside them, and the longest that a cut may take.
WAYS = {"alone": (2, 0, 0.5), "oversubscribed": (4, 0, 0.5), "beside a process": (4, 1, 2)}


def ended(folder):
    """Seconds of each cut that has saved, and why others have not."""
    saved, why = [], []
    for path in sorted((folder / "store" / "cuts").glob("events*.jsonl")):
        for line in path.read_text().splitlines():
            event = json.loads(line)
            if event["event"] == "cut_end":
                saved.append(event["seconds"]) if event["saved"] else why.append(event["why"])
    return saved, why


def environment(folder):
    kept = {key: value for key, value in os.environ.items() if not key.startswith("BACKSTAY_")}
    return {**kept, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "BACKSTAY_DIR": str(folder / "store"), "BACKSTAY_AGENT_SOCKET": str(folder / "agent")}


def play(options, ranks, cuts, folder):
    program = Path(options.programs) / f"loop.{options.mpi}"
    command = [options.backstay, "run", "--transparent", "--job", "cuts", "--interval", "0.001",
               "--", *LAUNCHERS[options.mpi], "-n", str(ranks), program.resolve()]
    running = subprocess.Popen([*map(str, command)], env=environment(folder), cwd=folder,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
    count, since = 0, time.monotonic()
    while count < cuts and running.poll() is None and time.monotonic() - since < SILENCE_S:
        with contextlib.suppress(subprocess.TimeoutExpired):
            running.wait(timeout=0.2)
        now = len(ended(folder)[0])
        if now > count:
            count, since = now, time.monotonic()
    (folder / "go").touch()
    try:
        output, _ = running.communicate(timeout=SILENCE_S)
    finally:
        running.kill()
    saved, why = ended(folder)
    if running.returncode != 0 or f"{ranks} ranks, 0 wrong" not in output or len(saved) < cuts:
        sys.exit(f"FAILED: {len(saved)} cuts, exit code {running.returncode}, {set(why)}\n{output}")
    return saved


def text_of(way, seconds):
    ordered = sorted(seconds)
    at = {part: ordered[min(len(ordered) - 1, int(part * len(ordered)))] for part in (0.99, 0.999)}
    return (f"{way}: {len(ordered)} cuts, median {1e3 * statistics.median(ordered):.1f} ms, 99th "
            f"percentile {1e3 * at[0.99]:.1f} ms, 99.9th {1e3 * at[0.999]:.1f} ms, longest "
            f"{1e3 * ordered[-1]:.1f} ms"), at[0.999]


def main():
    options = argparse.ArgumentParser()
    options.add_argument("backstay")
    options.add_argument("programs")
    options.add_argument("mpi", choices=LAUNCHERS)
    options.add_argument("--cuts", type=int, default=int(os.environ.get("BACKSTAY_CUTS", "2000")))
    options.add_argument("--limits", action="store_true")
    options = options.parse_args()
    options.backstay = str(Path(options.backstay).resolve())
    slow = []
    for way, (ranks, hogs, longest_s) in WAYS.items():
        beside = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(hogs)]
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            try:
                saved = play(options, ranks, -(-options.cuts // len(WAYS)), folder)
            finally:
                for one in beside:
                    one.kill()
                    one.wait()
                subprocess.run([options.backstay, "agent", "stop", "--now"],
                               env=environment(folder), capture_output=True, check=False)
        text, nearly_all_s = text_of(f"{options.mpi}, {ranks} ranks, {way}", saved)
        print(text, flush=True)
        if (max(saved) if hogs else nearly_all_s) > longest_s:
            slow.append(text)
    return 1 if slow and options.limits else 0


if __name__ == "__main__":
    sys.exit(main())
