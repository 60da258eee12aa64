#!/usr/bin/env python3
"""Random operations on files, natively and captured: each result and each byte must be the same.

    random_test.py LIBRARY PROGRAM FOLDER [--seeds N] [--operations N] [--first SEED]
                   [--collector BACKSTAY]

With --collector each file that is closed goes to the node's agent, which brings it to its place.

The seed of a difference is printed; --first SEED --seeds 1 replays it. Every life of the program is
one seed; it begins in the folder that the life before has left.
"""

import argparse
import contextlib
import filecmp
import os
import pathlib
import random
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
from capturing import Capture, Pooled, World, temporary_files  # noqa: E402

LIVES_IN_A_FOLDER = 3
# Found at random once: access() asked the old file, whose mode another one was to replace.
KNOWN = [62343164]


def life(program, seed, operations, folder, environment):
    done = subprocess.run([program, str(seed), str(operations), folder], env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    captured = int(done.stderr.split(b"captured ")[-1].split()[0]) if done.stderr else 0
    return done.stdout.decode(errors="replace").splitlines(), done.returncode, captured


def first_difference(native, captured):
    for number, (one, other) in enumerate(zip(native, captured)):
        if one != other:
            return f"line {number}: natively {one!r}, captured {other!r}"
    return f"{len(native)} lines natively, {len(captured)} captured"


def tree(folder):
    """Each file with what must be the same: kind, mode, names, size, link."""
    found = {}
    for path in sorted(folder.rglob("*")):
        stat = path.lstat()
        name = path.relative_to(folder).as_posix()
        size = stat.st_size if path.is_file() else 0
        link = os.readlink(path) if path.is_symlink() else ""
        found[name] = (oct(stat.st_mode), stat.st_nlink, size, link)
    return found


def compare_folders(native, captured):
    one, other = tree(native), tree(captured)
    for name in sorted(one.keys() | other.keys()):
        if one.get(name) != other.get(name):
            return f"{name}: natively {one.get(name)}, captured {other.get(name)}"
        path = native / name
        if path.is_file() and not filecmp.cmp(path, captured / name, shallow=False):
            return f"{name}: other bytes"
    return None


def differences(options, seed):
    """Lives with this seed and those after it in fresh folders; yields (captured, difference)."""
    native, captured = options.folder / "native", options.folder / "captured"
    for folder in (native, captured):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    capture = (Pooled(options.world, captured) if options.world else
               Capture(options.library, captured))
    environment = capture.environment()
    for offset in range(min(LIVES_IN_A_FOLDER, options.seeds)):
        one = life(options.program, seed + offset, options.operations, native, dict(os.environ))
        other = life(options.program, seed + offset, options.operations, captured, environment)
        capture.settle()
        difference = None
        if one[:2] != other[:2]:
            difference = first_difference(one[0], other[0]) + f"; status {one[1]}, {other[1]}"
        difference = difference or compare_folders(native, captured)
        if not difference and temporary_files(captured):
            difference = f"left: {temporary_files(captured)}"
        yield other[2], difference and f"seed {seed}, life {offset}: {difference}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", type=pathlib.Path)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--operations", type=int, default=500)
    parser.add_argument("--first", type=int, default=None)
    parser.add_argument("--collector", type=pathlib.Path, default=None)
    options = parser.parse_args()
    logged = {"BACKSTAY_AGENT_LOG_LEVEL": "debug"}
    with (World(options.collector, **logged) if options.collector else
          contextlib.nullcontext()) as world:
        options.world = world
        compare(options)


def compare(options):
    first = random.randrange(10**9) if options.first is None else options.first
    print(f"seeds {first} to {first + options.seeds - 1}, {options.operations} operations each",
          flush=True)
    all_captured = 0
    known = KNOWN if options.first is None else []
    for seed in [*known, *range(first, first + options.seeds, LIVES_IN_A_FOLDER)]:
        for captured, difference in differences(options, seed):
            all_captured += captured
            if difference:
                sys.exit(f"{difference}\nthe folders are left in {options.folder}")
    print(f"{all_captured} descriptors were those of memory files")
    if options.world:
        captured = options.world.log().count("version is local")
        renamed = options.world.log().count("a file was renamed")
        print(f"{captured} files went through the pool, {renamed} were renamed on their way")
        if options.seeds >= 10 and renamed < options.seeds:
            sys.exit("too few were renamed on their way: the comparison says nothing")
        if options.seeds >= 10 and captured < options.seeds:
            sys.exit("too few files went through the pool: the comparison says nothing")
    if options.seeds >= 10 and all_captured < options.seeds:
        sys.exit("too few files were captured: the comparison says nothing")
    shutil.rmtree(options.folder)


if __name__ == "__main__":
    main()
