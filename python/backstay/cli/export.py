"""`backstay export`: regions of a version as files that any program reads.

Captured files come out as they were, saved processes as core files for debuggers.
"""

import json
import os
import pathlib
import re
from enum import Enum
from types import SimpleNamespace
from typing import Annotated, Optional

import numpy as np
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

import backstay
from backstay.format import ShapeError
from backstay.format.core import write_core

from ..plan import files
from . import export_vtk
from .ranges import Range, range_of
from .rebuild import place_of, rebuild
from .usage import on_terminal, printable, say
from .vtk import CellType

EPILOG = """\b
Examples:
  backstay export lj --region x -o out                  out/x.npy, or one file a rank
  backstay export lj 12 --format raw -o out             everything, as plain bytes
  backstay export lj --file /scratch/dump.bin -o out    out/files/scratch/dump.bin
  backstay export app -o out                            out/rank-00000.core, for a debugger,
                                                        of what `run --transparent` saved
  backstay export wave --vtk --points xyz --cells cells --all-versions -o out
                                                        out/wave.pvd, for ParaView

Exit codes: 0 ok, 1 could not be written, 2 wrong usage, 3 no such job, version or region, 4
damaged."""


class Format(str, Enum):
    npy = "npy"
    raw = "raw"


def file_name(region: str) -> str:
    """A region's name as a file name: other characters as %XX of their UTF-8 bytes."""
    safe = "".join(c if re.match(r"[A-Za-z0-9._-]", c)
                   else "".join(f"%{b:02X}" for b in c.encode()) for c in region)
    return "%2E" + safe[1:] if safe.startswith(".") else safe


def version_path(job: str, number: Optional[int]) -> pathlib.Path:
    folder = pathlib.Path(os.environ.get("BACKSTAY_DIR")
                          or f"/var/tmp/backstay-{os.environ.get('USER', 'root')}")
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}", job):
        raise typer.BadParameter(f"{job!r} is no name of a job")
    path = folder / job
    if number is not None:
        path /= f"v{number:016d}"
    if not path.is_dir():
        what = f"version {number} of job {job}" if number is not None else f"job {job}"
        raise backstay.format.NotFoundError(
            f"no {what} under {folder}; `backstay ls` lists what there is")
    return path


def make_folder(folder: pathlib.Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = error.strerror or str(error)
        raise OSError(
            f"the folder {folder} cannot be made: {why}; choose another one with -o"
        ) from None


def is_file_everywhere(version, name: str) -> bool:
    """A routed file or a stream keeps its bytes and its name; .npy would only be in the way."""
    views = [version.rank(rank) for rank in version.ranks_here()]
    return all(view.region(name).kind in ("file", "stream") for view in views if name in view)


class Exporter:
    def __init__(self, folder: pathlib.Path, form: Format, force: bool, progress: Progress, task):
        self.folder, self.form, self.force = folder, form, force
        self.progress, self.task = progress, task
        self.written: list[dict] = []
        self.rebuilt: list[dict] = []
        self.left_out: list[dict] = []
        self.processes: list[dict] = []

    def captured(self, file) -> None:
        path = place_of(self.folder / "files", file.path)
        self.require_free(path)
        rebuild(file, path)
        self.progress.advance(self.task, file.size)
        self.rebuilt.append(
            {
                "file": str(path),
                "path": file.path.decode("utf-8", "backslashreplace"),
                "owner": file.owner,
                "mode": file.mode,
                "bytes": file.size,
            }
        )

    def process(self, image, rank: int, wanted: list[Range]) -> None:
        """As a core file; or only these ranges of its memory, as plain bytes."""
        if not wanted:
            self._process(f"rank-{rank:05d}.core", rank, lambda file: write_core(image, file))
        for one in wanted:
            data = image.memory(one.address, one.bytes)
            self._process(f"rank-{rank:05d}.{one.address:012x}.raw", rank,
                          lambda file, data=data: file.write(data))  # fmt: skip

    def put(self, path: pathlib.Path, write) -> None:
        """A file, whole or not at all."""
        make_folder(self.folder)
        self.require_free(path)
        with files.whole(path) as begun, open(begun, "wb") as file:
            write(file)

    def _process(self, name: str, rank: int, write) -> None:
        path = self.folder / name
        self.put(path, write)
        size = path.stat().st_size
        self.progress.advance(self.task, size)
        self.processes.append({"file": str(path), "rank": rank, "bytes": size})

    def require_free(self, path) -> None:
        if not self.force and os.path.lexists(path):
            raise FileExistsError(
                f"{path} exists already; --force replaces it, -o writes to another folder"
            )

    def array(self, stem: str, data: np.ndarray, region: str, rank: Optional[int]) -> None:
        def write(file):
            if self.form is Format.npy:
                # Not into the file itself: numpy would write past Python's, and lose why the disk
                # refuses.
                np.save(SimpleNamespace(write=file.write), data, allow_pickle=False)
            else:
                file.write(np.ascontiguousarray(data).tobytes())

        self._write(self.folder / f"{stem}.{self.form.value}", write, data, region, rank)

    def plain(self, stem: str, data: np.ndarray, region: str, rank: Optional[int]) -> None:
        self._write(self.folder / stem, lambda file: file.write(data.tobytes()), data, region, rank)

    def _write(self, path: pathlib.Path, write, data, region, rank) -> None:
        self.put(path, write)
        self.progress.advance(self.task, data.nbytes)
        self.written.append(
            {
                "file": str(path),
                "region": region,
                "rank": rank,
                "type": data.dtype.name,
                "shape": list(data.shape),
                "bytes": data.nbytes,
            }
        )

    def region(self, version, name: str, rank: Optional[int]) -> None:
        try:
            self._region(version, name, rank)
        except ShapeError as error:  # says nothing about the other regions
            say(f"backstay: left out: {error}")
            self.left_out.append({"region": name, "why": str(error)})

    def _region(self, version, name: str, rank: Optional[int]) -> None:
        parts = version[name] if rank is None else {rank: version.rank(rank)[name]}
        as_files = is_file_everywhere(version, name)
        if not isinstance(parts, dict):
            parts = {None: parts}
        for number, data in parts.items():
            stem = file_name(name)
            # A routed file's name differs between ranks already.
            if number is not None and not (as_files and len(parts) == 1):
                stem += f".rank-{number:05d}"
            (self.plain if as_files else self.array)(stem, data, name, number)


def regions_wanted(opened, region, file, rank) -> list[str]:
    """Those that are named; none where only files are named; else all."""
    if region or file:
        return region or []
    if rank is not None and rank in opened.images_here():
        return []
    if rank is not None and (rank in opened.ranks_here() or not captured_of(opened, rank)):
        return list(opened.rank(rank))
    return list(opened) if rank is None else []


def files_wanted(opened, region, file, rank) -> list:
    if file:
        return [opened.file(os.fsencode(path)) for path in file]
    return [] if region else captured_of(opened, rank)


def processes_wanted(opened, region, file, rank, ranges) -> list[int]:
    """Ranks whose whole process was saved."""
    here = [one for one in opened.images_here() if rank is None or one == rank]
    if ranges and not here:
        raise backstay.format.NotFoundError(
            f"version {opened.number} of job {opened.job} holds no process, so --range has no "
            "meaning; --region names what it holds (backstay show)"
        )
    return [] if region or file else here


def captured_of(opened, rank) -> list:
    return [one for one in opened.files() if rank is None or one.owner == f"rank {rank}"]


def bar() -> Progress:
    return Progress(
        TextColumn("export"),
        BarColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        transient=True,
        disable=not on_terminal(),
        console=Console(stderr=True),
    )


def command(
    job: Annotated[str, typer.Argument(metavar="JOB", help="Name of the job")],
    version: Annotated[Optional[int],
                       typer.Argument(metavar="[VERSION]", min=1,
                                      help="Default: the newest")] = None,
    region: Annotated[Optional[list[str]],
                      typer.Option("--region", help="Only this one; may be repeated")] = None,
    file: Annotated[Optional[list[str]],
                    typer.Option("--file", help="Only this captured file; may be repeated")] = None,
    ranges: Annotated[Optional[list[Range]],
                      typer.Option("--range", parser=range_of, metavar="ADDRESS+BYTES",
                                   help="Of a saved process only these bytes, the address as "
                                        "`backstay show` has it; may be repeated")] = None,
    rank: Annotated[Optional[int],
                    typer.Option("--rank", min=0, help="Only what this rank saved")] = None,
    output: Annotated[pathlib.Path,
                      typer.Option("-o", "--output",
                                   help="Folder; made if missing")] = pathlib.Path("."),
    form: Annotated[Format,
                    typer.Option("--format",
                                 help="npy, or raw: plain bytes, row-major")] = Format.npy,
    vtk: Annotated[bool,
                   typer.Option("--vtk",
                                help="For ParaView and VisIt, JOB.VERSION.vtu: --region names "
                                     "fields; default: all with a row for each point or "
                                     "cell")] = False,
    points: Annotated[Optional[str],
                      typer.Option("--points", metavar="REGION",
                                   help="Points: x, y, z in a row (or x, y, or x)")] = None,
    cells: Annotated[Optional[str],
                     typer.Option("--cells", metavar="REGION",
                                  help="Cells: in a row the numbers of a cell's points, from 0 "
                                       "on, in VTK's order; default: points alone")] = None,
    cell_type: Annotated[Optional[CellType],
                         typer.Option("--cell-type",
                                      help="Default: by the length of a row; 4 are a tetra, of "
                                           "flat points a quad")] = None,
    legacy: Annotated[bool, typer.Option("--legacy", help="VTK's legacy format, .vtk")] = False,
    all_versions: Annotated[bool,
                            typer.Option("--all-versions",
                                         help="Each complete version, and a JOB.pvd that lists "
                                              "them")] = False,
    time: Annotated[Optional[str],
                    typer.Option("--time", metavar="REGION",
                                 help="The time in it, such as the step; default: the "
                                      "version")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist")] = False,
    directory: Annotated[Optional[str],
                         typer.Option("--dir", help="Folder of the versions (storage.dir)")] = None,
    config: Annotated[Optional[str], typer.Option("--config", help="Configuration file")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON")] = False,
) -> None:
    """Write regions of a version as .npy or raw files, and captured files as they were.

    A region whose place in a global array was declared becomes one file; others one file a rank.
    Captured files are made again under their paths, below `files` in the output folder, with mode
    and times. A process that `run --transparent` saved becomes a core file. Every byte is checked
    against its checksum on the way. With --vtk the regions of a mesh become a file for ParaView;
    points, cells and one field at a time have to fit into memory.
    """
    del config  # `backstay` has read it and set BACKSTAY_DIR
    if directory is not None:
        os.environ["BACKSTAY_DIR"] = directory
    asked = SimpleNamespace(points=points, cells=cells, cell_type=cell_type, legacy=legacy,
                            all_versions=all_versions, time=time, region=region)
    export_vtk.check(vtk, version, asked, {"--file": file, "--range": ranges, "--rank": rank
                                           is not None, "--format raw": form is Format.raw})
    path = version_path(job, version)
    opened = backstay.open(path)
    with bar() as progress:
        exporter = Exporter(output, form, force, progress,
                            progress.add_task("export", total=opened.payload_bytes))
        if vtk:
            export_vtk.export(path, opened, asked, exporter)
        else:
            export(exporter, opened, region, file, rank, ranges)
    show(exporter, opened, as_json)


def export(exporter: Exporter, opened, region, file, rank, ranges) -> None:
    names = regions_wanted(opened, region, file, rank)
    captured = files_wanted(opened, region, file, rank)
    processes = processes_wanted(opened, region, file, rank, ranges)
    make_folder(exporter.folder)
    for name in names:
        exporter.region(opened, name, rank)
    for one in captured:
        exporter.captured(one)
    for number in processes:
        exporter.process(opened.image(number), number, ranges or [])


def show(exporter: Exporter, opened, as_json: bool) -> None:
    if as_json:
        result = {
            "job": opened.job,
            "version": opened.number,
            "files": exporter.written,
            "captured": exporter.rebuilt,
            "processes": exporter.processes,
            "left_out": exporter.left_out,
        }
        print(json.dumps(result, indent=2))
    for one in exporter.written if not as_json else ():
        what = " x ".join(map(str, one["shape"])) if "shape" in one else (
            f"points, {one['cells']} cells; {', '.join(one['fields']) or 'no field'}")
        print(printable(f"{one['file']}  {one.get('type', one.get('points'))} {what}"))
    for one in exporter.rebuilt if not as_json else ():
        print(printable(f"{one['file']}  {one['bytes']} bytes"))
    for one in exporter.processes if not as_json else ():
        print(printable(f"{one['file']}  {one['bytes']} bytes"))
    if exporter.left_out:
        raise typer.Exit(1)
