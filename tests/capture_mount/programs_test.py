#!/usr/bin/env python3
"""Programs that know nothing of Backstay write through a mount: the same files as natively.

    programs_test.py BACKSTAY
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from mounting import MountWorld, can_mount, temporary_files  # noqa: E402

# Those of the captured programs, and static ones.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "capture_files"))
import importlib.util  # noqa: E402

spec = importlib.util.spec_from_file_location(
    "captured_programs",
    pathlib.Path(__file__).resolve().parents[1] / "capture_files" / "programs_test.py")
captured_programs = importlib.util.module_from_spec(spec)
spec.loader.exec_module(captured_programs)

BUSYBOX = next((path for path in ("/bin/busybox", "/usr/bin/busybox") if os.path.exists(path)), "")
STATIC = {
    "busybox": f"{BUSYBOX} cp ../input out && {BUSYBOX} dd if=../input of=more bs=64k 2>/dev/null "
               f"&& {BUSYBOX} tar -cf out.tar -C .. text && {BUSYBOX} tar -xf out.tar && "
               f"{BUSYBOX} mv more again && {BUSYBOX} sed -i s/a/b/ text && "
               f"{BUSYBOX} sh -c 'echo one > log; echo two >> log'",
    "fio": "fio --name=x --filename=out --size=4m --bs=64k --rw=randwrite --verify=crc32c "
           "--ioengine=psync --output=/dev/null --randseed=1",
}


def programs():
    found = {name: command for name, command in captured_programs.PROGRAMS.items()
             if name != "lammps" and captured_programs.has(name)}
    if BUSYBOX:
        found["busybox"] = STATIC["busybox"]
    if shutil.which("fio"):
        found["fio"] = STATIC["fio"]
    return found


def run(place, name, command):
    done = subprocess.run(["sh", "-c", command], cwd=place, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    if done.returncode != 0:
        sys.exit(f"{name}: status {done.returncode}: {done.stderr.decode()}")


def compare(name, native, captured):
    if native.keys() != captured.keys():
        sys.exit(f"{name}: natively {sorted(native)}, captured {sorted(captured)}")
    for path, one in native.items():
        if one != captured[path] and not name.startswith("fio"):
            sys.exit(f"{name}: {path} has other bytes or another mode")


def main():
    if can_mount():
        print(f"left out: {can_mount()}")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="backstay-") as made, \
            MountWorld(pathlib.Path(sys.argv[1])) as world:
        natively = pathlib.Path(made)
        mounted = world.mount()
        captured_programs.prepare(natively)
        for path in natively.iterdir():
            shutil.copy(path, mounted)
        for name, command in programs().items():
            for folder in (natively, mounted):
                (folder / name).mkdir()
                run(folder / name, name, command)
            tree = captured_programs.tree
            compare(name, tree(natively / name), tree(mounted / name))
            print(f"{name}: {len(tree(natively / name))} files", flush=True)
        world.unmount()
        for name in programs():
            compare(f"{name} at home", captured_programs.tree(natively / name),
                    captured_programs.tree(world.target / name))
        if temporary_files(world.target):
            sys.exit(f"left {temporary_files(world.target)}")
        local = world.log().count("version is local")
        print(f"{local} files went through the pool")
        if local < len(programs()):
            sys.exit("too few files were captured: the comparison says nothing")


if __name__ == "__main__":
    main()
