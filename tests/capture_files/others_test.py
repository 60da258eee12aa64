#!/usr/bin/env python3
"""Other programs touch captured files that are on their way to their places, and disks are full.

    others_test.py BACKSTAY FOLDER [--only NAME]

A file of which others have changed no byte comes to its place. One that others have written stays
theirs, and who waits for it is told.
"""

import argparse
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
from capturing import World  # noqa: E402

MIB = 1 << 20


def need(condition, what):
    if not condition:
        sys.exit(what)


@contextlib.contextmanager
def old_disk(folder, mib):
    """A file system that cannot reserve room; false where none can be mounted."""
    place = folder / "old"
    place.mkdir(parents=True, exist_ok=True)
    image = folder / "old.image"
    image.write_bytes(bytes(mib * MIB))
    made = shutil.which("mkfs.ext2", path=f"{os.environ['PATH']}:/sbin:/usr/sbin")
    mounted = made is not None and os.geteuid() == 0 and subprocess.run(
        f"{made} -q -m 0 {image} && mount -o loop {image} {place}", shell=True,
        stderr=subprocess.DEVNULL, check=False).returncode == 0
    try:
        yield place if mounted else None
    finally:
        if mounted:
            subprocess.run(["umount", "-l", place], check=True)
        image.unlink()


def real_in_part(program, folder):
    """A file that cannot be made real for want of room is none that others have written."""
    with World(program) as world, old_disk(folder, 8) as place:
        if place is None:
            print("real in part: left out, nothing can be mounted here")
            return
        (place / "filler").write_bytes(bytes(4 * MIB))
        script = f"""
import os
f = open({str(place / 'x')!r}, 'wb', buffering=0)
f.write(b'A' * {6 * MIB})
if os.fork() == 0: os._exit(0)
os.wait()
f.seek(0)
f.truncate(0)
os.unlink({str(place / 'filler')!r})
f.write(b'C' * 100000)
f.close()
"""
        done = world.run(place, sys.executable, "-c", script, stderr=subprocess.PIPE, text=True)
        need(done.returncode == 0, f"real in part: {done}")
        found = (place / "x").read_bytes()
        need(found == b"C" * 100000, f"real in part: {len(found)} bytes, {found.count(b'A')} old")
    print("real in part")


TESTS = {test.__name__: test for test in (real_in_part,)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", choices=TESTS)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for name, test in TESTS.items():
        if options.only in (None, name):
            test(options.program, options.folder.resolve())


main()
