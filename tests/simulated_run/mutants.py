#!/usr/bin/env python3
"""Takes one mended defect back into src/agent at a time and sees the simulation of whole runs find it.

Usage: mutants.py ROOT CMAKE [NAME ...]. Builds a copy of the sources in a folder of its own, each file alone so that a mutant
costs one compiler run. Each is played for SEEDS seeds at most. Standard library only.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SEEDS = int(os.environ.get("BACKSTAY_SIMULATED_RUNS", "10000"))
PARTS = ["CMakeLists.txt", "CMakePresets.json", "cmake", "src", "include", "tests"]

# name: [(file, text, text in its place) ...]; each is a change of the past that mended a defect, taken back.
MUTANTS = {
    "34740ed a version that was read from the pool exists on other nodes' disks": [
        ("restore.cc", "return done() && succeeded_ && others ?", "return done() && (succeeded_ || others) && succeeded_ ?"),
    ],
    "38735a4 what is recorded as protected takes the place of what was announced": [
        ("retention.cc", "return stored.version == safe || (may_be_needed && !stored.doubtful);",
         "return stored.version == safe || (false && may_be_needed);"),
        ("decisions.cc", "  if (hello.nodes == 1) return;\n  for (auto& [number, stored] : state_.disk) {",
         "  if (hello.nodes >= 1) return;\n  for (auto& [number, stored] : state_.disk) {"),
    ],
    "f81b7c6 a part that cannot be written takes other nodes' copies along": [
        ("store.cc", "if (part.nodes == 1) return (*tier_)->remove(folder);", "if (part.nodes >= 1) return (*tier_)->remove(folder);"),
    ],
    "ad2a8ef the newest version whose part is protected here may be removed": [
        ("favoured.cc", "if (version > protected_here_) hold(protected_here_, version);", "(void)version;"),
    ],
    "6ed1a80 a copy of another node's part is taken for this node's own": [
        ("decisions.cc", "return stored.record.run == hello.run &&\n",
         "return false && stored.record.run == hello.run &&\n"),
    ],
    "cb05cea what a node has removed becomes protected through a copy": [
        ("store.cc", "if (!command.part || sealed_.contains(command.version)) return {};", "if (!command.part || true) return {};"),
        ("protection.cc", "if (!is_announced(entry.first)) keep.recorded", "if (false) keep.recorded"),
    ],
    "cf7f159 a run that protects nothing keeps all that earlier runs protected": [
        ("job.cc", "Announced{protects ? 0 : format::version_max}", "Announced{protects ? 0 : format::version_max * 0}"),
    ],
    "490d554 a copy says protected, what is given up leaves its files": [
        ("protection.cc", "if (file.run != world_.state.run) return true;", "if (file.run == world_.state.run) return true;"),
        ("job.cc", "if (stored.record.run == state_.run) {", "if (stored.record.run != 0) {"),
    ],
}


def build(folder: Path) -> None:
    subprocess.run(["ninja", "-C", str(folder / "build"), "simulated_run"], check=True, stdout=subprocess.DEVNULL)


def play(folder: Path) -> tuple[int, str]:
    environment = dict(os.environ, BACKSTAY_SIMULATED_RUNS=str(SEEDS))
    environment.pop("BACKSTAY_TEST_SEED", None)
    done = subprocess.run([str(folder / "build/tests/simulated_run/simulated_run")], env=environment,
                          capture_output=True, text=True, check=False)
    told = [line for line in done.stdout.splitlines() if line.startswith("seed ")]
    return done.returncode, told[0] if told else (done.stdout + done.stderr).strip()[-300:]


def change(text: str, name: str, old: str, new: str) -> str:
    assert text.count(old) == 1, f"{name} does not hold once: {old}"
    return text.replace(old, new)


def main() -> int:
    root, cmake, wanted = Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    survived = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for part in PARTS:
            copy = shutil.copytree if (root / part).is_dir() else shutil.copy
            copy(root / part, folder / part)
        subprocess.run([cmake, "-S", str(folder), "-B", str(folder / "build"), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
                        "-DBACKSTAY_BUILD_PYTHON=OFF", "-DBACKSTAY_BUILD_BENCH=OFF", "-DBACKSTAY_BUILD_EXAMPLES=OFF"],
                       check=True, stdout=subprocess.DEVNULL)
        build(folder)
        for name, changes in MUTANTS.items():
            if wanted and not any(one in name for one in wanted):
                continue
            for file, old, new in changes:
                path = next((folder / "src/agent").rglob(file))
                path.write_text(change(path.read_text(), file, old, new))
            build(folder)
            code, said = play(folder)
            print(f"{'found' if code != 0 else 'NOT FOUND':9} {name}: {said}", flush=True)
            if code == 0:
                survived.append(name)
            for file, _, _ in changes:
                path = next((root / "src/agent").rglob(file))
                shutil.copy(path, folder / path.relative_to(root))
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
