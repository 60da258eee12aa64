#!/usr/bin/env python3
"""A copy of the sources, the three plain commands of the presets, and `make clean`, which must
leave the sources alone.

cmake --preset, cmake --build --preset (one target of many: `make build` builds them all in the same
way), ctest --preset. Standard library only.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from scratch import run

ROOT = Path(__file__).resolve().parents[2]
SKIPPED = 77


def sources() -> list[str]:
    """What git would commit; nothing where the sources did not come by git."""
    asked = subprocess.run(["git", "-c", "safe.directory=*", "-C", ROOT, "ls-files", "-z", "-co",
                            "--exclude-standard"],
                           capture_output=True, text=True)
    return [name for name in asked.stdout.split("\0") if name and (ROOT / name).exists()]


def copied(names: list[str], to: Path) -> Path:
    for name in names:
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, to / name, follow_symlinks=False)
    return to


def everything_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def listed_tests(ctest: Path, tree: Path, *which: str) -> set[str]:
    listed = json.loads(run([ctest, *which, "--show-only=json-v1"], cwd=tree))
    return {test["name"] for test in listed["tests"]}


def presets_work(cmake: Path, tree: Path) -> None:
    ctest = cmake.with_name("ctest")
    run([cmake, "--preset", "release"], cwd=tree)
    run([cmake, "--build", "--preset", "release", "--target", "base_test"], cwd=tree,
        timeout_s=600)
    said = run([ctest, "--preset", "release", "-R", "^base_test$", "--no-tests=error"], cwd=tree)
    if "100% tests passed" not in said:
        sys.exit(f"ctest --preset ran no test:\n{said}")
    by_preset = listed_tests(ctest, tree, "--preset", "release")
    all_but_soak = listed_tests(ctest, tree, "--test-dir", "build/release", "-LE", "^soak$")
    if by_preset != all_but_soak:
        sys.exit(f"ctest --preset release leaves out: {sorted(all_but_soak - by_preset)}")
    print(f"ok: the presets ({len(by_preset)} tests)", flush=True)


def clean_leaves_the_sources(tree: Path, before: set[str]) -> None:
    (tree / "bin").mkdir()
    (tree / "bin/backstay").symlink_to("../build/release/src/bin/backstay")
    run([sys.executable, "-m", "compileall", "-q", tree / "python"])
    (tree / "python/backstay/_session.so").write_bytes(b"")
    if not everything_in(tree) - before:
        sys.exit("nothing was built, so cleaning shows nothing")
    run(["make", "clean"], cwd=tree)
    after = everything_in(tree)
    if after != before:
        sys.exit(f"make clean left {sorted(after - before)[:10]} and removed "
                 f"{sorted(before - after)[:10]}")
    print("ok: make clean", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cmake", type=Path, required=True)
    arguments = parser.parse_args()
    names = sources()
    if not names:
        print("left out: the sources are not a checkout of git")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory(prefix="bks-") as name:
        tree = copied(names, Path(name) / "tree")
        before = everything_in(tree)
        if (ROOT / ".venv").exists():
            (tree / ".venv").symlink_to(ROOT
                                        / ".venv")  # `make clean` takes the link, not what it points to
        presets_work(arguments.cmake, tree)
        clean_leaves_the_sources(tree, before)


if __name__ == "__main__":
    main()
