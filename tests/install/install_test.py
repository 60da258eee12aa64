#!/usr/bin/env python3
"""Installs a build into a scratch prefix, moves the prefix, and builds and runs outside programs
there.

C, C++, Fortran and MPI, once with find_package and once with pkg-config. Each program runs twice:
the second life must find what the first one saved. At last scripts/uninstall must leave nothing.
Standard library only.
"""

import argparse
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

from scratch import agent_ends, agent_environment, run, two_lives

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
HEAT = ROOT / "examples/heat/heat.f90"
MPIS = ("openmpi", "mpich")


def install(build: Path, cmake: str, scratch: Path) -> Path:
    """The prefix is moved after installing: nothing in it may remember where it was."""
    first, prefix = scratch / "first", scratch / "moved prefix"
    run([ROOT / "scripts/install", first], env=os.environ | {"CMAKE": cmake, "BUILD": str(build)})
    first.rename(prefix)
    for needed in ("bin/backstayd", "lib/libbackstay_files.so", "include/backstay/backstay.h",
                   "share/doc/backstay/LICENSE"):
        assert (prefix / needed).is_file(), f"not installed: {needed}"
    if shutil.which("pandoc"):
        assert (prefix / "share/man/man1/backstay.1").is_file(), "no man page"
    return prefix


def found_mpis(prefix: Path) -> list[str]:
    return [m for m in MPIS if list(prefix.glob(f"lib*/**/libbackstay_{m}.so"))
            and shutil.which(f"mpicc.{m}")]


def environment(prefix: Path, scratch: Path, job: str) -> dict[str, str]:
    lib = next(prefix.glob("lib*/**/libbackstay.so")).parent
    return agent_environment(scratch, job) | {
        "PKG_CONFIG_PATH": str(lib / "pkgconfig"),
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
    }


def heat_runs(mpi: str, program: Path, env: dict[str, str]) -> None:
    said = run([f"mpiexec.{mpi}", "-n", "2", program, "200", "64", "64"], env=env)
    if "done step 200" not in said:
        sys.exit(f"{program}: the Fortran example did not reach its end, it said:\n{said}")
    print(f"ok: {program.name} ({env['BACKSTAY_JOB']})", flush=True)


def with_find_package(cmake: str, prefix: Path, scratch: Path, mpi: str) -> None:
    folder = scratch / f"cmake-{mpi}"
    run([cmake, "-S", HERE / "consumer", "-B", folder, f"-DCMAKE_PREFIX_PATH={prefix}",
         f"-DMPI={mpi}",
         f"-DCMAKE_C_COMPILER={'mpicc.' + mpi if mpi else 'cc'}", "-DCMAKE_BUILD_TYPE=Release",
         f"-DCMAKE_Fortran_COMPILER={'mpif90.' + mpi if mpi else 'gfortran'}", f"-DHEAT={HEAT}"])
    run([cmake, "--build", folder, "-j", "2"])
    names = [] if mpi else ["keep_c", "keep_cc", "keep_f"]
    for name in names:
        two_lives([folder / name], environment(prefix, scratch, f"package-{name}"))
    if mpi:
        two_lives([f"mpiexec.{mpi}", "-n", "3", folder / "keep_mpi"],
                  environment(prefix, scratch, f"package-{mpi}"), 3)
        heat_runs(mpi, folder / "heat_f", environment(prefix, scratch, f"package-heat-{mpi}"))


def flags(env, package: str, *questions: str) -> list[str]:
    """pkg-config escapes blanks, so the shell's own rules apply."""
    import shlex
    return shlex.split(run(["pkg-config", *questions, package], env=env))


def with_pkgconfig(prefix: Path, scratch: Path) -> None:
    env = environment(prefix, scratch, "unused")
    source = HERE / "consumer"
    builds = [
        ("pc_c", ["cc"], [source / "keep.c"]),
        ("pc_cc", ["c++", "-std=c++20"], [source / "keep.cc"]),
        ("pc_f", ["gfortran", f"-J{scratch}"],
         [*flags(env, "backstay", "--variable=fortran_sources"), source / "keep.f90"]),
    ]
    for name, compiler, sources in builds:
        run([*compiler, *sources, "-o", scratch / name,
             *flags(env, "backstay", "--cflags", "--libs")], env=env)
        two_lives([scratch / name], environment(prefix, scratch, f"pkgconfig-{name}"))
    for mpi in found_mpis(prefix):
        program = scratch / f"pc_{mpi}"
        run([f"mpicc.{mpi}", source / "keep_mpi.c", "-o", program,
             *flags(env, f"backstay-{mpi}", "--cflags", "--libs")], env=env)
        two_lives([f"mpiexec.{mpi}", "-n", "3", program],
                  environment(prefix, scratch, f"pkgconfig-{mpi}"), 3)
        heat = scratch / f"pc_heat_{mpi}"  # in the order of docs/guide/getting-started.md: modules come first
        run([f"mpif90.{mpi}", f"-J{scratch}",
             *flags(env, "backstay", "--variable=fortran_mpi_sources"), HEAT,
             *flags(env, f"backstay-{mpi}", "--libs"), "-o", heat], env=env)
        heat_runs(mpi, heat, environment(prefix, scratch, f"pkgconfig-heat-{mpi}"))


def with_installed_program(prefix: Path, scratch: Path) -> None:
    """The command line works from its new place and sees what the programs above saved."""
    program = prefix / "bin" / "backstay"
    if not program.is_file():
        print("left out: this build has no command line", flush=True)
        return
    env = environment(prefix, scratch, "unused")
    listed = run([program, "ls", "--json"], env=env)
    for job in ("package-keep_c", "pkgconfig-pc_c"):
        if job not in listed:
            sys.exit(f"backstay ls does not know {job}:\n{listed}")
    run([program, "verify", "package-keep_c"], env=env)
    for name in ("bash-completion/completions/backstay", "zsh/site-functions/_backstay"):
        assert (prefix / "share" / name).stat().st_size > 500, f"completion is empty: {name}"
    commands = re.findall(r"^  ([a-z]+)  +\S", run([program, "help"], env=env), re.M)
    pages = {path.stem for path in (prefix / "share/man/man1").glob("backstay-*.1")}
    ours = (ROOT / ".venv/bin/python").exists()
    python = set() if ours else {"plan", "export", "report", "tune"}
    assert len(commands) > 20 and {f"backstay-{name}" for name in set(commands) - python} <= pages
    page = (prefix / "share/man/man1/backstay-run.1").read_text()
    shown = run([program, "help", "run"], env=env | {"COLUMNS": "78"})
    page = page.replace("\\-", "-").replace("\\e", "\\")
    assert page.startswith(".TH BACKSTAY-run 1 ") and shown in page
    print("ok: the installed command line", flush=True)


def with_python_commands(prefix: Path, scratch: Path) -> None:
    """No environment is active, and the user's own python3 has none of the packages."""
    if not (ROOT / ".venv/bin/python").exists():
        print("left out: this build has no .venv to take packages from", flush=True)
        return
    bare = scratch / "bare"
    bare.mkdir()
    (bare / "python3").write_text("#!/bin/sh\nexit 1\n")
    (bare / "python3").chmod(0o755)
    env = environment(prefix, scratch, "unused") | {"PATH": f"{bare}:/usr/bin:/bin",
                                                    "HOME": str(scratch)}
    env = {name: value for name,
           value in env.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    said = run([prefix / "bin/backstay", "export", "package-keep_c", "-o", scratch / "out"],
               env=env, cwd="/")
    written = list((scratch / "out").glob("*.npy"))
    if not written:
        sys.exit(f"backstay export wrote nothing:\n{said}")
    own = prefix / "lib/backstay/venv"
    seen = run([own / "bin/python", "-c", "import sys; print(*sys.path, sep='\\n')"], env=env,
               cwd="/")
    assert all(str(own) in one for one in seen.splitlines() if one.endswith("-packages")), seen
    page = scratch / "explore.html"
    run([prefix / "bin/backstay", "plan", "explore", "-o", page], env=env, cwd="/")
    assert page.stat().st_size > 1_000_000, "a page without plotly.js or without its own scripts"
    print("ok: the installed commands in Python", flush=True)


def uninstalled(prefix: Path, scratch: Path) -> None:
    """Back where it was installed, where scripts/uninstall finds its list."""
    first = prefix.rename(scratch / "first")
    run([ROOT / "scripts/uninstall", first])
    left = list(first.rglob("*")) if first.exists() else []
    if left:
        sys.exit("scripts/uninstall left: " + ", ".join(map(str, left[:10])))
    print("ok: nothing is left", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, required=True, help="build folder to install from")
    parser.add_argument("--cmake", default="cmake")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bks-") as name:
        scratch = Path(name)
        prefix = install(arguments.build, arguments.cmake, scratch)
        for mpi in ["", *found_mpis(prefix)]:
            with_find_package(arguments.cmake, prefix, scratch, mpi)
        with_pkgconfig(prefix, scratch)
        with_installed_program(prefix, scratch)
        with_python_commands(prefix, scratch)
        agent_ends(scratch)
        uninstalled(prefix, scratch)


if __name__ == "__main__":
    main()
