#!/usr/bin/env python3
"""What is not bytes: attributes and times of captured files, and the numbers of descriptors.

    beside_test.py LIBRARY FOLDER [BACKSTAY]
"""

import contextlib
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from capturing import Capture, Pooled, World  # noqa: E402

ATTRIBUTES = """
import os
os.utime('old', ns=(1_000_000_000_000_000_005, 5))
for name in ('old', 'new'):
    with open(name, 'wb') as file:
        file.write(b'n' * 400000)
        os.setxattr(name, 'user.kind', b'checkpoint')
assert os.getxattr('new', 'user.kind') == b'checkpoint'
assert os.getxattr('old', 'user.kind') == b'checkpoint'
print(os.stat('old').st_atime_ns)
"""
# Opens as many files as there are numbers, and says how many are in memory, how many it got, and
# the greatest number.
MANY = """
import os
files = []
try:
    while True: files.append(os.open(f'file{len(files)}', os.O_WRONLY | os.O_CREAT | os.O_TRUNC))
except OSError: pass
memory = [fd for fd in files if os.readlink(f'/proc/self/fd/{fd}').startswith('/memfd:')]
for fd in files: os.write(fd, b'x' * 5000)
for fd in files: os.close(fd)
print(len(memory), len(files), max(files))
"""


def attributes(capture, folder):
    """Those that were set while the file was in memory, and the time of the last access."""
    try:
        os.setxattr(folder, "user.backstay", b"1")
    except OSError:
        print("attributes: left out, the file system has none")
        return
    (folder / "old").write_bytes(b"old")
    done = capture.run(sys.executable, "-c", ATTRIBUTES, cwd=folder, stdout=subprocess.PIPE)
    capture.settle()
    if done.returncode != 0 or done.stdout.split() != [b"1000000000000000005"]:
        sys.exit(f"attributes: {done}")
    for name in ("old", "new"):
        if os.getxattr(folder / name, "user.kind") != b"checkpoint":
            sys.exit(f"attributes: those of {name} are lost")
    print("attributes and time of access are kept")


def many_files(capture, folder):
    """All numbers that the program may have are its own."""
    soft, hard = 120, resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard < 2000:
        print("many files: left out, the hard limit is too low")
        return
    limited = ["prlimit", f"--nofile={soft}:{hard}", sys.executable, "-c", MANY]
    done = capture.run(*limited, cwd=folder, stdout=subprocess.PIPE)
    capture.settle()
    memory, opened, greatest = map(int, done.stdout.split())
    if greatest != soft - 1:
        sys.exit(f"many files: the greatest number was {greatest}, natively it is {soft - 1}")
    if memory < opened - 5:
        sys.exit(f"many files: {memory} of {opened} were captured")
    for number in range(opened):
        if (folder / f"file{number}").read_bytes() != b"x" * 5000:
            sys.exit(f"many files: file{number} has other bytes")
    print(f"{memory} of {opened} open files were captured with a limit of {soft}")


def main():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="beside", dir=pathlib.Path(sys.argv[2]).parent))
    with World(sys.argv[3]) if len(sys.argv) > 3 else contextlib.nullcontext() as world:
        capture = Pooled(world, folder) if world else Capture(sys.argv[1], folder)
        attributes(capture, folder)
        many_files(capture, folder)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
