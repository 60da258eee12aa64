#!/usr/bin/env python3
"""Takes mended defects back into src/agent, one at a time, and sees the simulated runs find each.

Usage: mutants.py ROOT CMAKE [NAME ...]; NAME: part of a mutant's name; without any, all are
played. `make soak` runs it; by hand: tests/simulated_run/mutants.py . cmake 38735a4
`mutants.py ROOT --apply` only looks whether the sources still have what each of them changes.

The sources are copied to build/mutants below ROOT, which stays, and only what has changed there is
compiled: a mutant costs two runs of the compiler, one with it and one (from ccache, where there is
one) without it. Each is played until a seed finds it, for BACKSTAY_SIMULATED_RUNS seeds at most
(10000), on JOBS processes. Standard library only.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SEEDS = int(os.environ.get("BACKSTAY_SIMULATED_RUNS", "10000"))
BLOCK = 50  # seeds that a process plays
JOBS = int(os.environ.get("JOBS", str(os.cpu_count() or 1)))
PARTS = ["CMakeLists.txt", "CMakePresets.json", "cmake", "src", "include", "tests"]
PROGRAM = "build/release/tests/simulated_run/simulated_run"

# name: [(file, text, text in its place) ...]; each is a change of the past that mended a defect,
# taken back.
MUTANTS = {
    "34740ed a version that was read from the pool exists on other nodes' disks": [
        (
            "restore.cc",
            "phase_ == Phase::done && succeeded_ && others;",
            "phase_ == Phase::done && (succeeded_ || others) && succeeded_;",
        ),
        (
            "why_not.cc",
            "decided.contains(restarted_from) ? Level::local",
            "decided.contains(restarted_from) || true ? Level::local",
        ),
    ],
    "38735a4 what is recorded as protected takes the place of what was announced": [
        (
            "src/store/retention.cc",
            "return stored.version == safe || (may_be_needed && !stored.doubtful);",
            "return stored.version == safe || (false && may_be_needed);",
        ),
        ("version_table.cc", "if (lowered) row.announced = Level::local;", "(void)lowered;"),
    ],
    "f81b7c6 a part that cannot be written takes other nodes' copies along": [
        (
            "src/store/part_writer.cc",
            "if (info_.nodes == 1) return tier_.remove(names.folder);",
            "if (info_.nodes >= 1) return tier_.remove(names.folder);",
        ),
    ],
    "ad2a8ef the newest version whose part is protected here may be removed": [
        (
            "retention_pin.cc",
            "told_ = std::move(protected_here_);\n  pin(protected_here_, version);",
            "(void)0;",
        ),
    ],
    "6ed1a80 a copy of another node's part is taken for this node's own": [
        (
            "version_table.cc",
            "copies_[number] = *rows_.at(number).disk;\n    leave_disk(number);",
            "(void)number;",
        ),
    ],
    "cb05cea what a node has removed becomes protected through a copy": [
        (
            "store.cc",
            "if (unrecorded_.contains(command.record.version)) return {};",
            "if (tier_.ok()) return {};",
        ),
        (
            "replicator.cc",
            "if (!is_announced(entry.first)) keep.recorded",
            "if (false) keep.recorded",
        ),
    ],
    "cf7f159 a run that protects nothing keeps all that earlier runs protected": [
        (
            "version_table.cc",
            "newest_announced_ = protects ? 0 : format::version_max;",
            "newest_announced_ = protects ? 0 : format::version_max * 0;",
        ),
    ],
    "490d554 a copy says protected, what is given up leaves its files": [
        (
            "replicator.cc",
            "if (file.run != world_.state.run) return true;",
            "if (file.run == world_.state.run) return true;",
        ),
        (
            "version_table.cc",
            "if (level >= Level::protected_ && version.second == run_) {",
            "if (level >= Level::protected_) {",
        ),
    ],
}


def is_wanted(path: Path) -> bool:
    return path.is_file() and "__pycache__" not in path.parts


def files(root: Path) -> set[Path]:
    found: set[Path] = set()
    for part in PARTS:
        path = root / part
        below = path.rglob("*") if path.is_dir() else [path]
        found.update(one for one in below if is_wanted(one))
    return {path.relative_to(root) for path in found}


def write(path: Path, content: bytes) -> None:
    """Files that have not changed keep their times, so that nothing is compiled for them."""
    if path.exists() and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def copy(root: Path, folder: Path) -> None:
    wanted = files(root)
    for name in files(folder) - wanted if folder.exists() else set():
        (folder / name).unlink()
    for name in wanted:
        write(folder / name, (root / name).read_bytes())


def build(folder: Path) -> None:
    command = ["ninja", "-C", str(folder / "build/release"), "-j", str(JOBS), "simulated_run"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"the mutant does not compile:\n{done.stdout[-3000:]}")


def play(program: Path, first: int) -> str:
    """What the first seed that fails says; empty: all of the block hold."""
    environment = dict(os.environ, BACKSTAY_SIMULATED_FIRST=str(first),
                       BACKSTAY_SIMULATED_RUNS=str(min(BLOCK, SEEDS + 1 - first)))
    environment.pop("BACKSTAY_TEST_SEED", None)
    done = subprocess.run(
        [str(program)], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode == 0:
        return ""
    seeds = [line for line in done.stdout.splitlines() if line.startswith("seed ")]
    if seeds:
        return seeds[0]
    return f"block from seed {first}: " + (done.stdout + done.stderr).strip()[-300:]


def find(program: Path) -> str:
    """The blocks before the first one that fails are played to their end."""
    with ThreadPoolExecutor(JOBS) as pool:
        blocks = [pool.submit(play, program, first) for first in range(1, SEEDS + 1, BLOCK)]
        for block in blocks:
            if said := block.result():
                pool.shutdown(cancel_futures=True)
                return said
    return ""


def change(folder: Path, name: str, changes: list[tuple[str, str, str]]) -> None:
    for file, old, new in changes:
        path = folder / file if "/" in file else next((folder / "src/agent").rglob(file))
        text = path.read_text()
        assert text.count(old) == 1, f"{name}: {file} does not hold once: {old}"
        path.write_text(text.replace(old, new))


def apply_all(root: Path) -> int:
    with tempfile.TemporaryDirectory() as place:
        for name, changes in MUTANTS.items():
            folder = Path(place) / name[:7]
            for part in ("src/agent", "src/store"):
                shutil.copytree(root / part, folder / part)
            change(folder, name, changes)
    return 0


def main() -> int:
    if sys.argv[2] == "--apply":
        return apply_all(Path(sys.argv[1]))
    root, cmake, wanted = Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3:]
    folder = root / "build/mutants"
    copy(root, folder)
    off = [f"-DBACKSTAY_BUILD_{part}=OFF" for part in ("PYTHON", "BENCH", "EXAMPLES")]
    command = [cmake, "--preset", "release", *off]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    survived = []
    for name, changes in MUTANTS.items():
        if wanted and not any(one in name for one in wanted):
            continue
        copy(root, folder)
        change(folder, name, changes)
        build(folder)
        began = time.monotonic()
        said = find(folder / PROGRAM)
        result, seconds = "found" if said else "NOT FOUND", time.monotonic() - began
        print(f"{result:9} {name}: after {seconds:.0f} s: {said}", flush=True)
        if not said:
            survived.append(name)
    copy(root, folder)
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
