"""A log as the agent writes it: runs of 32 ranks that save every 30 s, two of which lose ranks."""

import json
import random

RANKS, BYTES, STEP_S, T0 = 32, 64 << 20, 30.0, 1_795_212_000.0


def _event(kind, at, run, **fields):
    return {"event": kind, "t_ns": int((T0 + at) * 1e9), "job": "lj", "run": f"{run:016x}",
            "node": 0, **fields}


def _capture(draw, at, run, version):
    ranks, ends = [], []
    for rank in range(RANKS):
        begin = at + draw.uniform(0, 0.004)
        ends.append(begin + draw.lognormvariate(-3.2, 0.25))
        ranks.append({"rank": rank, "bytes": BYTES, "begin_ns": int((T0 + begin) * 1e9),
                      "end_ns": int((T0 + ends[-1]) * 1e9)})
    end, writing = max(ends), draw.uniform(1.6, 2.4)
    total = RANKS * BYTES
    return end, [_event("capture_begin", at, run, version=version),
                 _event("captured", end, run, version=version, bytes=total, chunks=16 * RANKS,
                        seconds=end - at, ranks=ranks),
                 _event("local", end + writing, run, version=version, bytes=total, seconds=writing,
                        write_seconds=end - at + writing)]  # fmt: skip


def _later(draw, at, run, version):
    """Levels of a job on several nodes."""
    total = RANKS * BYTES
    return [_event("protected", at + 4, run, version=version, bytes=2 * total, seconds=4.0),
            _event("durable", at + draw.uniform(9, 12), run, version=version, bytes=total,
                   seconds=10.0)]  # fmt: skip


def events(seed=7, pause=6.0, levels=False):
    """(events, failures as (seconds, restored version)): three runs, `pause` seconds apart; the
    first two end by losing ranks. `levels`: protected and durable too."""
    draw, made, version, at, failures = random.Random(seed), [], 0, 0.0, []
    for run, (saves, lost) in enumerate(((8, [3]), (5, [7, 8]), (9, []))):
        made.append(_event("run_begin", at, run, ranks=RANKS, newest=version, release="0.1.0"))
        if run:
            source = "pool" if run == 1 else "local"
            made.append(_event("restart_begin", at + 0.5, run, version=version, **{"from": source}))
            made.append(_event("restored", at + 1.3, run, version=version, bytes=RANKS * BYTES,
                               seconds=0.8, **{"from": source}))
        for _ in range(saves):
            at += STEP_S
            version += 1
            at, some = _capture(draw, at, run, version)
            made += some + (_later(draw, at, run, version) if levels else [])
            if version > 3:
                made.append(_event("removed", at + 3, run, version=version - 3))
        at += 17.0
        for rank in lost:
            made.append(_event("rank_left", at, run, rank=rank, lost=True))
        if lost:
            failures.append((at, version))
        at += pause
    return sorted(made, key=lambda event: event["t_ns"]), failures


def write(folder, lines=None):
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(one) for one in events()[0]] if lines is None else lines
    (folder / "events.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
