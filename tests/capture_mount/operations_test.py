#!/usr/bin/env python3
"""Random operations on files, natively and through a mount: each result and byte must be the same.

    operations_test.py BACKSTAY PROGRAM FOLDER [--seeds N] [--operations N] [--first SEED]

The generator and the comparison are those of tests/capture_files. The seed of a difference is
printed; --first SEED --seeds 1 replays it. Every life of the program is one seed; it begins in the
folder that the life before has left. Each life is compared through the mount while files are on
their way, and in the target when all are at home.
"""

import argparse
import os
import pathlib
import random
import shutil
import sys

sys.dont_write_bytecode = True
from mounting import MountWorld, can_mount, temporary_files  # noqa: E402
from random_test import LIVES_IN_A_FOLDER, compare_folders, first_difference, life  # noqa: E402

SKIPPED = 77


def differences(options, seed):
    """The first one of the lives in a fresh folder; None where there is none."""
    native = options.folder / "native"
    shutil.rmtree(native, ignore_errors=True)
    native.mkdir(parents=True)
    with MountWorld(options.backstay) as world:
        for offset in range(min(LIVES_IN_A_FOLDER, options.seeds)):
            case = f"seed {seed}, life {offset}"
            captured = world.mount()
            one = life(options.program, seed + offset, options.operations, native,
                       dict(os.environ))
            other = life(options.program, seed + offset, options.operations, captured,
                         dict(os.environ))
            if one[:2] != other[:2]:
                return (f"{case}: {first_difference(one[0], other[0])}; status {one[1]}, "
                        f"{other[1]}"), world.log()
            difference = compare_folders(native, captured)
            if difference:
                return f"{case}, through the mount: {difference}", world.log()
            world.unmount()
            difference = compare_folders(native, world.target)
            if difference:
                return f"{case}, at home: {difference}", world.log()
            if temporary_files(world.target):
                return f"{case}: left {temporary_files(world.target)}", world.log()
        return None, world.log()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("backstay", type=pathlib.Path)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--operations", type=int, default=500)
    parser.add_argument("--first", type=int, default=None)
    options = parser.parse_args()
    if can_mount():
        print(f"left out: {can_mount()}")
        sys.exit(SKIPPED)
    first = random.randrange(10**9) if options.first is None else options.first
    print(f"seeds {first} to {first + options.seeds - 1}, {options.operations} operations each",
          flush=True)
    captured = 0
    for seed in range(first, first + options.seeds, LIVES_IN_A_FOLDER):
        difference, log = differences(options, seed)
        captured += log.count("version is local")
        if difference:
            sys.exit(f"{difference}\n{log[-3000:]}\nthe native folder is left in {options.folder}")
    print(f"{captured} files went through the pool")
    if options.seeds >= 3 and captured < options.seeds:
        sys.exit("too few files were captured: the comparison says nothing")
    shutil.rmtree(options.folder)


if __name__ == "__main__":
    main()
