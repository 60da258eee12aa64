"""Strategies by which the ranks write versions, tried one after the other: the settings that come
next, and the best one. No input or output. Paper 004; docs/guide/strategies.md.
"""

import json
from typing import NamedTuple

NAMES = ("file_per_process", "collective", "writers")
BUFFERS_MIB, ALIGN_KIB = (16, 256), 1024
LATER = 4  # settings of the second and third round, at most
TIE = 1.05  # times of two settings that are taken for the same


class Setting(NamedTuple):
    """Keys of [strategy]; `files` 0: a file of each writer, or of each process."""

    name: str
    files: int = 0
    ranks_per_writer: int = 1
    buffer_mib: int = 64
    align_kib: int = 0

    def files_of(self, ranks: int) -> int:
        return self.files or -(-ranks // self.ranks_per_writer)

    @property
    def changed(self) -> dict[str, int]:
        usual = Setting(self.name)._asdict()
        return {key: value for key, value in self._asdict().items() if value != usual[key]}

    def __str__(self) -> str:
        return " ".join([self.name, *(f"{key}={value}" for key, value in self.changed.items())])


class Measured(NamedTuple):
    """One setting with one program: medians over its versions."""

    setting: Setting
    ranks: int
    versions: int
    bytes: float
    blocked_s: float  # of the slowest rank
    durable_s: float  # from begin to durable

    @property
    def bytes_per_s(self) -> float:
        return self.bytes / self.durable_s


def settings(ranks: int, only) -> list[Setting]:
    """The first round: numbers of files, and ranks for each writer."""
    files = sorted({1, ranks // 4, ranks} - {0})
    powers = [2**power for power in range(1, ranks.bit_length())]
    all_of = [Setting("file_per_process"), *(Setting("collective", one) for one in files),
              *(Setting("writers", 0, one) for one in powers)]
    return [one for one in all_of if one.name in only]


def best(done: list[Measured]) -> Measured:
    """The least blocked time; of those that are the same, the greatest bandwidth."""
    least = min(one.blocked_s for one in done)
    return max((one for one in done if one.blocked_s <= TIE * least),
               key=lambda one: one.bytes_per_s)


def shared_file(done: list[Measured]) -> list[Setting]:
    """The second round: one file of the best writers, unless they have one already."""
    found = [best(writers) for writers in [[one for one in done if one.setting.name == "writers"]]
             if writers]
    return [one.setting._replace(files=1) for one in found if one.setting.files_of(one.ranks) > 1]


def finer(done: list[Measured]) -> list[Setting]:
    """The third round: buffer and alignment of the best setting, where it uses them."""
    found = best(done).setting
    sizes = () if found.name == "collective" else BUFFERS_MIB
    aligns = [ALIGN_KIB] if found.files else []
    return [*(found._replace(buffer_mib=size) for size in sizes),
            *(found._replace(align_kib=align) for align in aligns)]


def toml(directory: str, setting: Setting) -> str:
    """A configuration that has the setting."""
    return "\n".join(["[durable]", f"dir = {json.dumps(directory, ensure_ascii=False)}",
                      "[strategy]", f'name = "{setting.name}"',
                      *(f"{key} = {value}" for key, value in setting.changed.items()), ""])
