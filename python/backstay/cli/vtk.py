"""Files of VTK: cells between points, as VTU or in the legacy format."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

import numpy as np

from .usage import printable

XML_TYPES = {"i": "Int", "u": "UInt", "f": "Float"}
LEGACY_TYPES = {"i1": "char", "u1": "unsigned_char", "i2": "short", "u2": "unsigned_short",
                "i4": "int", "u4": "unsigned_int", "i8": "vtktypeint64", "u8": "vtktypeuint64",
                "f4": "float", "f8": "double"}
LEGACY_MAX = 2**31 - 1  # numbers of its cells, which have 32 bits
TITLE_MAX = 250
# VTK's number of a type of cells, and how many points a cell has
CELLS = {"vertex": (1, 1), "line": (3, 2), "triangle": (5, 3), "quad": (9, 4), "tetra": (10, 4),
         "pyramid": (14, 5), "wedge": (13, 6), "hexahedron": (12, 8)}
CellType = Enum("CellType", {name: name for name in CELLS}, type=str)


@dataclass(frozen=True)
class Array:
    """A row of numbers for each point or cell. It is read when it is written: the memory holds one
    field at a time.
    """

    name: str
    dtype: np.dtype
    shape: tuple[int, int]
    read: Callable[[], np.ndarray]

    def write(self, file, order: str) -> None:
        file.write(np.ascontiguousarray(self.read(), self.dtype.newbyteorder(order)))


@dataclass(frozen=True)
class Grid:
    points: Array
    cells: np.ndarray  # a row of points each
    cell_type: CellType
    point_fields: list[Array]
    cell_fields: list[Array]

    def types(self, dtype: str) -> np.ndarray:
        return np.full(len(self.cells), CELLS[self.cell_type.value][0], dtype)


def computed(name: str, data: np.ndarray) -> Array:
    return Array(name, data.dtype, (*data.shape, 1)[:2], lambda: data)


def write_vtu(file, grid: Grid) -> None:
    """All arrays stand as plain bytes behind the text, each behind its length."""
    count, corners = grid.cells.shape
    cells = [computed("connectivity", grid.cells.reshape(-1)), computed("types", grid.types("u1")),
             computed("offsets", np.arange(1, count + 1) * corners)]
    text = ('<?xml version="1.0"?>\n<VTKFile type="UnstructuredGrid" version="1.0" '
            'byte_order="LittleEndian" header_type="UInt64">\n<UnstructuredGrid>\n'
            f'<Piece NumberOfPoints="{grid.points.shape[0]}" NumberOfCells="{count}">\n')
    written, offset = [], 0
    for section, arrays in {"PointData": grid.point_fields, "CellData": grid.cell_fields,
                            "Points": [grid.points], "Cells": cells}.items():
        text += f"<{section}>\n"
        for one in arrays:
            length = one.shape[0] * one.shape[1] * one.dtype.itemsize
            text += (f'<DataArray type="{XML_TYPES[one.dtype.kind]}{8 * one.dtype.itemsize}" '
                     f'Name={quoteattr(printable(one.name))} '
                     f'NumberOfComponents="{one.shape[1]}" format="appended" offset="{offset}"/>\n')
            written.append((one, length))
            offset += 8 + length
        text += f"</{section}>\n"
    file.write(f'{text}</Piece>\n</UnstructuredGrid>\n<AppendedData encoding="raw">\n_'.encode())
    for one, length in written:
        file.write(length.to_bytes(8, "little"))
        one.write(file, "<")
    file.write(b"\n</AppendedData>\n</VTKFile>\n")


def write_legacy(file, grid: Grid, title: str) -> None:
    """A header with the program's name, points, cells and their types, then field after field."""

    def put(heading: str, array: Array) -> None:
        file.write(f"{heading}\n".encode())
        array.write(file, ">")
        file.write(b"\n")

    title = printable(title)[:TITLE_MAX].encode("ascii", "replace").decode()
    rows = np.insert(grid.cells.astype("i4"), 0, grid.cells.shape[1], axis=1)
    put(f"# vtk DataFile Version 3.0\n{title}\nBINARY\nDATASET UNSTRUCTURED_GRID\n"
        f"POINTS {grid.points.shape[0]} {LEGACY_TYPES[grid.points.dtype.str[1:]]}", grid.points)
    put(f"CELLS {len(rows)} {rows.size}", computed("", rows))
    put(f"CELL_TYPES {len(rows)}", computed("", grid.types("i4")))
    for section, fields in (("POINT_DATA", grid.point_fields), ("CELL_DATA", grid.cell_fields)):
        for one in fields:
            (count, width), kind = one.shape, LEGACY_TYPES[one.dtype.str[1:]]
            name = quote(one.name, safe="")  # a blank would end it; VTK turns %20 back
            heading = {1: f"SCALARS {name} {kind} 1\nLOOKUP_TABLE default",
                       3: f"VECTORS {name} {kind}"}.get(
                           width, f"FIELD FieldData 1\n{name} {width} {count} {kind}")
            put(f"{section} {count}\n{heading}" if one is fields[0] else heading, one)


def write_pvd(file, files: list[tuple[float, str]]) -> None:
    """A list of files with a time each."""
    rows = [f'<DataSet timestep="{time}" file="{name}"/>\n' for time, name in files]
    file.write(('<?xml version="1.0"?>\n<VTKFile type="Collection" version="1.0">\n<Collection>\n'
                f"{''.join(rows)}</Collection>\n</VTKFile>\n").encode())
