#!/usr/bin/env python3
"""A captured program stays within the memory of its control group, as Slurm and containers set it.

    memory_test.py LIBRARY FOLDER

Exits with 77 where this process may not make a control group.
"""

import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from capturing import Capture  # noqa: E402

MIB = 1 << 20
LIMIT = 64 * MIB
# Three files of half the limit, open at once, and memory of its own that grows meanwhile.
PROGRAM = """
files = [open(f"out.{n}", "wb", 0) for n in range(3)]
own = []
for piece in range(32):
    for file in files:
        file.write(bytes([piece]) * (1 << 20))
    if piece % 2:
        own.append(b"x" * (1 << 20))
"""


def memory_folder():
    """Where this process's group lies, and the name of the limit."""
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for root, name, wanted in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory"),
                                   ("/sys/fs/cgroup", "memory.max", "")):
            if controllers != wanted:
                continue
            for folder in (pathlib.Path(root + path), pathlib.Path(root)):
                if (folder / "cgroup.procs").exists() and (pathlib.Path(root) / name).exists():
                    return folder, name
    return None, None


def main():
    library, folder = sys.argv[1:]
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    parent, limit = memory_folder()
    group = parent / f"backstay-test-{pathlib.Path(folder).stat().st_ino}" if parent else None
    try:
        group.mkdir()
        (group / limit).write_text(str(LIMIT))
    except (OSError, AttributeError) as why:
        print(f"no control group can be made here: {why}")
        sys.exit(77)
    try:
        with tempfile.TemporaryDirectory(dir=folder) as place:
            command = ["sh", "-c", f"echo $$ > {group}/cgroup.procs && exec python3 -c '{PROGRAM}'"]
            done = subprocess.run(command, cwd=place, env=Capture(library, place).environment(),
                                  timeout=120, check=False)
            assert done.returncode == 0, done
            for number in range(3):
                data = (pathlib.Path(place) / f"out.{number}").read_bytes()
                assert data == b"".join(bytes([piece]) * MIB for piece in range(32)), number
    finally:
        group.rmdir()
    print("within its memory, every byte there")


if __name__ == "__main__":
    main()
