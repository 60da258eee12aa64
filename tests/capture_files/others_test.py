#!/usr/bin/env python3
"""Other programs touch captured files that are on their way to their places, and disks are full.

    others_test.py BACKSTAY FOLDER [--only NAME]

A file of which others have changed no byte comes to its place. One that others have written stays
theirs, and who waits for it is told.
"""

import argparse
import contextlib
import errno
import os
import pathlib
import shutil
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
from capturing import World, temporary_files  # noqa: E402
from processes import wait_for, wait_for_end  # noqa: E402

MIB = 1 << 20
NEW = b"new!" * (MIB // 4)
# One file is at its place before `x` is written: from then on the agent sees when another program
# has put a file there. It stands still before it brings `x` until the test has touched that.
WRITE = """
import os, sys
def write(name):
    with open(name, 'wb') as f: f.write(b'new!' * 262144)
write('first')
os.chmod('first', 0o644)
write('x')
print('pending', flush=True)
sys.stdin.read()
"""


def need(condition, what):
    if not condition:
        sys.exit(what)


@contextlib.contextmanager
def place_in(folder, name):
    place = folder / name / "d"
    shutil.rmtree(folder / name, ignore_errors=True)
    place.mkdir(parents=True)
    (place / "x").write_bytes(b"old" * 1000)
    yield place


def is_stopped(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def touched(world, place, touch, command="exec", write=WRITE):
    """`touch` is called while `x` is on its way. What came of the program."""
    subprocess.run([world.program, "agent", "start"], check=True, stdout=subprocess.DEVNULL,
                   env={**world.env, "BACKSTAY_FAILPOINT": "home.1=stop@2"})
    agent = wait_for(lambda: world.pids("backstayd"), "an agent")[0]
    more = ["--retries", "0"] if command == "run" else []
    words = [world.program, command, *more, "--job", "test", "--capture-files", f"{place}/**", "--",
             sys.executable, "-c", f"import os; os.chdir({str(place)!r})\n{write}"]
    with subprocess.Popen(list(map(str, words)), env=world.env, cwd=world.folder, text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as running:
        try:
            need(running.stdout.readline() == "pending\n", "the program did not write")
            wait_for(lambda: is_stopped(agent), "the agent to stand still")
            touch()
        finally:
            os.kill(agent, signal.SIGCONT)
        said, errors = running.communicate(timeout=120)
    return running.returncode, said, errors


def listed(world):
    job = next((world.folder / "versions").glob("test.files.*")).name
    return subprocess.run([world.program, "ls", "--files", job], env=world.env, text=True,
                          stdout=subprocess.PIPE, check=False).stdout


def other_attributes(program, folder):
    """Its mode, its names: the bytes come to what stands there."""
    def mode(place):
        (place / "x").chmod(0o600)

    def name(place):
        os.link(place / "x", place / "y")

    def there_and_back(place):
        (place / "x").rename(place / "y")
        (place / "y").rename(place / "x")

    for touch in (mode, name, there_and_back):
        with World(program) as world, place_in(folder, touch.__name__) as place:
            code, _, errors = touched(world, place, lambda: touch(place))
            need(code == 0 and errors == "", f"{touch.__name__}: {code} {errors}")
            need((place / "x").read_bytes() == NEW, f"{touch.__name__}: x is not the new file")
            need("kept" not in listed(world), f"{touch.__name__}: {listed(world)}")
            need(not temporary_files(place), f"{touch.__name__}: left {temporary_files(place)}")
            if touch is mode:
                need((place / "x").stat().st_mode & 0o777 == 0o600, "mode: another one")
            if touch is name:
                need((place / "y").samefile(place / "x"), "name: y is another file")
    print("others changed a mode, a name, and moved it there and back")


def other_bytes(program, folder):
    """Their bytes stay. The user is told where the captured bytes are."""
    def written(place):
        (place / "x").write_bytes(b"theirs")

    def replaced(place):
        (place / "x").rename(place / "y")
        (place / "x").write_bytes(b"theirs")

    for touch in (written, replaced):
        for command in ("exec", "run"):
            with World(program) as world, place_in(folder, touch.__name__) as place:
                code, _, errors = touched(world, place, lambda: touch(place), command)
                need((place / "x").read_bytes() == b"theirs", f"{touch.__name__}: not theirs")
                need(f"{place}/x stays as it is" in errors and "backstay export" in errors,
                     f"{touch.__name__}, {command}: not told: {errors}")
                need(code == (1 if command == "run" else 0), f"{command}: ended with {code}")
                version = errors.split("is in version ")[1].split()[0]
                job = errors.split("of job ")[1].split(":")[0]
                found = world.folder / "found"
                subprocess.run([world.program, "export", job, version, "-o", found],
                               env=world.env, check=True, stdout=subprocess.DEVNULL)
                need((found / "files" / str(place)[1:] / "x").read_bytes() == NEW,
                     f"{touch.__name__}: export gives other bytes")
                # Nothing is said any more once the program has written the file anew.
                done = world.run(place, "dd", "if=/dev/zero", f"of={place}/x", "bs=1M", "count=1",
                                 "status=none", stderr=subprocess.PIPE, text=True)
                need(done.returncode == 0 and done.stderr == "", f"written anew: {done}")
                need((place / "x").read_bytes() == bytes(MIB), "written anew: other bytes")
    with World(program) as world, place_in(folder, "left") as place:
        removes = f"{WRITE}\nos.unlink('x')"  # once the other program's file is known to stay
        removes = removes.replace("sys.stdin.read()", "os.sync(); sys.stdin.read()")
        code, _, errors = touched(world, place, lambda: written(place), "run", removes)
        need(code == 0 and "stays" not in errors, f"removed by the program: {code} {errors}")
    print("others wrote it, or put another file there")


def folder_removed(program, folder):
    """A file whose folder was removed does not come back into a new one of that name."""
    with World(program) as world, place_in(folder, "removed") as place:
        code, _, errors = touched(world, place, lambda: shutil.rmtree(place))
        need(code == 0, f"removed: {code} {errors}")
        place.mkdir()
        world.kill("backstay-collector")
        world.run(place, "true")
        need(not list(place.iterdir()), f"removed: came back: {list(place.iterdir())}")
    print("others removed its folder")


@contextlib.contextmanager
def old_disk(folder, mib):
    """A file system that cannot reserve room; false where none can be mounted."""
    place = folder / "old"
    place.mkdir(parents=True, exist_ok=True)
    image = folder / "old.image"
    image.write_bytes(bytes(mib * MIB))
    made = shutil.which("mkfs.ext2", path=f"{os.environ['PATH']}:/sbin:/usr/sbin")
    mounted = made is not None and os.geteuid() == 0 and subprocess.run(
        f"{made} -q -m 0 {image} && mount -o loop,errors=remount-ro {image} {place}", shell=True,
        stderr=subprocess.DEVNULL, check=False).returncode == 0
    try:
        yield place if mounted else None
    finally:
        if mounted:
            subprocess.run(["umount", "-l", place], check=True)
        image.unlink()


def mounted_from(place):
    """The name of the device."""
    for line in pathlib.Path("/proc/mounts").read_text().splitlines():
        if line.split()[1] == str(place):
            return pathlib.Path(line.split()[0]).name
    return "none"


def mount_again(world, folder, place):
    """While nothing is mounted there the agent would bring files into the folder below."""
    agent = world.pids("backstayd")[0]

    def unmounted():
        os.kill(agent, signal.SIGSTOP)
        done = wait_for(lambda: is_stopped(agent), "the agent to stand still") and (
            subprocess.run(["umount", place], stderr=subprocess.DEVNULL, check=False))
        if done.returncode != 0:
            os.kill(agent, signal.SIGCONT)  # it has a file open there
        return done.returncode == 0

    try:
        wait_for(unmounted, "nobody to use the disk")
        subprocess.run(["mount", "-o", "loop", folder / "old.image", place], check=True)
    finally:
        os.kill(agent, signal.SIGCONT)


def disk_with_errors(program, folder):
    """The kernel finds an error, and lets nothing be written any more: nobody else has written."""
    with World(program) as world, old_disk(folder, 8) as place:
        trigger = pathlib.Path(f"/sys/fs/ext4/{mounted_from(place)}/trigger_fs_error")
        if place is None or not trigger.exists():
            print("disk with errors: left out, nothing can be mounted here")
            return
        code, _, errors = touched(world, place, lambda: trigger.write_text("1"), "run")
        need(code == 1 and f"{place}/x could not be brought to its place" in errors,
             f"disk with errors: {code} {errors}")
        wait_for(lambda: not world.pids("backstay-collector"), "the end of the collector")
        mount_again(world, folder, place)
        done = world.run(place, "true", stderr=subprocess.PIPE, text=True)
        need((place / "x").read_bytes() == NEW,
             f"disk with errors: not the new file: {done} {listed(world)}")
    print("disk with errors: comes once it can be written")


def fill(path):
    """The file takes all room that is left."""
    with open(path, "wb", buffering=0) as file, contextlib.suppress(OSError):
        for bytes_at_once in (64 << 10, 1 << 10):
            with contextlib.suppress(OSError):
                while True:
                    file.write(bytes(bytes_at_once))


def written_in_part(program, folder):
    """There seems to be room without the old file, and there is not: once there is, it comes."""
    with World(program) as world, old_disk(folder, 8) as place:
        if place is None:
            print("written in part: left out, nothing can be mounted here")
            return
        (place / "x").write_bytes(b"old!" * (3 * MIB // 4))
        fill(place / "filler")
        # More than its bytes: it has blocks that name blocks.
        blocks = (place / "x").stat().st_blocks * 512 // 4096 * 4096
        script = f"open({str(place / 'x')!r}, 'wb').write(b'new!' * {blocks // 4})"
        done = world.run(place, sys.executable, "-c", script, stderr=subprocess.PIPE, text=True)
        need("could not be brought" in done.stderr, f"written in part: not told: {done}")
        (place / "filler").unlink()
        wait_for(lambda: not world.pids("backstay-collector"), "the end of the collector")
        done = world.run(place, "true", stderr=subprocess.PIPE, text=True)
        need((place / "x").read_bytes() == b"new!" * (blocks // 4),
             f"written in part: not the new file: {done} {listed(world)}")
    print("written in part: comes once there is room")


def real_in_part(program, folder):
    """A file that cannot be made real for want of room is none that others have written."""
    with World(program) as world, old_disk(folder, 8) as place:
        if place is None:
            print("real in part: left out, nothing can be mounted here")
            return
        (place / "filler").write_bytes(bytes(4 * MIB))
        script = f"""
import os
f = open({str(place / 'x')!r}, 'wb', buffering=0)
f.write(b'A' * {6 * MIB})
if os.fork() == 0: os._exit(0)
os.wait()
f.seek(0)
f.truncate(0)
os.unlink({str(place / 'filler')!r})
f.write(b'C' * 100000)
f.close()
"""
        done = world.run(place, sys.executable, "-c", script, stderr=subprocess.PIPE, text=True)
        need(done.returncode == 0, f"real in part: {done}")
        found = (place / "x").read_bytes()
        need(found == b"C" * 100000, f"real in part: {len(found)} bytes, {found.count(b'A')} old")
    print("real in part")


@contextlib.contextmanager
def small_disk(place, size):
    place.mkdir(parents=True, exist_ok=True)
    mounted = os.geteuid() == 0 and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", place],
        stderr=subprocess.DEVNULL, check=False).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "-l", place], check=True)


def both_full(program, folder):
    """Neither the versions' disk nor the target's has room: the bytes are in memory, and the
    message says so."""
    with World(program) as world, small_disk(world.folder / "versions", "1m") as mounted, \
            small_disk(folder / "target", "1m"):
        if not mounted:
            print("both full: left out, nothing can be mounted here")
            return
        place = folder / "target"
        fill(place / "filler")
        done = subprocess.run(
            [world.program, "run", "--retries", "0", "--job", "test", "--capture-files",
             f"{place}/x", "--", "dd", "if=/dev/zero", f"of={place}/x", "bs=1M", "count=3"],
            env=world.env, text=True, stderr=subprocess.PIPE, check=False, cwd=world.folder)
        need(done.returncode == 1, f"both full: {done}")
        pid = world.pids("backstay-collector")[0]
        need("could not be brought to its place" in done.stderr and
             f"in memory alone, in process {pid}" in done.stderr and
             "backstay export" not in done.stderr and
             "no file was captured" not in done.stderr, f"both full: {done.stderr}")
        os.kill(pid, signal.SIGKILL)
        wait_for_end(pid, "the collector")
    print("both full: in memory alone")


# Prints what each call answers: an error number.
HOLD = """
import ctypes, platform
libc = ctypes.CDLL(None, use_errno=True)
def said(answer): print(0 if answer >= 0 else ctypes.get_errno())
f = open('first', 'wb', buffering=0)
f.write(b'a' * 3000000)
said(libc.linkat(-100, b'/proc/self/fd/%d' % f.fileno(), -100, b'second', 0x400))
files = (ctypes.c_int * 1)(f.fileno())
print(-libc.io_uring_register_files(None, files, 1))
print(-libc.io_uring_register(-1, 2, files, 1))
if platform.machine() == 'x86_64': said(libc.syscall(427, -1, 2, files, 1))
f.close()
said(libc.linkat(-100, b'first', -100, b'second', 0))
"""


def held_on_full_disk(program, folder):
    """A second name, or a ring of io_uring, needs the file's bytes at its place: without room there
    the call fails."""
    with World(program) as world, small_disk(folder / "target", "1m") as mounted:
        if not mounted:
            print("held on a full disk: left out, nothing can be mounted here")
            return
        place = folder / "target"
        script = f"import os; os.chdir({str(place)!r})\n{HOLD}"
        done = world.run(place, sys.executable, "-c", script, text=True, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE)
        *real, pending = done.stdout.split()
        need(set(real) == {str(errno.ENOSPC)} and pending == str(errno.EIO),
             f"held on a full disk: {done}")
        need(not (place / "second").exists(), "held on a full disk: it has a second name")
    print("held on a full disk: refused")


TESTS = {test.__name__: test for test in
         (other_attributes, other_bytes, folder_removed, disk_with_errors, written_in_part,
          real_in_part, both_full, held_on_full_disk)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", choices=TESTS)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for name, test in TESTS.items():
        if options.only in (None, name):
            test(options.program, options.folder.resolve())


main()
