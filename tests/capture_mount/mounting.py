"""Mounts folders by `backstay mount`, in a world of their own that leaves nothing behind."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "capture_files"))
from capturing import World, temporary_files  # noqa: E402, F401


def can_mount():
    """Why this machine cannot mount; "" where it can."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "no /dev/fuse"
    return "" if shutil.which("fusermount3") else "no fusermount3"


class MountWorld(World):
    """An agent, collectors and mounts; all of them end with this, also where a test fails."""

    def __init__(self, program, **variables):
        super().__init__(program, **variables)
        self.env.pop("BACKSTAY_CAPTURE_POOL_KIB", None)
        self.env["BACKSTAY_CAPTURE_POOL_KIB"] = variables.get("BACKSTAY_CAPTURE_POOL_KIB", "0")
        self.target = self.folder / "target"
        self.mounted = self.folder / "mounted"
        self.target.mkdir()
        self.mounted.mkdir()

    def command(self, *words, **options):
        return subprocess.run([self.program, *map(str, words)], env=self.env, check=False,
                              cwd=self.folder, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, **options)

    def mount(self, *options):
        done = self.command("mount", self.mounted, "--over", self.target, "--job", "test",
                            *options)
        assert done.returncode == 0, done
        return self.mounted

    def unmount(self):
        done = self.command("unmount", self.mounted, "--timeout", "60", timeout=100)
        assert done.returncode == 0, (done, self.log())
        return done

    def kill_mount(self):
        return self.kill("backstay-mount")

    def log(self):
        log = self.folder / "agent" / "mount.log"
        return super().log() + (log.read_text() if log.exists() else "")

    def __exit__(self, *rest):
        self.kill_mount()
        with contextlib.suppress(OSError):
            for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
                at = line.split()[4]
                if at.startswith(f"{self.folder}/"):
                    subprocess.run(["fusermount3", "-u", "-z", "--", at], check=False)
        super().__exit__(*rest)
