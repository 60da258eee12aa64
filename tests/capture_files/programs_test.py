#!/usr/bin/env python3
"""Programs that know nothing of Backstay write captured files: the same files as natively.

    programs_test.py LIBRARY FOLDER [BACKSTAY]

With BACKSTAY, the program, files that are closed go to the agent, which brings them to their
places.
"""

import contextlib
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from capturing import Capture, Pooled, World, temporary_files  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
NUMPY_PYTHON = os.environ.get("BACKSTAY_NUMPY_PYTHON", sys.executable)
# What a program is, the command (in the folder), the files that must come out alike.
PROGRAMS = {
    "dd": "dd if=../input of=out bs=64k conv=notrunc status=none && dd if=../input of=more bs=4096 "
          "seek=3 count=9 conv=fsync status=none",
    "cp": "cp ../input out && cp -p ../input more && cp --sparse=always out holes",
    "tar": "tar -cf out.tar --mtime=@0 -C .. input && tar -xf out.tar && tar -czf - input | "
           "tar -xzOf - > again",
    "sort": "sort -o out ../text && sort -S 64k -T . ../text > more",
    "gcc": "gcc -g0 -o out ../program.c && ./out > said && gcc -g0 -c -o out.o ../program.c",
    "sqlite3": "sqlite3 out \"create table t(a, b); insert into t values(1, 'x'), (2, 'y');\" && "
               "sqlite3 out \"update t set b = 'z' where a = 2; pragma integrity_check;\" > said",
    "shell": "exec 3> out; echo one >&3; cat ../text >&3; (echo two >&3); exec 3>&-; "
             "for n in 1 2 3; do echo $n; done > more; echo 4 >> more; cat more > again",
    "sed": "cp ../text out && sed -i s/a/b/ out && sed -n w\\ more ../text",
    "patch": "cp ../text out && awk '{print > \"more\"; print $1 > \"again\"}' ../text",
    "numpy": f"{NUMPY_PYTHON} -c \"import numpy as n; n.save('out.npy', n.arange(99999.)); "
             "n.savez('more.npz', a=n.zeros(9)); m = n.memmap('map', mode='w+', shape=(9000,)); "
             "m[:] = 7; m.flush(); n.arange(9).tofile('plain')\"",
    "python": "python3 -c \"import os, shutil, subprocess; f = open('out', 'w+b'); "
              "f.write(b'x' * 9999); subprocess.run(['sh', '-c', 'echo y >&%d' % f.fileno()], "
              "pass_fds=[f.fileno()]); f.seek(5); f.write(b'z'); f.close(); "
              "shutil.copy2('out', 'more'); os.replace('more', 'again'); os._exit(0)\"",
    # A child goes on writing after its parent has ended.
    "outlive": "python3 -c \"import os; r, w = os.pipe(); f = open('out', 'wb', 0); f.write(b'a')\n"
               "if os.fork() == 0: os.close(w); os.read(r, 1); f.write(b'b'); os._exit(0)\"",
    "node": "node -e 'const fs = require(\"fs\"); fs.writeFileSync(\"out\", \"x\".repeat(9999)); "
            "fs.writeFileSync(\"more\", fs.statSync(\"out\").size + require(\"child_process\")"
            ".execSync(\"wc -c < out\").toString())'",
    "lammps": f"python3 {HERE}/lammps.py",
}
if platform.machine() == "x86_64":
    PROGRAMS["unseen"] = (f"gcc -o unseen {HERE}/unseen_close.c && ./unseen > said && "
                          "rm unseen")


def has(name):
    probes = {"numpy": [NUMPY_PYTHON, "-c", "import numpy"],
              "lammps": ["python3", "-c", "import ctypes; ctypes.CDLL('liblammps.so.0')"]}
    if name in probes:
        return subprocess.run(probes[name], stderr=subprocess.DEVNULL, check=False).returncode == 0
    if name == "unseen":
        return shutil.which("gcc") is not None
    return name in ("shell", "python", "patch", "outlive") or shutil.which(name) is not None


def tree(folder):
    return {path.relative_to(folder).as_posix(): (path.stat().st_mode, path.read_bytes())
            for path in sorted(folder.rglob("*")) if path.is_file()}


def prepare(folder):
    (folder / "input").write_bytes(os.urandom(3_000_000) + bytes(500_000) + os.urandom(77))
    lines = [f"{number * 7919 % 10007} a line of text" for number in range(20000)]
    (folder / "text").write_text("\n".join(lines) + "\n")
    (folder / "program.c").write_text('#include <stdio.h>\nint main(void){puts("hi");return 0;}\n')


def run_both(capture_of, folder, name):
    found = {}
    for way in ("native", "captured"):
        place = folder / way
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        capture = capture_of(place) if way == "captured" else None
        environment = capture.environment() if capture else dict(os.environ)
        done = subprocess.run(["sh", "-c", PROGRAMS[name]], cwd=place, env=environment,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if done.returncode != 0:
            sys.exit(f"{name}, {way}: status {done.returncode}: {done.stderr.decode()}")
        if capture:
            capture.settle()
        found[way] = tree(place)
        if temporary_files(place):
            sys.exit(f"{name}: left {temporary_files(place)}")
    if found["native"].keys() != found["captured"].keys():
        sys.exit(f"{name}: natively {sorted(found['native'])}, captured "
                 f"{sorted(found['captured'])}")
    for path, native in found["native"].items():
        if native != found["captured"][path]:
            sys.exit(f"{name}: {path} has other bytes or another mode")
    print(f"{name}: {len(found['native'])} files")


# What is being written is in memory, and at its place once the file is closed or renamed; synced,
# where there is no collector that makes it local.
STATES = """
import os
def state(f): return os.readlink(f'/proc/self/fd/{f.fileno()}').startswith('/memfd:')
f = open('x', 'wb', buffering=0); f.write(b'abc')
assert state(f), 'not in memory'
assert os.stat('x').st_size == 3 and os.fstat(f.fileno()).st_size == 3, 'stat'
assert os.stat('x').st_ino == os.fstat(f.fileno()).st_ino, 'inode'
g = open('x', 'rb'); assert g.read() == b'abc', 'read back'
os.system('test ! -s x || exit 1') # makes it real: from now on others see it
assert not state(f) and os.system('test "$(cat x)" = abc') == 0, 'real'
h = open('y', 'wb', buffering=0); h.write(b'de'); os.fsync(h.fileno())
assert state(h) == ('BACKSTAY_COLLECTOR' in os.environ), 'synced'
k = open('z', 'wb', buffering=0); k.write(b'fg'); os.rename('z', 'y')
assert open('y', 'rb').read() == b'fg', 'renamed'
a = open('old', 'ab'); assert not state(a), 'append'
"""


def states(capture_of, folder):
    place = folder / "states"
    place.mkdir()
    done = capture_of(place).run("python3", "-c", STATES, cwd=place)
    if done.returncode != 0:
        sys.exit("a captured file is not where it should be")
    print("states")


# What has the file beside the descriptors that the library knows: a ring of io_uring, a second
# name, an O_PATH descriptor. Each makes it real. With a word more, of a plugin, by liburing too.
HELD = """
import ctypes, os, platform, sys
libc = ctypes.CDLL(None)
def in_memory(f): return os.readlink(f'/proc/self/fd/{f.fileno()}').startswith('/memfd:')
def made(name):
    f = open(name, 'wb', buffering=0); f.write(b'ab')
    assert in_memory(f), f'{name} is not in memory'
    return f
def registered(f, name, error): # one function of the plugin
    assert error == 0 and not in_memory(f), f'registered by {name}: {error}'
    f.write(b'c'); f.close()
if len(sys.argv) > 1:
    plugin = ctypes.CDLL(sys.argv[1]) # its liburing is for it alone
    by_number = ('by_number',) if platform.machine() == 'x86_64' else ()
    for name in ('by_files', 'by_tail', 'by_update', 'by_opcode', *by_number):
        f = made(name)
        assert plugin.asked() == 0 and in_memory(f), 'a call that registers no file'
        registered(f, name, getattr(plugin, name)(f.fileno()))
if platform.machine() == 'x86_64':
    f = made('ring')
    libc.syscall(427, -1, 8, None, 0); assert in_memory(f), 'asked by syscall()'
    libc.syscall(427, -1, 2, (ctypes.c_int * 1)(f.fileno()), 1)
    assert not in_memory(f), 'registered by syscall()'
f = made('one')
assert libc.linkat(-100, b'/proc/self/fd/%d' % f.fileno(), -100, b'two', 0x400) == 0, 'linkat'
f.write(b'c'); f.close()
assert open('two', 'rb').read() == b'abc' and os.stat('one').st_nlink == 2, 'linked'
native = os.open('one', os.O_WRONLY)
allowed = libc.linkat(native, b'', -100, b'native', 0x1000) == 0 # to users with a capability
f = made('three')
assert (libc.linkat(f.fileno(), b'', -100, b'four', 0x1000) == 0) == allowed, 'linkat, empty path'
f.write(b'c'); f.close()
if allowed:
    assert open('four', 'rb').read() == b'abc' and os.stat('three').st_nlink == 2, 'linked empty'
f = made('path'); held = os.open('path', os.O_PATH); f.write(b'c'); f.close()
assert open(f'/proc/self/fd/{held}', 'rb').read() == b'abc', 'O_PATH'
"""


# An empty list where it cannot be made, or the kernel allows no ring.
def ring_plugin(folder):
    plugin = folder / "ring_plugin.so"
    done = subprocess.run(f"gcc -O2 -shared -fPIC -o {plugin} {HERE}/ring_plugin.c -luring",
                          shell=True, stderr=subprocess.DEVNULL, check=False)
    script = "import ctypes, sys; sys.exit(ctypes.CDLL(sys.argv[1]).asked() != 0)"
    if done.returncode == 0 and subprocess.run([sys.executable, "-c", script, plugin],
                                               check=False).returncode == 0:
        return [plugin]
    print("held: liburing is left out")
    return []


def held(capture_of, folder):
    place = folder / "held"
    place.mkdir()
    plugin = ring_plugin(folder)
    done = capture_of(place).run("python3", "-c", HELD, *plugin, cwd=place)
    if done.returncode != 0:
        sys.exit("a file that a ring, a name or a descriptor holds is wrong")
    if plugin and any((place / name).read_bytes() != b"abc" for name in ("by_files", "by_opcode")):
        sys.exit("a file that a ring holds has other bytes")
    print("held")


def budget(capture_of, folder):
    """A file that outgrows the memory that is allowed goes to its place and goes on."""
    place = folder / "budget"
    place.mkdir()
    script = ("import os; f = open('x', 'wb', buffering=0)\n"
              "seen = [f.write(bytes([n]) * 1000000) and os.readlink('/proc/self/fd/%d' % "
              "f.fileno()).startswith('/memfd:') for n in range(40)]\n"
              "assert seen[0] and not seen[-1], seen; assert f.tell() == 40000000")
    capture = capture_of(place, BACKSTAY_CAPTURE_MIB="16")
    done = capture.run("python3", "-c", script, cwd=place)
    expected = b"".join(bytes([number]) * 1000000 for number in range(40))
    if done.returncode != 0 or (place / "x").read_bytes() != expected:
        sys.exit("a file larger than the memory that is allowed is wrong")
    print("budget")


def main():
    library, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="programs", dir=folder.parent))
    prepare(folder)
    with World(sys.argv[3]) if len(sys.argv) > 3 else contextlib.nullcontext() as world:
        run_all(lambda place, **variables: Pooled(world, place, **variables) if world else
                Capture(library, place, **variables), folder)
    shutil.rmtree(folder)


def run_all(capture_of, folder):
    for name in PROGRAMS:
        if has(name):
            run_both(capture_of, folder, name)
        else:
            print(f"{name}: left out, it is not installed")
    states(capture_of, folder)
    held(capture_of, folder)
    budget(capture_of, folder)


if __name__ == "__main__":
    main()
