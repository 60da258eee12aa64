"""`backstay run --transparent` with programs that users have: killed at random moments, compared.

BACKSTAY_SEED repeats a run; BACKSTAY_LIVES says how often each program is killed (`make soak`: 30).
"""

import os
import shutil
import subprocess

import pytest
from transparent import (  # noqa: F401 (two are fixtures)
    KILLS,
    LIVES,
    PYTHON,
    go_on,
    nothing_is_left,
    program,
    seed,
)


def gzip(world):
    source = world.folder / "large"
    with open(source, "w") as file:
        for i in range(800_000):
            file.write(f"{i * 7919 % 1000003} {i * i}\n")
    return ["gzip", "-9", "-c", source]


def sqlite(world):
    query = world.folder / "query"
    query.write_text(
        "create table t(a int, b text);\n"
        "with recursive c(n) as (select 1 union all select n+1 from c where n<1500000)"
        " insert into t select n, hex(n*7919) from c;\n"
        "create index i on t(b);\n"
        "select count(*), sum(length(b)), max(b) from t;\n")
    return ["sqlite3", ":memory:", f".read {query}"]


def numpy(world):
    python = os.environ.get("BACKSTAY_NUMPY_PYTHON", PYTHON)
    if subprocess.run([python, "-c", "import numpy"], capture_output=True).returncode != 0:
        pytest.skip("no numpy")
    text = """
import numpy as np
a = np.random.default_rng(1).random((400, 400))
for step in range(150):
    a = a @ a
    a /= np.abs(a).max()
    if step % 10 == 0: print(step, repr(a.sum()), flush=True)
"""
    return [python, program(world, text)[1]]


def openmp(_):
    """A program of ours: four threads with locks beside a loop of OpenMP."""
    found = os.environ.get("BACKSTAY_TEST_THREADS")
    if not found or not os.path.exists(found):
        pytest.skip("no OpenMP program was built")
    return [found]


def octave(world):
    path = world.folder / "app.m"
    path.write_text("a = reshape(mod((1:90000) * 7919, 101), 300, 300) / 101;\n"
                    "for step = 1:150\n  a = a * a; a = a / max(abs(a(:)));\n"
                    "  if mod(step, 10) == 0, printf('%d %.15g\\n', step, sum(a(:))); end\nend\n")
    return ["octave", "--no-gui", "--quiet", path]


def statistics(world):
    path = world.folder / "app.R"
    path.write_text("set.seed(1); a <- matrix(runif(90000), 300)\n"
                    "for (step in 1:150) { a <- a %*% a; a <- a / max(abs(a))\n"
                    "  if (step %% 10 == 0) cat(step, format(sum(a), digits = 15), '\\n') }\n")
    return ["Rscript", path]


def selectors(world):
    """An epoll set and two pairs of sockets, in which something is always on its way."""
    return program(world, """
import hashlib, selectors, socket, time
ways = selectors.EpollSelector()
a, b = socket.socketpair()
c, d = socket.socketpair()
ways.register(b, selectors.EVENT_READ, d)
ways.register(c, selectors.EVENT_READ, a)
a.sendall(b"0123456789" * 400)
said = hashlib.sha256()
taken = 0
while taken < 6_000_000:
    for key, _ in ways.select():
        part = key.fileobj.recv(4000)
        said.update(part)
        taken += len(part)
        time.sleep(0.001)
        key.data.sendall(part)
print(said.hexdigest())
""")


def node(world):
    """Timers, threads of its own, and those that read files."""
    path = world.folder / "app.js"
    path.write_text("""
const { Worker, isMainThread, parentPort } = require('worker_threads');
const fs = require('fs');
if (!isMainThread) {
  parentPort.on('message', (n) => {
    let x = n;
    for (let i = 0; i < 3e5; i++) x = (x * 1103515245 + 12345) % 2147483648;
    parentPort.postMessage([n, x]);
  });
} else {
  const workers = [0, 1].map(() => new Worker(__filename));
  let sent = 0, done = 0, reads = 0, read = 0, sum = 0;
  for (const one of workers) {
    one.on('message', ([n, x]) => { sum = (sum + x * (n + 1)) % 1e9; done++; });
  }
  const timer = setInterval(() => {
    if (sent < 150) {
      workers[sent % 2].postMessage(sent++);
      fs.readFile(__filename, (error, text) => { reads++; read += text.length; });
    } else if (done === 150 && reads === 150) {
      clearInterval(timer);
      for (const one of workers) one.terminate();
      setTimeout(() => console.log(sum, read), 50);
    }
  }, 10);
}
""")
    return ["node", path]


@pytest.mark.parametrize("make", [gzip, sqlite, numpy, openmp, octave, statistics, selectors, node],
                         ids=["gzip", "sqlite3", "numpy", "openmp", "octave", "R", "selectors",
                              "node"])
def test_killed_at_random(world, make):
    words = make(world)
    if shutil.which(str(words[0])) is None:
        pytest.skip(f"no {words[0]}")
    KILLS.clear()
    while sum(KILLS) < LIVES:
        go_on(world, words, interval=0.03 if make is openmp else 0.1)  # it is short
