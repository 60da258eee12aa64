"""`backstay export --vtk`: which regions of a version are points, cells and fields."""

import math
import pathlib
from dataclasses import dataclass

import numpy as np

import backstay
from backstay.format import FormatError, NotFoundError, UncommittedError, version_folders

from .usage import CommandError, say
from .vtk import CELLS, LEGACY_MAX, Array, CellType, Grid, computed, write_legacy, write_pvd
from .vtk import write_vtu


def wrong(message: str) -> CommandError:
    return CommandError("backstay export", message)


@dataclass(frozen=True)
class Held(Array):
    """An array region on all ranks that have it."""

    rows: dict  # {None: first extent} of a whole array, else {rank: first extent}
    row: tuple[int, ...]  # the other extents

    def __str__(self) -> str:
        shape = " x ".join(map(str, (self.shape[0], *self.row)))
        return f"region '{self.name}' ({self.dtype.name} {shape})"


def parts(version, name: str) -> dict:
    data = version[name]
    return data if isinstance(data, dict) else {None: data}


def held(version, name: str) -> Held:
    ranks = sorted(set(version.ranks_here()) - set(version.images_here()))
    views = {rank: version.rank(rank) for rank in ranks}
    found = {rank: view.region(name) for rank, view in views.items() if name in view}
    if not found:
        raise NotFoundError(f"version {version.number} of job {version.job} has no region "
                            f"'{name}'; `backstay show` lists what it has")
    first, placed = next(iter(found.values())), all(one.global_shape for one in found.values())
    shapes = {rank: one.shape for rank, one in found.items()}
    if placed or len(found) == 1:
        shapes = {None: first.global_shape or first.shape}
    kinds = {(one.kind, one.dtype, placed or one.shape[1:]) for one in found.values()}
    if len(kinds) > 1 or first.kind != "array" or not all(shapes.values()):
        raise wrong(f"region '{name}' is no array of one type and shape on all ranks")
    rows, row = {rank: one[0] for rank, one in shapes.items()}, next(iter(shapes.values()))[1:]
    shape = sum(rows.values()), math.prod(row)
    return Held(name, first.dtype, shape, rows=rows, row=row, read=lambda: np.concatenate(
        list(parts(version, name).values())).reshape(shape))


def fields_of(version, asked, points: Held, cells: Held | None) -> list[Held]:
    """The regions that are named, else all arrays with a row for each point or cell."""
    used, found = (asked.points, asked.cells, asked.time), []
    for name in asked.region or [name for name in version if name not in used]:
        try:
            one = held(version, name)
            if one.dtype.kind not in "iuf" or one.rows not in (points.rows, cells and cells.rows):
                raise wrong(f"{one} has no real number for each point of {points}"
                            + (f" or each cell of {cells}" if cells else ""))
            found.append(one)
        except CommandError:
            if asked.region:
                raise
    return found


def corners(version, cells: Held, points: Held) -> np.ndarray:
    """The points of each cell. Where points have no place in a global array, the cells of a rank
    count those of the rank.
    """
    found = []
    for rank, part in parts(version, cells.name).items():
        own = rank is not None and None not in points.rows
        first = sum(n for other, n in points.rows.items() if other < rank) if own else 0
        count = points.rows.get(rank, 0) if own else points.shape[0]
        outside = part[(part < 0) | (part >= count)]
        if outside.size:
            there = f"rank {rank} has {count} of them" if own else f"there are {count}"
            raise wrong(f"{cells} names point {outside[0]} of {points}: {there}, from 0 on")
        found.append(part.astype("<i8") + first)
    return np.concatenate(found)


def type_of(cells: Held, points: Held, asked: CellType | None) -> CellType:
    width = cells.row[0] if len(cells.row) == 1 else 0
    fit = [one for one in ([asked] if asked else CellType) if CELLS[one.value][1] == width]
    if cells.dtype.kind not in "iu" or not fit:
        wanted = CELLS[asked.value][1] if asked else "1, 2, 3, 4, 5, 6 or 8"
        raise wrong(f"{cells} holds no {asked.value if asked else 'cell'}s: they are integers of "
                    f"shape cells x {wanted}, the points of each cell")
    return fit[-1 if points.row[0] == 3 else 0]


def grid_of(version, asked) -> Grid:
    points = held(version, asked.points)
    if points.dtype.kind != "f" or len(points.row) != 1 or not 1 <= points.row[0] <= 3:
        raise wrong(f"{points} holds no points: they are floating-point numbers of shape "
                    "points x 3 (or x 2, x 1)")
    cells = held(version, asked.cells) if asked.cells else None
    kind = type_of(cells, points, asked.cell_type) if cells else CellType.vertex
    fields = fields_of(version, asked, points, cells)
    numbers = corners(version, cells, points) if cells else np.arange(points.shape[0])[:, None]
    if asked.legacy and max(points.shape[0], numbers.size + len(numbers)) > LEGACY_MAX:
        raise wrong(f"{cells or points} is too large for the legacy format")
    places = np.pad(points.read(), ((0, 0), (0, 3 - points.row[0])))
    return Grid(computed("Points", places), numbers, kind,
                [one for one in fields if one.rows == points.rows],
                [one for one in fields if one.rows != points.rows])


def time_of(version, name: str | None) -> float:
    if name is None:
        return version.number
    one, value = held(version, name), next(iter(parts(version, name).values()))
    if value.size != 1 or value.dtype.kind not in "iuf":
        raise wrong(f"{one} is no time: it is not one real number")
    return value.item()


def path_of(job: str, number: int, asked, exporter) -> pathlib.Path:
    return exporter.folder / f"{job}.{number}.{'vtk' if asked.legacy else 'vtu'}"


def write_version(version, asked, exporter) -> None:
    grid, time = grid_of(version, asked), time_of(version, asked.time)
    notes = version.rank(version.ranks_here()[0]).notes
    title = f"{notes.get('program', 'backstay')}: job {version.job}, version {version.number}"
    path = path_of(version.job, version.number, asked, exporter)
    exporter.put(path, lambda file: write_legacy(file, grid, title) if asked.legacy
                 else write_vtu(file, grid))
    exporter.written.append({
        "file": str(path), "version": version.number, "time": time,
        "points": grid.points.shape[0], "cells": len(grid.cells),
        "fields": [one.name for one in [*grid.point_fields, *grid.cell_fields]]})


def export(path, opened, asked, exporter) -> None:
    """One version, or all complete ones with a .pvd. Of all, those that do not fit are left out."""
    if not asked.all_versions:
        return write_version(opened, asked, exporter)
    numbers, listed = version_folders(path), exporter.folder / f"{opened.job}.pvd"
    for file in [path_of(opened.job, number, asked, exporter) for number in numbers]:
        exporter.require_free(file)
    if not asked.legacy:
        exporter.require_free(listed)
    for number in numbers:
        try:
            write_version(backstay.open(path / f"v{number:016d}"), asked, exporter)
        except UncommittedError:
            continue
        except (FormatError, CommandError) as error:
            say(f"backstay: left out: version {number}: {error}")
            exporter.left_out.append({"version": number, "why": str(error)})
    rows = [(one["time"], pathlib.Path(one["file"]).name) for one in exporter.written]
    if rows and not asked.legacy:
        exporter.put(listed, lambda file: write_pvd(file, rows))


def check(vtk: bool, version: int | None, asked, others: dict) -> None:
    """Options that contradict each other."""
    own = {f"--{name.replace('_', '-')}": given for name, given in vars(asked).items()
           if name != "region"}
    if vtk and not asked.points:
        raise wrong("--vtk needs --points, the region that holds the points")
    for name in (name for name, given in (others if vtk else own).items() if given):
        raise wrong(f"{name} has no meaning {'with' if vtk else 'without'} --vtk")
    if asked.all_versions and version is not None:
        raise wrong("--all-versions takes no VERSION")
    if asked.time and (asked.legacy or not asked.all_versions):
        raise wrong("--time is for the .pvd, which --all-versions writes without --legacy")
