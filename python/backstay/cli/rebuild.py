"""Captured files of a version, made again below a folder.

See docs/format/files.md, "Bringing a file back".
"""

import os
import pathlib

from ..plan import files


def place_of(folder: pathlib.Path, path: bytes) -> pathlib.Path:
    """Where a captured file goes. The format lets no path lead out of the folder."""
    return folder / os.fsdecode(path[1:])


def rebuild(file, target: pathlib.Path) -> None:
    """Written under a temporary name, then renamed, with mode and times; a hole takes no room.

    Raises WriteError and FormatError.
    """
    files.make_folder(target.parent)
    with files.whole(target) as begun, open(begun, "wb") as out:
        for offset, data in file.blocks():
            out.seek(offset)
            out.write(data)
        out.flush()
        os.ftruncate(out.fileno(), file.size)
        os.fchmod(out.fileno(), file.mode)
        os.utime(out.fileno(), ns=(file.accessed_ns, file.modified_ns))
        os.fsync(out.fileno())
