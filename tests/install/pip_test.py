#!/usr/bin/env python3
"""`pip install .` into a new virtual environment, and a job that lives twice with nothing but what
pip installed.

Standard library only.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from scratch import agent_ends, agent_environment, run, two_lives

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def without_this_tree(env: dict[str, str]) -> dict[str, str]:
    """Nothing of a build, an installation or an active environment may help."""
    ours = ("PYTHON", "VIRTUAL_ENV", "LD_LIBRARY_PATH")
    return {name: value for name,
            value in env.items() if not name.startswith(ours)} | {"PATH": "/usr/bin:/bin"}


def names_in_the_tree(root: Path) -> set[Path]:
    """The names at the top and in the package: a build in the source tree would show here."""
    return {path for folder in (root, root / "python/backstay") for path in folder.iterdir()}


def installed(scratch: Path) -> Path:
    run([sys.executable, "-m", "venv", scratch / "venv"])
    python = scratch / "venv/bin/python"
    before = names_in_the_tree(ROOT)
    # Compiled as the preset `release` does, by the same cmake (CMAKE_EXECUTABLE, CC, CXX) and
    # beside it: then ccache has the files.
    run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
         "--config-settings=cmake.define.BACKSTAY_WERROR=ON",
         f"--config-settings=build-dir={ROOT / 'build/pip'}", ROOT],
        timeout_s=900)
    new = [path for path in names_in_the_tree(ROOT) - before if path.name != "__pycache__"]
    if new:
        sys.exit(f"pip install left in the source tree: {', '.join(map(str, new))}")
    return python


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    with tempfile.TemporaryDirectory(prefix="bks-") as name:
        scratch = Path(name)
        python = installed(scratch)
        env = without_this_tree(agent_environment(scratch, "pip"))
        two_lives([python, HERE / "consumer/keep.py"], env)
        read = "import backstay, os; print(backstay.open(os.environ['BACKSTAY_DIR'] + '/pip')['lives'])"
        if run([python, "-c", read], env=env, cwd="/").strip() != "[2]":
            sys.exit("the reader of the package does not see what the program saved")
        print("ok: backstay.open", flush=True)
        agent_ends(scratch)


if __name__ == "__main__":
    main()
