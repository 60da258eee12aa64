"""A program under `backstay exec` that does what a test says, and a failpoint that waits."""

import os
import pathlib
import select
import subprocess
import sys

from collector_test import need

# Writes x and says so; carries out the lines that it is given, and says what came of each.
PROGRAM = """
import os, sys
os.chdir(sys.argv[1])
new = bytes(range(251)) * (3 * 1048576 // 251)
def change():
    with open('x', 'r+b') as f: return 'new' if f.read() == new else 'other'
def remove():
    os.unlink('x')
    return 'removed'
def write(name='x'):
    with open(name, 'wb') as f: f.write(new)
    return 'closed'
def look(): return 'looked'
def sync():
    global f
    f = open('x', 'wb', buffering=0)
    f.write(new)
    os.fsync(f.fileno())
    return 'synced'
def write_beside(): return write('x.tmp')
def rename():
    os.rename('x.tmp', 'x')
    return 'renamed'
for line in sys.stdin:
    try: print(globals()[line.strip()](), flush=True)
    except OSError as error: print(error.strerror, flush=True)
"""


class Program:
    """Under `backstay exec`. `failpoint`: also of the collector that this one starts, and of the
    agent which that one starts."""

    def __init__(self, world, place, failpoint="", gate=None):
        armed = {} if gate is None else {"BACKSTAY_FAILPOINT": failpoint,
                                         "BACKSTAY_FAILPOINT_PIPE": gate.pipe}
        self.process = subprocess.Popen(
            world.words(place, sys.executable, "-c", PROGRAM, place), env={**world.env, **armed},
            cwd=world.folder, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)

    def tell(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def hear(self):
        return self.process.stdout.readline().strip()

    def do(self, word):
        self.tell(word)
        return self.hear()

    def is_silent(self):
        return not select.select([self.process.stdout], [], [], 0)[0]

    def kill(self):
        self.process.kill()
        self.process.wait(timeout=60)

    def end(self):
        """What it says on its error output; its files are at their places."""
        self.process.stdin.close()
        said = self.process.stderr.read()
        need(self.process.wait(timeout=60) == 0, f"the program ended with {self.process}: {said}")
        return said


class Gate:
    """The failpoint NAME=wait of a process that starts in this world."""

    def __init__(self, world):
        self.pipe = str(world.folder / "pipe")
        for end in (".reached", ".go"):
            os.mkfifo(f"{self.pipe}{end}")

    def reached(self):
        pathlib.Path(f"{self.pipe}.reached").read_bytes()

    def go(self):
        pathlib.Path(f"{self.pipe}.go").write_bytes(b"")
