"""A version as a mapping of region names to arrays."""

import math
import os
import re
import warnings
from collections.abc import Mapping

import numpy as np

from . import captured, checksum, commits, records
from .captured import CapturedFile
from .errors import (
    ChecksumsSkippedWarning,
    ChecksumsUnavailableError,
    DamagedError,
    FormatError,
    IncompleteError,
    NotFoundError,
    UncommittedError,
    UnreadableError,
    UnsupportedError,
    as_ours,
)
from .image import FOOTER, Image, is_image, read_image
from .node import NodeFiles, ObjectBytes
from .rank_view import RankView, held_by_numpy
from .records import Region

_MANIFEST = re.compile(r"node-(\d{7})\.manifest\Z")


class Version(Mapping):
    """One version. `version[name]` is

    - the whole global array where the ranks declared their blocks' places in one,
    - the array itself where a single rank has a region of that name,
    - else a dict: rank -> array.

    Arrays are read-only copies; with `check` every chunk is verified after it was copied.
    """

    def __init__(self, path, check: bool = True, damaged_ok: bool = False):
        self.path = os.fspath(path)
        self.checked = check and checksum.available()
        if check and not checksum.available():
            warnings.warn(
                f"{self.path} is read without verification: the package 'xxhash' is missing",
                ChecksumsSkippedWarning,
                stacklevel=3,
            )
        with as_ours(self.path):
            self._read(check, damaged_ok)

    def _read(self, check: bool, damaged_ok: bool) -> None:
        self.damage = commits.damage_of(self.path)
        if self.damage is not None and not damaged_ok:
            raise DamagedError(f"{self.path} is marked as damaged: {self.damage}")
        self.commits = commits.read_commits(self.path)
        commits.check_commits(self.path, self.commits)
        self._commit = self.commits[max(self.commits, key=commits.level_order)]
        self.job = self._commit.job
        self.number = self._commit.version
        self.run = self._commit.run
        self.level = self._commit.level
        self.ranks = self._commit.ranks
        self.nodes = self._commit.nodes
        self.payload_bytes = self._commit.payload_bytes
        self.captured_ns = self._commit.captured_ns
        self._nodes = self._read_nodes(check)
        self._node_of = self._index_ranks()
        self._views: dict[int, RankView] = {}
        self._images: dict[int, bool] = {}
        self._files: dict[bytes, CapturedFile] | None = None
        self._check_whole()

    # --- what is here --------------------------------------------------------------------------
    def _read_nodes(self, check: bool) -> dict[int, NodeFiles]:
        found = {}
        for name in sorted(os.listdir(self.path)):
            match = _MANIFEST.match(name)
            if match is None:
                continue
            node = int(match.group(1))
            files = NodeFiles(self.path, node, check)
            m, c = files.manifest, self._commit
            if (m.job, m.version, m.run, m.ranks, m.nodes) != (
                c.job,
                c.version,
                c.run,
                c.ranks,
                c.nodes,
            ):
                raise DamagedError(f"{os.path.join(self.path, name)}: not of the committed version")
            found[node] = files
        if not found:
            raise IncompleteError(f"{self.path}: committed, but no manifest is here")
        return found

    def _index_ranks(self) -> dict[int, NodeFiles]:
        node_of: dict[int, NodeFiles] = {}
        for files in self._nodes.values():
            for rank in files.ranks():
                if rank in node_of:
                    raise DamagedError(f"{self.path}: two nodes claim rank {rank}")
                node_of[rank] = files
        return node_of

    def _check_whole(self) -> None:
        if not self.complete:
            return
        manifests = self._counted()
        if sum(m.digest for m in manifests) % 2**64 != self._commit.manifests_sum:
            raise DamagedError(f"{self.path}: the manifests are not those that were committed")
        saved = sum(int(m.objects["bytes"].sum()) for m in manifests)
        if len(self._node_of) not in (0, self.ranks) or saved != self.payload_bytes:
            raise DamagedError(f"{self.path}: the manifests do not list what was committed")
        needs = {need for m in manifests for need in m.needs.tolist()}
        named = set(self._commit.needs)
        if not needs <= named or (self._counts_all() and needs != named):
            raise DamagedError(f"{self.path}: the manifests need other versions than was committed")

    def _counts_all(self) -> bool:
        """Whether the record counts the parts of all nodes, and not that of one of several."""
        return self.nodes == 1 or self.level == "durable"

    def _counted(self) -> list:
        """The manifests that the record counts."""
        manifests = [files.manifest for files in self._nodes.values()]
        if self._counts_all():
            return manifests
        return [m for m in manifests if m.digest == self._commit.manifests_sum]

    @property
    def complete(self) -> bool:
        """Whether the files of all nodes are in this folder."""
        return len(self._nodes) == self.nodes

    def _require_complete(self) -> None:
        if not self.complete:
            raise IncompleteError(
                f"{self.path} holds {len(self._nodes)} of {self.nodes} nodes; "
                "read the ranks that are here with rank()"
            )

    def ranks_here(self) -> list[int]:
        return sorted(self._node_of)

    @property
    def needs(self) -> list[int]:
        """Older versions in whose files parts of this one lie."""
        return sorted(
            {int(v) for files in self._nodes.values() for v in files.manifest.needs["version"]}
        )

    # --- captured files ------------------------------------------------------------------------
    def files(self) -> list[CapturedFile]:
        """The files that were captured as they were written, sorted by path.

        Those of the nodes that are here.
        """
        return list(self._captured().values())

    def file(self, path) -> CapturedFile:
        """One of them. A path that is no UTF-8 is bytes."""
        return captured.named(self._captured(), path, self.path)

    def _captured(self) -> dict[bytes, CapturedFile]:
        if self._files is None:
            self._files = captured.latest(
                [
                    one
                    for files in self._nodes.values()
                    for entry in files.of_kind(records.FILES)
                    for one in captured.files_of(files, entry, self.path)
                ]
            )
        return self._files

    # --- reading -------------------------------------------------------------------------------
    def rank(self, number: int) -> RankView:
        """The regions of one rank."""
        self._require_rank(number)
        if self._is_image(number):
            raise NotFoundError(
                f"{self.path}: rank {number} saved its whole process, which has no regions: "
                f"image({number}) reads it"
            )
        if number not in self._views:
            self._views[number] = RankView(self._node_of[number], number, self.path)
        return self._views[number]

    def _require_rank(self, number: int) -> None:
        if number not in self._node_of:
            raise NotFoundError(
                f"{self.path} has no rank {number}"
                if self.complete or not 0 <= number < self.ranks
                else f"{self.path}: rank {number} is on a node whose files are not in this folder"
            )

    def _with_regions(self) -> list[int]:
        return [number for number in self.ranks_here() if not self._is_image(number)]

    def image(self, number: int) -> Image:
        """The whole process of a rank that does not use Backstay itself (`run --transparent`).

        Its memory is read and checked as it is asked for.
        """
        self._require_rank(number)
        if number not in self.images_here():
            raise NotFoundError(f"{self.path}: rank {number} saved regions, not its whole process")
        files = self._node_of[number]
        with as_ours(f"{self.path}: rank {number}"):
            return read_image(ObjectBytes(files, files.entry(number)))

    def images_here(self) -> list[int]:
        """The ranks whose whole process is here."""
        return [number for number in sorted(self._node_of) if self._is_image(number)]

    def _is_image(self, number: int) -> bool:
        if number not in self._images:
            data = ObjectBytes(self._node_of[number], self._node_of[number].entry(number))
            with as_ours(f"{self.path}: rank {number}"):
                long_enough = len(data) >= FOOTER.itemsize
                last = data[len(data) - FOOTER.itemsize : len(data)] if long_enough else None
            self._images[number] = last is not None and is_image(last)
        return self._images[number]

    def regions(self, rank: int) -> list[Region]:
        """Name, type, shape, place of a rank's regions, in the order in which they were saved."""
        return list(self.rank(rank).regions)

    def _holders(self, name: str) -> list[RankView]:
        self._require_complete()
        holders = [view for view in map(self.rank, self._with_regions()) if name in view]
        if not holders:
            raise NotFoundError(f"{self.path} has no region '{name}'")
        return holders

    def __getitem__(self, name: str):
        holders = self._holders(name)
        if all(view.region(name).global_shape is not None for view in holders):
            return self._assembled(name, holders, None)
        if len(holders) == 1:
            return holders[0][name]
        return {view.number: view[name] for view in holders}

    def assemble(self, name: str, fill=None) -> np.ndarray:
        """The global array of a region. Elements that no rank saved are `fill`; without a `fill`
        they are an IncompleteError. Where blocks overlap (halos), the highest rank's is taken."""
        return self._assembled(name, self._holders(name), fill)

    def _assembled(self, name: str, holders: list[RankView], fill) -> np.ndarray:
        regions = [view.region(name) for view in holders]
        first = regions[0]
        if first.global_shape is None:
            raise FormatError(f"{self.path}: '{name}' was not declared as part of a global array")
        if any((r.dtype, r.global_shape) != (first.dtype, first.global_shape) for r in regions):
            raise FormatError(f"{self.path}: the ranks do not agree about the global '{name}'")
        with held_by_numpy(name, first.global_shape):
            missing = _uncovered(regions)
            if missing and fill is None:
                raise IncompleteError(
                    f"{self.path}: at least {missing} elements of '{name}' were saved by no rank"
                )
            out = np.empty(first.global_shape, first.dtype)
        if missing:
            out[...] = fill
        for view, region in zip(holders, regions):
            out[_block(region)] = view.payload(region)
        out.flags.writeable = False
        return out

    def __iter__(self):
        names = {}
        for rank in self._with_regions():
            names.update(dict.fromkeys(self.rank(rank)))
        return iter(names)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name) -> bool:
        return any(name in self.rank(rank) for rank in self._with_regions())

    def verify(self) -> int:
        """Reads and checks every byte of every node that is here; returns the payload's bytes.
        Raises DamagedError for the first fault, IncompleteError if a node is missing."""
        if not checksum.available():
            raise ChecksumsUnavailableError("verify needs the package: pip install xxhash")
        self._require_complete()
        return self._verify_here()

    def _verify_here(self) -> int:
        total = sum(files.verify() for files in self._nodes.values())
        for rank in self.ranks_here():
            if self._is_image(rank):
                self.image(rank)
            else:
                RankView(self._node_of[rank], rank, self.path)
        self._captured()
        return total

    def _look_at_segments(self) -> None:
        for files in self._nodes.values():
            files.look_at_segments()

    def _advise(self, older: str) -> None:
        """What a fault that is found while reading says of another way."""
        for files in self._nodes.values():
            files.advice = (
                f"; the next older version is {older}, "
                "and backstay.open with verify=True takes the newest whole one"
            )

    def __repr__(self) -> str:
        return f"<version {self.number} of '{self.job}', {self.ranks} ranks, {self.level}>"


def _block(region: Region):
    return tuple(slice(o, o + s) for o, s in zip(region.global_offset, region.shape))


def _uncovered(regions: list[Region]) -> int:
    """How many elements of the global array no block covers, at least."""
    total = math.prod(regions[0].global_shape)
    saved = sum(r.bytes // r.dtype.itemsize for r in regions)
    if saved < total:
        # The exact number would need an array of that size, which may be anything.
        return total - saved
    covered = np.zeros(regions[0].global_shape, dtype=bool)
    for region in regions:
        covered[_block(region)] = True
    return total - int(np.count_nonzero(covered))


def version_folders(job_folder) -> list[int]:
    """The numbers of the versions in a job's folder, oldest first, complete or not.
    Raises NotFoundError, UnreadableError."""
    with as_ours(os.fspath(job_folder)):
        matches = (commits.VERSION.match(name) for name in os.listdir(os.fsdecode(job_folder)))
        return sorted(int(match.group(1)) for match in matches if match)


def open_version(
    path, check: bool = True, damaged_ok: bool = False, verify: bool = False
) -> Version:
    """Opens a version's folder, or the newest good version of a job's folder.

    `check`: verify every chunk that is read. `damaged_ok`: open a version that was marked
    as damaged all the same (only with a version's own folder). `verify`: read and check every
    byte first. Without it a damaged chunk is found when it is read; names, lengths and headers
    of all files are checked in any case. From a job's folder a version with a fault is skipped
    with a warning, and the next older one is taken.
    Raises NotFoundError, IncompleteError, DamagedError, UnsupportedError, UnreadableError, and
    with `verify` ChecksumsUnavailableError; no exception that is not a FormatError.
    """
    path = os.path.abspath(os.fsdecode(path))
    if not os.path.isdir(path):
        raise NotFoundError(f"{path} is not a folder")
    with as_ours(path):
        names = os.listdir(path)
    if commits.VERSION.match(os.path.basename(path)) or any(n.startswith("commit.") for n in names):
        version = Version(path, check, damaged_ok)
        if verify:
            _verified(version)
        return version
    return _newest_good(path, check, verify)


def _newest_good(job_folder: str, check: bool, verify: bool) -> Version:
    folders = [
        os.path.join(job_folder, f"v{number:016d}") for number in version_folders(job_folder)
    ]
    unsupported = None
    while folders:
        folder = folders.pop()
        try:
            version = Version(folder, check)
            version._look_at_segments()
            if verify:
                _verified(version)
        except (UncommittedError, NotFoundError):
            continue  # also one that was removed meanwhile
        except (DamagedError, IncompleteError, UnreadableError, UnsupportedError) as error:
            if isinstance(error, UnsupportedError):  # of a newer release, or damage to that number
                unsupported = unsupported or error
            warnings.warn(f"skipped: {error}", stacklevel=4)
            continue
        if folders:
            version._advise(folders[-1])
        return version
    raise unsupported or NotFoundError(f"{job_folder} holds no complete version")


def _verified(version: Version) -> None:
    if not checksum.available():
        raise ChecksumsUnavailableError("verify needs the package: pip install xxhash")
    version._verify_here()
