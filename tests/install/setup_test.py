#!/usr/bin/env python3
"""scripts/setup and scripts/build on machines that lack something: root, a network, Debian, a
target's libraries. Each says what is missing and what to do, and leaves nothing half done.

Copies of the scripts, with stand-ins for Debian's tools on PATH. Arguments: the tests to run, by
default all. Standard library only.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ("awk bash cat chmod comm cut date dirname env grep head id ln mkdir mktemp nproc printf "
         "rm sed sha256sum sort tail tr uname").split()
POLICY, PYTHON = "/usr/sbin/policy-rc.d", "/usr/bin/python3"


class Machine:
    """A checkout with its scripts alone, on a machine that has `TOOLS` and what a test adds."""

    def __init__(self, folder: Path):
        self.tree, self.tools = folder / "tree", folder / "tools"
        self.policy, self.python = folder / "policy-rc.d", folder / "python3"
        self.calls = folder / "calls"
        self.tools.mkdir()
        for name in TOOLS:
            (self.tools / name).symlink_to(shutil.which(name))
        (self.tree / "scripts").mkdir(parents=True)
        for name in ("setup", "build", "packages.txt", "requirements.txt", "mpis.txt"):
            text = (ROOT / "scripts" / name).read_text()
            text = text.replace(POLICY, str(self.policy)).replace(PYTHON, str(self.python))
            self.write(self.tree / "scripts" / name, text)
        self.tool("python3", f'exec {sys.executable} "$@"', self.python)

    def write(self, path: Path, text: str) -> None:
        path.write_text(text)
        path.chmod(0o755)

    def tool(self, name: str, script: str, path: Path | None = None) -> None:
        """A stand-in; `calls` says how it was called."""
        path = path or self.tools / name
        path.unlink(missing_ok=True)
        self.write(path, f'#!/bin/bash\necho "{name} $*" >>{self.calls}\n{script}\n')

    def debian(self, installed: bool, root: bool) -> None:
        names = " ".join(line.split()[0].split("|")[0] for line in
                         (ROOT / "scripts/packages.txt").read_text().splitlines()
                         if line and not line.startswith("#"))
        self.tool("dpkg-query", f"printf '%s installed\\n' {names}" if installed else "")
        self.tool("id", f"echo {0 if root else 1000}")

    def run(self, *words: str, **more: str) -> subprocess.CompletedProcess:
        return subprocess.run([self.tree / "scripts" / words[0], *words[1:]], cwd=self.tree,
                              env={"PATH": str(self.tools), "HOME": str(self.tree), **more},
                              capture_output=True, text=True, timeout=300, check=False)

    def called(self, name: str) -> bool:
        return self.calls.exists() and f"{name} " in self.calls.read_text()

    def left(self) -> set[str]:
        return {path.name for path in self.tree.iterdir()} - {"scripts"}


def says(done: subprocess.CompletedProcess, code: int, *words: str) -> None:
    said = done.stdout + done.stderr
    assert done.returncode == code, (done.returncode, said)
    for word in words:
        assert word in said, f"{word!r} is not in: {said}"


def no_root(machine: Machine) -> None:
    machine.debian(installed=False, root=False)
    machine.tool("apt-get", "exit 1")
    done = machine.run("setup", "demo", BACKSTAY_PIP_ARGS="--no-index")
    says(done, 1, "sudo apt-get update && sudo apt-get install --no-install-recommends",
         " liblammps-dev ", " cmake ")
    assert " pandoc " not in done.stderr, "what the demonstration does not need"
    assert machine.left() == set() and not machine.called("apt-get")


def no_network_for_debian(machine: Machine) -> None:
    machine.debian(installed=False, root=True)
    machine.tool("apt-get", 'echo "E: Unable to fetch some archives" >&2; exit 100')
    for _ in range(2):  # nothing that was done the first time hides it the second time
        done = machine.run("setup", "docs")
        says(done, 1, "E: Unable to fetch", "pandoc", "network", "scripts/setup docs")
        assert machine.left() == set() and not machine.policy.exists()


def no_network_for_python(machine: Machine) -> None:
    machine.debian(installed=True, root=True)
    for _ in range(2):
        done = machine.run("setup", "site", BACKSTAY_PIP_ARGS="--no-index")
        says(done, 1, "sphinx", "network", "BACKSTAY_PIP_ARGS", "scripts/setup site")
        assert not (machine.tree / ".venv/.setup-stamp").exists()


def no_venv(machine: Machine) -> None:
    machine.debian(installed=True, root=True)
    machine.tool("python3", 'mkdir -p "${@: -1}/bin" && ln -s /bin/true "${@: -1}/bin/python"; '
                 'echo "ensurepip is not available" >&2; exit 1', machine.python)
    for _ in range(2):
        says(machine.run("setup", "docs"), 1, "ensurepip", "python3-venv")
        assert machine.left() == set()


def another_distribution(machine: Machine) -> None:
    done = machine.run("setup", "docs")
    says(done, 0, "not a Debian", "pandoc")
    assert "liblammps-dev" not in done.stderr, "what this purpose does not need"
    assert (machine.tree / ".venv/bin/python").exists()


def packages_of_the_system(machine: Machine) -> None:
    """Of them .venv sees mpi4py alone, also one that saw all."""
    machine.debian(installed=True, root=True)
    packages = machine.tree / "packages"
    for name in ("mpi4py", "mpl_toolkits"):
        (packages / name).mkdir(parents=True)
        (packages / name / "__init__.py").touch()
    machine.tool("python3", f'PYTHONPATH={packages} exec {sys.executable} "$@"', machine.python)
    subprocess.run([sys.executable, "-m", "venv", "--system-site-packages", "--without-pip",
                    machine.tree / ".venv"], check=True, timeout=300)
    says(machine.run("setup", "docs"), 0)
    see = ("import sys, mpi4py, importlib.util as u; print(u.find_spec('mpl_toolkits'), "
           "sum(one.endswith('-packages') for one in sys.path))")
    for _ in range(2):
        says(subprocess.run([machine.tree / ".venv/bin/python", "-c", see], capture_output=True,
                            text=True, cwd="/", check=False), 0,
             "None 1")
        shutil.rmtree(machine.tree / ".venv")
        says(machine.run("setup", "docs"), 0)


def no_library(machine: Machine) -> None:
    """A target that the configuration has left out."""
    machine.tool("cmake", 'case $* in *--build*) echo "ninja: error: unknown"; exit 1;; esac\n'
                 'echo "-- No openmpi (pkg-config ompi-c): libbackstay_openmpi is not built"')
    machine.tool("ninja", "exit 1")
    says(machine.run("build", "release", "heat_openmpi"), 1, "heat_openmpi", "No openmpi",
         "scripts/setup build")


def no_cmake(machine: Machine) -> None:
    says(machine.run("build", "release"), 1, "cmake: command not found", "scripts/setup build")


def main() -> None:
    if os.name != "posix" or not shutil.which("bash"):
        sys.exit(77)
    tests = (no_root, no_network_for_debian, no_network_for_python, no_venv, another_distribution,
             packages_of_the_system, no_library, no_cmake)
    for test in tests:
        if sys.argv[1:] and test.__name__ not in sys.argv[1:]:
            continue
        with tempfile.TemporaryDirectory(prefix="bks-") as name:
            test(Machine(Path(name)))
        print(f"ok: {test.__name__}", flush=True)


main()
