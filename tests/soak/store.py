"""What lies on the disk of one job, and what random damage does to it. Standard library only."""

import contextlib
import os
import random
import shutil
from pathlib import Path

STRAY = "v9999999999999999"


def number_of(folder: Path) -> int:
    return int(folder.name[1:])


class Store:
    """The folder of a job. Damage returns what it did, in words, and the version that it may have
    spoiled (None: none).
    """

    def __init__(self, job_folder: Path):
        self.folder = job_folder

    def versions(self) -> list[Path]:
        """Folders with a commit record, oldest first, without strays."""
        return sorted(one for one in self.folder.glob("v*") if one.name != STRAY
                      and any(one.glob("commit.*")))

    def damage(self, dice: random.Random) -> tuple[str, int | None]:
        versions = self.versions()
        harmless = [self.foreign_file, self.empty_next, self.no_log, self.garbage_log, self.no_lock]
        if not versions:
            return dice.choice(harmless)(dice), None
        if dice.random() < 0.3:
            return dice.choice([*harmless, self.stray])(dice), None
        # The newest one is the one that a restart wants.
        version = versions[-1] if dice.random() < 0.7 else dice.choice(versions)
        spoil = dice.choice([self.flip, self.flip, self.truncate, self.remove, self.replace,
                             self.extend, self.remove_version])
        return spoil(dice, version), number_of(version)

    # --- what no version minds -------------------------------------------------------------------
    def foreign_file(self, dice) -> str:
        place = dice.choice([self.folder, *self.versions()])
        with contextlib.suppress(OSError):
            (place / "notes of somebody.txt").write_text("mine")
        return f"a foreign file in {place.name}"

    def empty_next(self, dice) -> str:
        number = max((number_of(one) for one in self.versions()), default=0) + dice.randrange(1, 4)
        (self.folder / f"v{number:016d}").mkdir(parents=True, exist_ok=True)
        return f"an empty folder for version {number}"

    def no_log(self, dice) -> str:
        (self.folder / "events.jsonl").unlink(missing_ok=True)
        return "no event log"

    def garbage_log(self, dice) -> str:
        with contextlib.suppress(OSError), open(self.folder / "events.jsonl", "ab") as log:
            log.write(dice.randbytes(300) + b"\n{}\n[1]\n")
        return "garbage in the event log"

    def no_lock(self, dice) -> str:
        (self.folder / "lock").unlink(missing_ok=True)
        return "no lock"

    def stray(self, dice) -> str:
        if not (self.folder / STRAY).exists():
            with contextlib.suppress(shutil.Error):  # an agent writes there
                shutil.copytree(dice.choice(self.versions()), self.folder / STRAY)
        return f"a copied folder {STRAY}"

    # --- what may cost the version ---------------------------------------------------------------
    def flip(self, dice, version: Path) -> str:
        path = self.file_of(dice, version)
        data = bytearray(path.read_bytes())
        if not data:
            return f"nothing to flip in {path.name}"
        at = dice.choice([dice.randrange(len(data)), dice.randrange(min(len(data), 4200))])
        data[at] ^= 1 << dice.randrange(8)
        path.write_bytes(data)
        return f"a bit of {version.name}/{path.name} at {at}"

    def truncate(self, dice, version: Path) -> str:
        path = self.file_of(dice, version)
        size = dice.randrange(path.stat().st_size + 1)
        os.truncate(path, size)
        return f"{version.name}/{path.name} cut to {size}"

    def extend(self, dice, version: Path) -> str:
        path = self.file_of(dice, version)
        size = path.stat().st_size + dice.choice([1, 4096, 1 << 40])
        os.truncate(path, size)
        return f"{version.name}/{path.name} extended to {size}"

    def remove(self, dice, version: Path) -> str:
        path = self.file_of(dice, version)
        path.unlink()
        return f"{version.name}/{path.name} removed"

    def replace(self, dice, version: Path) -> str:
        path = self.file_of(dice, version)
        path.unlink()
        what, put = dice.choice([("a folder", Path.mkdir), ("a pipe", os.mkfifo),
                                 ("a loop", lambda at: at.symlink_to(at.name)),
                                 ("an empty file", Path.touch)])  # fmt: skip
        put(path)
        return f"{what} in place of {version.name}/{path.name}"

    def remove_version(self, dice, version: Path) -> str:
        shutil.rmtree(version)
        return f"{version.name} removed"

    def file_of(self, dice, version: Path) -> Path:
        files = sorted(one for one in version.iterdir() if one.is_file() and not one.is_symlink()
                       and one.suffix != ".txt")
        return dice.choice(files or [version / "commit.local"])
