"""Reads versions with numpy alone, as docs/format describes them.

v = backstay.open("/var/tmp/backstay-me/heat")     # newest version of the job
v["u"]                                             # array, global array, or dict by rank
v.rank(3)["u"]                                     # of one rank
v.regions(0)                                       # names, types, shapes, places
v.files()                                          # captured files: path, size, mode, times
v.file("/run/out.bin").read()                      # bytes of one
v.image(0).memory(0x7f0012345000, 100)             # of a process saved by run --transparent
v.verify()                                         # every byte against its checksum
"""

from .captured import CapturedFile
from .errors import (
    ChecksumsSkippedWarning,
    ChecksumsUnavailableError,
    DamagedError,
    FormatError,
    IncompleteError,
    NotFoundError,
    ShapeError,
    UncommittedError,
    UnreadableError,
    UnsupportedError,
)
from .image import Image
from .rank_view import RankView
from .records import Region
from .version import Version, version_folders
from .version import open_version as open

__all__ = [
    "CapturedFile",
    "ChecksumsSkippedWarning",
    "ChecksumsUnavailableError",
    "DamagedError",
    "FormatError",
    "Image",
    "IncompleteError",
    "NotFoundError",
    "RankView",
    "Region",
    "ShapeError",
    "UncommittedError",
    "UnreadableError",
    "UnsupportedError",
    "Version",
    "open",
    "version_folders",
]
