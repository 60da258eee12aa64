"""What the tests of this folder share: commands, and programs that count their own lives. Standard
library only.
"""

import os
import subprocess
import sys
import time
from pathlib import Path


def run(arguments, timeout_s: float = 240, **options) -> str:
    """Runs a command; stops the test with its output when it fails."""
    done = subprocess.run([str(a) for a in arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True,
                          timeout=timeout_s, **options)
    if done.returncode != 0:
        sys.exit(f"failed ({done.returncode}): {' '.join(map(str, arguments))}\n{done.stdout}")
    return done.stdout


def agent_environment(scratch: Path, job: str) -> dict[str, str]:
    """A job with an agent, a socket and versions of its own below `scratch`."""
    return os.environ | {
        "BACKSTAY_JOB": job,
        "BACKSTAY_DIR": str(scratch / "versions"),
        "BACKSTAY_AGENT_SOCKET": str(scratch / "agent" / "socket"),
        "BACKSTAY_AGENT_IDLE_EXIT_S": "2",
        "BACKSTAY_POOL_SIZE_MIB": "64",
    }


def two_lives(command, env: dict[str, str], ranks: int = 1) -> None:
    for life in (1, 2):
        said = run(command, env=env)
        expected = f"lives {life * ranks}"
        if expected not in said.splitlines():
            sys.exit(f"{command[-1]}: expected '{expected}', it said:\n{said}")
    print(f"ok: {Path(command[-1]).name} ({env['BACKSTAY_JOB']}, {ranks} ranks)", flush=True)


def agent_ends(scratch: Path) -> None:
    """The agent is configured to exit when idle; a scratch folder must not be removed under it."""
    deadline = time.monotonic() + 60
    while any((scratch / "agent").glob("socket")):
        if time.monotonic() > deadline:
            sys.exit("the agent has not ended, although it is configured to exit when idle for 2 s")
        time.sleep(0.1)
