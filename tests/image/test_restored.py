"""The memory of a process that was just brought back is that of the image, but for the ids of its
threads. It is read from outside, of programs that users have."""

import os
import select
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from backstay.format.image import PAGE_BYTES, read_image

FOLDER = Path(__file__).parent
sys.argv = ["restored", os.environ["BACKSTAY_BOOT"]]
sys.path.insert(0, str(FOLDER))

from booted import END_S  # noqa: E402
from companion import (  # noqa: E402
    GO, POOL, POOL_ASK, Companion, Lines, bring_back, new_pool, take_image)

PRIVATE, PRIVATE_FILE = 1, 2
EXECS = {"octave", "R"}
PYTHON = """
import random, threading
held = threading.RLock()
def keep():
    with held:
        threading.Event().wait()
threading.Thread(target=keep, daemon=True).start()
numbers = {i: [random.random() for _ in range(9)] for i in range(9000)}
print("ready", flush=True)
while True: numbers[random.randrange(9000)] = [random.random() for _ in range(9)]
"""
OCTAVE = """
a = rand(300); puts("ready\\n"); fflush(stdout);
while true, a = a * a; a = a / max(a(:)); end
"""
R = "a <- matrix(runif(90000), 300); cat('ready\\n'); repeat { a <- a %*% a; a <- a / max(a) }"
NODE = """
const all = new Map();
console.log("ready");
for (let i = 0; ; i = (i + 1) % 100000) all.set(i, [i, "number " + i, i / 3]);
"""
PROGRAMS = {
    "python3": ["/usr/bin/python3", "-c", PYTHON],
    "octave": ["octave", "--no-gui", "--quiet", "--eval", OCTAVE],
    "R": ["Rscript", "-e", R],
    "node": ["node", "-e", NODE],
}


def first_line(lines):
    line = b""
    while not line.endswith(b"\n"):
        ready, _, _ = select.select([lines.out_read], [], [], END_S)
        assert ready, "the program does not begin"
        line += os.read(lines.out_read, 1)


def words_that_differ(image, process):
    """(what the image has, what the process has) of each word of 4 bytes."""
    memory = os.open(f"/proc/{process}/mem", os.O_RDONLY)
    before, now = [], []
    for run in image.runs:
        area = image.areas[np.searchsorted(image.areas["end"], run["address"], side="right")]
        if area["kind"] not in (PRIVATE, PRIVATE_FILE):
            continue
        count, at = int(run["pages"]) * PAGE_BYTES, int(run["offset"])
        mine = np.frombuffer(image.data[at : at + count], "<u4")
        its = np.frombuffer(os.pread(memory, count, int(run["address"])), "<u4")
        before.append(mine[mine != its])
        now.append(its[mine != its])
    os.close(memory)
    return list(zip(np.concatenate(before).tolist(), np.concatenate(now).tolist(), strict=True))


class Program:
    def __init__(self, name):
        self.pool, self.memory = new_pool()
        self.lines = Lines()
        words = [shutil.which(PROGRAMS[name][0]), *PROGRAMS[name][1:]]
        self.life = Companion(self.pool, ["--", *words], self.lines.to_read, self.lines.out_write)

    def begin(self, execs):
        first_line(self.lines)
        if execs:  # another boot program has begun
            self.life.ask(POOL_ASK, bytes_=POOL, descriptor=self.pool)

    def image(self):
        return take_image(self.life, self.memory, None)[0]

    def bring_back(self, image):
        """It waits for GO."""
        self.life.kill()
        self.life = bring_back(self.pool, self.memory, image, self.lines.to_read,
                               self.lines.out_write, goes_on=False)


@pytest.fixture
def program(request, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    if shutil.which(PROGRAMS[request.param][0]) is None:
        pytest.skip(f"{request.param} is not installed")
    one = Program(request.param)
    yield one
    one.life.kill()


@pytest.mark.parametrize("program, execs", [(name, name in EXECS) for name in PROGRAMS],
                         ids=list(PROGRAMS), indirect=["program"])
def test_memory_is_that_of_the_image(program, execs):
    program.begin(execs)
    for _ in range(3):
        data = program.image()
        program.bring_back(data)
        image = read_image(np.frombuffer(data, "u1"))
        process = program.life.process.pid
        differ = words_that_differ(image, process)
        threads = set(image.threads["tid"].tolist())
        new = {int(number) for number in os.listdir(f"/proc/{process}/task")}
        assert {was for was, _ in differ} <= threads, "other words than ids"
        assert {is_now for _, is_now in differ} <= new, "other ids than those of its threads"
        assert len(differ) >= len(threads), "a thread's id was not renewed"
        program.life.tell(GO)
