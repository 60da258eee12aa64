#!/usr/bin/env python3
"""The daemon of a mount, the program, the collector or the agent are killed.

    mount_faults_test.py BACKSTAY [--only NAME]

Under every name there is the old file or the new one, whole; once close has returned, the new one.
"""

import argparse
import contextlib
import errno
import os
import pathlib
import resource
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
from mounting import MountWorld, can_mount  # noqa: E402
from obedient import Gate  # noqa: E402
from processes import wait_for  # noqa: E402

MIB = 1 << 20
OLD = b"old" * 1000
NEW = bytes(range(251)) * (3 * MIB // 251)
# Writes a file, and says how far it has come.
WRITE = """
import os, sys
name, size = sys.argv[1], int(sys.argv[2])
f = open(name, 'wb', buffering=0)
print('opened', flush=True)
new = bytes(range(251)) * (size // 251)
f.write(new)
print('written', flush=True)
f.close()
print('closed', flush=True)
os.rename(name, name + '.moved')
print('renamed', flush=True)
"""
# At each the daemon dies; what the file of a program may be that had not been told `closed`.
STEPS = ("mount.begun", "mount.keeps", "mount.kept", "mount.settles", "mount.settled")


def need(condition, what):
    if not condition:
        sys.exit(what)


def write(world, size=len(NEW)):
    return subprocess.run([sys.executable, "-c", WRITE, world.mounted / "x", str(size)],
                          env=world.env, check=False, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=60)


def check(world, said, what, new=NEW):
    """After all is at home."""
    place, moved = world.target / "x", world.target / "x.moved"
    found = [path.read_bytes() for path in (place, moved) if path.exists()]
    if "renamed" in said:
        need(found == [new], f"{what}: renamed, and not there: {[len(one) for one in found]}")
    elif "closed" in said:
        need(new in found and all(one in (OLD, new) for one in found), f"{what}: closed, and not "
             f"the new file: {[len(one) for one in found]}")
    else:
        need(all(one in (OLD, new) for one in found) and found, f"{what}: neither the old file "
             f"nor the new one: {[len(one) for one in found]}")


def killed_at_each_step(program):
    for size, steps in ((len(NEW), STEPS), (len(NEW) // 1000, ("mount.begun", "mount.placed"))):
        new = bytes(range(251)) * (size // 251)
        died = 0
        for step in steps:
            with MountWorld(program, BACKSTAY_CAPTURE_POOL_KIB="100") as world:
                (world.target / "x").write_bytes(OLD)
                world.env["BACKSTAY_FAILPOINT"] = f"{step}=kill"
                world.mount()
                del world.env["BACKSTAY_FAILPOINT"]
                done = write(world, size)
                need("renamed" in done.stdout or "not connected" in done.stderr or
                     "connection abort" in done.stderr,
                     f"{step}: ENOTCONN expected: {done}")
                died += not world.pids("backstay-mount")
                world.unmount()
                check(world, done.stdout, f"killed at {step}", new)
        print(f"killed at {died} of {len(steps)} steps, {size} bytes")
        need(died == len(steps), "too few were killed: the test says nothing")


def limited(program):
    """A limit of the size of files (ulimit -f) where it was mounted. A soft one is lifted; a larger
    file than a hard one allows is an error of its writer, not the end of the mount."""
    for hard in (resource.RLIM_INFINITY, 2 * MIB):
        with MountWorld(program) as world:
            done = world.command(
                "mount", world.mounted, "--over", world.target, "--job", "test", preexec_fn=lambda:
                resource.setrlimit(resource.RLIMIT_FSIZE, (2 * MIB, hard)))  # pylint: disable=W0640
            need(done.returncode == 0, f"limited: {done}")
            done = write(world)
            need(("renamed" in done.stdout) == (hard == resource.RLIM_INFINITY),
                 f"limited, {hard}: {done}")
            need(len(world.pids("backstay-mount")) == 1, f"limited, {hard}: the daemon has ended")
            (world.mounted / "y").write_bytes(OLD)
            world.unmount()
            need((world.target / "y").read_bytes() == OLD, f"limited, {hard}: y")
            if hard == resource.RLIM_INFINITY:
                check(world, done.stdout, "limited")
    print("limits of where it was mounted")


def moved_target(program):
    """Somebody renames the folder below the mount while a file is on its way to it."""
    with MountWorld(program) as world:
        world.mount()
        (world.mounted / "x").write_bytes(NEW)
        moved = world.target.with_name("moved")
        world.target.rename(moved)
        wait_for(lambda: (moved / "x").read_bytes() == NEW, "the file in the folder's new place")
        for turn in range(20):  # the first ones may still find it in memory
            need((world.mounted / "x").read_bytes() == NEW, f"moved target: turn {turn}")
            (world.mounted / "y").write_bytes(OLD)
            (world.mounted / "y").rename(world.mounted / f"y{turn}")
        world.unmount()
        need((moved / "x").read_bytes() == NEW, "moved target: not the new file")
    print("the folder below was renamed")


def replaced_target(program):
    """Another program replaces a file below the mount just as it has come there: what is done to
    the open one does nothing to theirs."""
    script = """
import os
f = open('x', 'wb', buffering=0); f.write(b'mine'); os.fsync(f.fileno())
os.fchmod(f.fileno(), 0o600); os.ftruncate(f.fileno(), 2); f.close()
"""
    with MountWorld(program, BACKSTAY_CAPTURE_POOL_KIB="100") as world:
        gate, place = Gate(world), world.target / "x"
        world.env.update(BACKSTAY_FAILPOINT="mount.placed=wait", BACKSTAY_FAILPOINT_PIPE=gate.pipe)
        world.mount()
        running = subprocess.Popen([sys.executable, "-c", script], cwd=world.mounted)
        gate.reached()
        need(place.read_bytes() == b"mine", f"replaced: not there: {place.read_bytes()}")
        (world.target / "theirs").write_bytes(b"theirs")
        (world.target / "theirs").chmod(0o644)
        (world.target / "theirs").rename(place)
        gate.go()
        need(running.wait(timeout=60) == 0, "replaced: the program fails")
        need(place.read_bytes() == b"theirs", f"replaced: {place.read_bytes()}")
        need(place.stat().st_mode & 0o777 == 0o644, "replaced: another mode")
        world.unmount()


def killed_while_open(program):
    """What was not closed is lost with the daemon, and nothing else is."""
    with MountWorld(program) as world:
        (world.target / "x").write_bytes(OLD)
        world.mount()
        with open(world.mounted / "x", "wb", buffering=0) as file:
            file.write(NEW)
            need((world.target / "x").read_bytes() == OLD, "the old file has gone")
            need(world.kill_mount() == 1, "no daemon")
            for call in (lambda: os.pread(file.fileno(), 10, len(NEW) + 8192),
                         lambda: os.fsync(file.fileno())):
                try:
                    call()
                    sys.exit("a call on a dead mount succeeds")
                except OSError as failure:
                    need(failure.errno in (errno.ENOTCONN, errno.EBADF, errno.EIO,
                                           errno.ECONNABORTED), f"{failure}")
            with contextlib.suppress(OSError):
                file.close()
        world.unmount()
        need((world.target / "x").read_bytes() == OLD, "not the old file")


def killed_program(program):
    """By a signal: the old file, also through the mount. Its end by itself: the new one."""
    for name, code in (("SIGKILL", "os.kill(os.getpid(), 9)"), ("SIGSEGV", "os.abort()"),
                       ("exit", "os._exit(3)")):
        with MountWorld(program) as world:
            (world.target / "x").write_bytes(OLD)
            world.mount()
            script = f"import os; f = open('x', 'wb', buffering=0); f.write(b'n' * 500000); {code}"
            subprocess.run([sys.executable, "-c", script], cwd=world.mounted, check=False)
            right = b"n" * 500000 if name == "exit" else OLD
            wait_for(lambda w=world, r=right: (w.mounted / "x").read_bytes() == r,
                     f"{name}: the right file through the mount")
            need((world.mounted / "x").stat().st_size == len(right), f"{name}: another size")
            (world.mounted / "x").write_bytes(NEW)
            world.unmount()
            need((world.target / "x").read_bytes() == NEW, f"{name}: not written again")


def killed_others(program):
    """Collector or agent die while files are on their way: nothing is lost."""
    for name in ("backstay-collector", "backstayd"):
        with MountWorld(program) as world:
            world.mount()
            for number in range(4):
                (world.mounted / f"f{number}").write_bytes(NEW)
                need(world.kill(name) > 0, f"no {name}")
                need((world.mounted / f"f{number}").read_bytes() == NEW, f"{name}: other bytes")
            world.unmount()
            for number in range(4):
                need((world.target / f"f{number}").read_bytes() == NEW,
                     f"{name}: f{number} is lost")


def killed_with_collector(program):
    """Daemon and collector are killed while a file is on its way: the one that `unmount` starts in
    the collector's place is of the same job and folder of versions, and serves the next mount."""
    with MountWorld(program) as world:
        world.mount("--dir", world.folder / "elsewhere")
        (world.mounted / "x").write_bytes(NEW)
        need(world.kill_mount() == 1 and world.kill("backstay-collector") == 1, "none to kill")
        world.unmount()
        need((world.target / "x").read_bytes() == NEW, "x at home")
        world.mount("--dir", world.folder / "elsewhere")
        (world.mounted / "y").write_bytes(NEW)
        world.unmount()
        need((world.target / "y").read_bytes() == NEW, "y at home")
        need("directly" not in world.log(), f"y was not captured: {world.log()}")
        need(not (world.folder / "versions").exists(), "versions of another folder")


def written_again(program):
    """A small file, which comes to its place without a version, is replaced each time that it is
    written, so a crash leaves the old one or the new one. A large one after it is captured."""
    with MountWorld(program, BACKSTAY_CAPTURE_POOL_KIB="100") as world:
        world.mount()
        place, seen = world.target / "x", []
        for turn in range(4):
            (world.mounted / "x").write_bytes(OLD + bytes([turn]))
            need(place.read_bytes() == OLD + bytes([turn]), f"written again: {turn}")
            seen.append(place.stat().st_ino)
            (world.mounted / "x").chmod(0o600 if turn else 0o200)
        need(all(one != other for one, other in zip(seen, seen[1:])), f"in place: {seen}")
        (world.mounted / "x").write_bytes(NEW)
        world.unmount()
        need(place.read_bytes() == NEW, "not the large one")
        need("directly" not in world.log(), f"it was not captured: {world.log()}")


def small_memory(program):
    """More is written than memory holds."""
    with MountWorld(program, BACKSTAY_CAPTURE_MIB="4") as world:
        world.mount()
        data = os.urandom(10 * MIB)
        (world.mounted / "x").write_bytes(data)
        need((world.mounted / "x").read_bytes() == data, "other bytes")
        world.unmount()
        need((world.target / "x").read_bytes() == data, "other bytes at home")


def full_target(program):
    """close says so, and the old file stays."""
    if os.geteuid() != 0:
        return
    with MountWorld(program) as world:
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", world.target],
                                 check=False)
        if mounted.returncode != 0:
            return
        try:
            (world.target / "x").write_bytes(OLD)
            world.env["BACKSTAY_CAPTURE_POOL_KIB"] = "100000"
            world.mount()
            try:
                (world.mounted / "x").write_bytes(NEW)
                sys.exit("close succeeds on a full disk")
            except OSError as failure:
                need(failure.errno == errno.ENOSPC, f"ENOSPC expected: {failure}")
            wait_for(lambda: (world.mounted / "x").read_bytes() == OLD, "the old file")
            world.unmount()
            need((world.target / "x").read_bytes() == OLD, "the old file is damaged")
        finally:
            world.kill_mount()
            subprocess.run(["fusermount3", "-u", "-z", world.mounted], check=False,
                           stderr=subprocess.DEVNULL)
            subprocess.run(["umount", "-l", world.target], check=False)


def kept_open(program):
    """A child goes on writing after its parent has closed; two write one file; one is unlinked."""
    with MountWorld(program) as world:
        world.mount()
        script = """
import os
f = open('x', 'wb', buffering=0); f.write(b'a' * 300000)
r, w = os.pipe()
if os.fork() == 0:
    os.close(w); os.read(r, 1)
    f.write(b'b' * 300000); os._exit(0)
f.close()
g = open('y', 'wb', buffering=0); h = open('y', 'r+b', buffering=0)
g.write(b'1' * 300000); h.seek(300000); g.close(); h.write(b'2' * 300000)
assert open('y', 'rb').read() == b'1' * 300000 + b'2' * 300000; h.close()
k = open('z', 'w+b', buffering=0); k.write(b'k' * 300000); os.unlink('z')
assert os.fstat(k.fileno()).st_nlink == 0 and os.pread(k.fileno(), 10, 5) == b'k' * 10
assert not os.path.exists('z'); k.close()
os.close(w); os.wait()
"""
        done = subprocess.run([sys.executable, "-c", script], cwd=world.mounted, check=False)
        need(done.returncode == 0, f"kept open: {done}")
        need((world.mounted / "x").read_bytes() == b"a" * 300000 + b"b" * 300000, "x")
        world.unmount()
        need((world.target / "x").read_bytes() == b"a" * 300000 + b"b" * 300000, "x at home")
        need((world.target / "y").read_bytes() == b"1" * 300000 + b"2" * 300000, "y at home")
        need(not (world.target / "z").exists(), "z came back")


def synced(program):
    """fsync returns once the file is local; it stays in memory. A crash leaves what was synced."""
    script = """
import os, sys
f = open('x', 'wb', buffering=0); f.write(b's' * 500000); os.fsync(f.fileno())
print('synced', flush=True); sys.stdin.readline()
f.write(b't' * 100000); f.close()
"""
    new, newer = b"s" * 500000, b"s" * 500000 + b"t" * 100000
    for killed in ("", "program", "backstay-mount", "backstayd", "backstay-collector"):
        with MountWorld(program) as world:
            (world.target / "x").write_bytes(OLD)
            world.mount()
            running = subprocess.Popen([sys.executable, "-c", script], cwd=world.mounted, text=True,
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            need(running.stdout.readline() == "synced\n", "it was not synced")
            need((world.target / "x").read_bytes() == OLD, "fsync: it is at its place")
            need(len(list((world.folder / "versions").rglob("commit.local"))) == 1, "not local")
            if killed == "program":
                running.kill()
            elif killed:
                need(world.kill(killed) == 1, f"no {killed}")
            with contextlib.suppress(BrokenPipeError):
                running.communicate("\n")
            world.unmount()
            wanted = (new, newer) if killed in ("program", "backstay-mount") else (newer,)
            found = (world.target / "x").read_bytes()
            need(found in wanted, f"{killed} killed after fsync: {len(found)} bytes")
            need("newer file" not in world.log(), f"{killed}: a version was kept")


def in_another_namespace(program):
    """A container that was started meanwhile has the mount, too: unmount does not wait for it."""
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    words = ["unshare", *user, "--mount", "--propagation", "private"]
    with MountWorld(program) as world:
        world.mount()
        other = subprocess.Popen([*words, "sh", "-c", "echo there; read end"], text=True,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if other.stdout.readline() != "there\n":
            print("left out: no namespace can be made here")
            world.unmount()
            return
        (world.mounted / "x").write_bytes(NEW)
        done = world.command("unmount", world.mounted, "--timeout", "20", timeout=100)
        seen = pathlib.Path(f"/proc/{other.pid}/mountinfo").read_text()
        other.communicate("\n")
        need(str(world.mounted) in seen, "the other namespace did not have it")
        need(done.returncode == 0, f"unmounted while another namespace has it: {done}")
        need((world.target / "x").read_bytes() == NEW, "x at home")


def narrowed(program):
    """Files that do not match go to their places natively."""
    with MountWorld(program) as world:
        world.mount("--capture-files", "*.restart", "--capture-files", "out/**")
        (world.mounted / "out").mkdir()
        with open(world.mounted / "a.log", "wb", buffering=0) as file:
            file.write(b"x" * 100)
            os.fdatasync(file.fileno())
            need((world.target / "a.log").read_bytes() == b"x" * 100, "a.log was captured")
        with open(world.mounted / "a.restart", "wb", buffering=0) as one, \
                open(world.mounted / "out" / "b", "wb", buffering=0) as other:
            for file in (one, other):
                file.write(b"x" * 100)
            need((world.target / "a.restart").stat().st_size == 0, "a.restart was not captured")
            need((world.target / "out" / "b").stat().st_size == 0, "out/b was not captured")
        world.unmount()
        need((world.target / "a.restart").read_bytes() == b"x" * 100, "a.restart")


TESTS = {test.__name__: test for test in (
    killed_at_each_step, limited, moved_target, replaced_target, killed_while_open, killed_program,
    killed_others, killed_with_collector, written_again, small_memory, full_target, kept_open,
    synced, in_another_namespace, narrowed)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--only", choices=TESTS)
    options = parser.parse_args()
    if can_mount():
        print(f"left out: {can_mount()}")
        sys.exit(77)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    for name, test in TESTS.items():
        if options.only in (None, name):
            test(options.program)
            print(name, flush=True)


if __name__ == "__main__":
    main()
