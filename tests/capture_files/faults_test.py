#!/usr/bin/env python3
"""A captured program is killed at each system call, each call fails in turn, its disk is full.

    faults_test.py LIBRARY AT_CALL REPLACE_FILES FOLDER [BACKSTAY]

With BACKSTAY, the program, files that are closed go to the agent, which brings them to their
places.

Under every name there is the old file or the new one, whole. A name of which the program was told
that all went well has the new one, unless it was killed by a power cut, which is not tried here.
"""

import contextlib
import errno
import itertools
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from capturing import Capture, Pooled, World, temporary_files  # noqa: E402

NAMES = ("a", "b", "c", "d")
OLD = b"o" * 9000
NEW = b"n" * 20000
CASES = itertools.count()
ENDED_BEFORE, CANNOT_FAIL = 125, 126


def fresh(folder):
    """A folder of its own for each case: what a killed program has handed over may come late."""
    shutil.rmtree(folder, ignore_errors=True)
    folder = folder / str(next(CASES))
    folder.mkdir(parents=True)
    for name in NAMES:
        (folder / name).write_bytes(OLD)
    return folder


def kind_of(found, begun_is_right):
    if begun_is_right and found is not None and NEW.startswith(found):
        return "new" if found == NEW else "begun"
    return {OLD: "old", NEW: "new"}.get(found, "neither the old file nor the new one")


def check(folder, said, what, told_failures=False):
    for name in NAMES:
        path = folder / name
        found = path.read_bytes() if path.exists() else None
        # A program that was told of a failure has a file as far as it came, as natively.
        kind = kind_of(found, told_failures and f"{name} ok" not in said)
        if kind not in ("old", "new", "begun"):
            sys.exit(f"{what}: {name} is {kind}: {len(found or b'')} bytes; it said {said}")
        if f"{name} ok" in said and kind != "new":
            sys.exit(f"{what}: {name} is the old file, and the program was told that it is written")


def has_nameless_files(folder):
    try:
        os.close(os.open(folder, os.O_RDWR | os.O_TMPFILE))
    except OSError:
        return False
    return True


def kill_everywhere(capture, at_call, program, below, step):
    killed = left = 0
    for number in range(random.randrange(step), 100000, step):
        folder = fresh(below)
        done = capture.run(at_call, "kill", number, program, folder, stdout=subprocess.PIPE)
        said = done.stdout.decode().splitlines()
        capture.settle()
        check(folder, said, f"killed after call {number}")
        left += len(temporary_files(folder))
        if done.returncode == ENDED_BEFORE:
            break
        killed += 1
    if killed < 100 / step:
        sys.exit(f"only {killed} calls: the program was not watched")
    print(f"killed after each of {killed} calls, {left} temporary files left")
    # One for each file: between its getting a name and its rename.
    if left > len(NAMES) and has_nameless_files(below):
        sys.exit("too many temporary files were left")


def fail_everywhere(capture, at_call, program, below, errors, step):
    """The errors take turns: each call fails with one of them."""
    refused = 0
    for number in range(random.randrange(step), 100000, step):
        folder = fresh(below)
        error = errors[number % len(errors)]
        done = capture.run(at_call, "fail", number, error, program, folder,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if done.returncode == CANNOT_FAIL:
            continue
        said = done.stdout.decode().splitlines()
        capture.settle()
        what = f"call {number} failed with {errno.errorcode[error]}"
        check(folder, said, what, told_failures=True)
        if done.returncode == ENDED_BEFORE:
            break
        if done.returncode > 128:
            sys.exit(f"{what}: the program died of signal {done.returncode - 128}")
        refused += sum(not line.endswith(" ok") for line in said)
    print(f"each call failed; the program was told {refused} times")


def full_disk(capture_of, program, folder):
    """A file system with room for less than the new files."""
    if os.geteuid() != 0:
        print("full disk: left out, mounting needs root")
        return
    folder.mkdir(parents=True, exist_ok=True)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=60k", "none", folder],
                             stderr=subprocess.DEVNULL, check=False)
    if mounted.returncode != 0:
        print("full disk: left out, nothing can be mounted here")
        return
    try:
        for name in NAMES:
            (folder / name).write_bytes(OLD)
        done = capture_of(folder).run(program, folder, stdout=subprocess.PIPE)
        said = done.stdout.decode().splitlines()
        check(folder, said, "full disk")
        if not any("No space left on device" in line for line in said):
            sys.exit(f"full disk: the program was not told: {said}")
        left = temporary_files(folder)
        if left:
            sys.exit(f"full disk: left {left}")
    finally:
        subprocess.run(["umount", folder], check=True)
    print("full disk: told, old files whole")


def main():
    library, at_call, program, folder = (pathlib.Path(argument) for argument in sys.argv[1:5])
    folder = pathlib.Path(tempfile.mkdtemp(prefix="faults", dir=folder.parent))
    # Each case takes longer there: every sixth call, from a random one on.
    step = 6 if len(sys.argv) > 5 else 1
    with World(sys.argv[5]) if len(sys.argv) > 5 else contextlib.nullcontext() as world:
        capture = Pooled(world, folder) if world else Capture(library, folder)
        kill_everywhere(capture, at_call, program, folder / "killed", step)
        errors = (errno.EIO, errno.ENOSPC, errno.EMFILE)
        fail_everywhere(capture, at_call, program, folder / "failed", errors, step)
    full_disk(lambda place: Capture(library, place), program, folder / "full")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
