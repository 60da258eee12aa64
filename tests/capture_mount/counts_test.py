#!/usr/bin/env python3
"""What the event log says of files that were captured by a mount: every byte and every file, in as
many writes as the kernel made.

    counts_test.py BACKSTAY
"""

import os
import sys

sys.dont_write_bytecode = True
from mounting import MountWorld, can_mount  # noqa: E402
from written import need, sum_with  # noqa: E402

MIB = 1 << 20


def write(path, size, sync=False):
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    for begin in range(0, size, 1000):
        os.write(file, b"x" * min(1000, size - begin))
    if sync:
        os.fsync(file)
    os.close(file)


def main():
    if can_mount():
        print(f"left out: {can_mount()}")
        sys.exit(77)
    with MountWorld(sys.argv[1], BACKSTAY_CAPTURE_POOL_KIB="64") as world:
        mounted = world.mount()
        write(mounted / "large", 3 * MIB)
        write(mounted / "synced", MIB, sync=True)
        write(mounted / "small", 5000)
        world.unmount()
        found = sum_with(world, closes=3, captured=2)
        files = found.files
        need((files["captured"], files["captured bytes"]) == (2, 4 * MIB), files)
        need((files["direct"], files["direct bytes"]) == (1, 5000), files)
        need(sum(size for _, size in found.writes.values()) == 4 * MIB + 5000, found.writes)
        need(dict(found.calls) == {"open": 3, "close": 3, "fsync": 1}, found.calls)


if __name__ == "__main__":
    main()
