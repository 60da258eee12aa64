"""Unmodified MPI programs that are killed at random moments, and what they compute is compared.

BACKSTAY_SEED repeats a run; BACKSTAY_LIVES says how often each program is killed.
"""

import math
import os
import random
import signal
import subprocess
import time

from processes import wait_for
from ranks import newest
from transparent import LIVES, processes_of, start

RANKS = 2  # waiting ranks take a core each
LONG_S = 4  # of an undisturbed run that kills can meet: a cut may be refused first, before MPI_Init
# A rank, what saves it, the launcher. All end the job; a restart brings all ranks back.
VICTIMS = ["backstay-boot", "backstay-boot", "backstay-companion", "orterun", "mpiexec.hydra"]


def kill_one(world):
    """One process of the job, of those that are there now."""
    candidates = [pid for name in VICTIMS for pid in processes_of(world, name)]
    if not candidates:
        return False
    try:
        os.kill(random.choice(candidates), signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def run_with_kills(world, words, kills):
    """(how many kills, what `backstay run` said) of one job."""
    killed, seen = 0, newest(world)  # of an earlier run of the test
    with open(world.folder / "out", "wb") as file:
        running = start(world, words, "--job", "app", "--fresh", "--interval", 0.1, "--retries",
                        3 * kills, out=file)
        while killed < kills:
            wait_for(lambda: running.poll() is not None or newest(world) > seen, "a new version")
            time.sleep(random.uniform(0, 0.3))  # a random moment; nothing is waited for
            if running.poll() is not None:
                break
            seen = newest(world)  # two lives without a version are a crash loop
            killed += kill_one(world)
        _, told = running.communicate(timeout=300 + 10 * kills)
    assert running.returncode == 0, told
    return killed, told


def run_undisturbed(world, words, results, grows=None, at_least_s=LONG_S, prepare=lambda: None):
    """The words of a run and its results. `grows`: number of the word that is a number of steps,
    which becomes so large that the program runs long enough on a machine of any speed."""
    words = list(map(str, words))
    while True:
        prepare()
        began = time.monotonic()
        done = subprocess.run(words, env=world.env, cwd=world.folder, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=300)
        took_s = time.monotonic() - began
        assert done.returncode == 0, done.stderr
        found = results()
        if grows is None or took_s >= at_least_s:
            return words, found
        words[grows] = str(int(words[grows]) * min(10, math.ceil(1 + at_least_s / took_s)))


def kill_and_compare(world, words, results, prepare=lambda: None, grows=None):
    """`results()` is that of an undisturbed run; `prepare()` comes before each run."""
    words, expected = run_undisturbed(world, words, results, grows, prepare=prepare)
    killed = 0
    for _ in range(2 + LIVES):  # a program may end before its last kill
        prepare()
        more, told = run_with_kills(world, words, LIVES - killed)
        assert expected and results() == expected, told
        killed += more
        if killed >= LIVES:
            return
        if grows is not None:  # it only started slowly, the first time
            words[grows] = str(2 * int(words[grows]))
            words, expected = run_undisturbed(world, words, results, prepare=prepare)
    raise AssertionError(f"{killed} of {LIVES} kills met a running program; of the last: {told}")
