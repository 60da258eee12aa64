"""Images of whole processes (docs/format/image.md): what they hold, and their memory.

image = read_image(data)           # bytes, or a numpy array of bytes (np.memmap)
image.areas, image.threads ...     # structured arrays, one record a row
image.text(image.identity["program"])
image.memory(address, 100)         # bytes of the process; zeros where a page is absent
"""

from dataclasses import dataclass

import numpy as np

from . import checksum
from .errors import DamagedError, NotFoundError, UnsupportedError

PAGE_BYTES = 4096
FOOTER = np.dtype(
    [
        ("magic", "S8"),
        ("format", "<u4"),
        ("sections", "<u4"),
        ("table_offset", "<u8"),
        ("table_bytes", "<u8"),
        ("table_checksum", "<u8"),
        ("page_bytes", "<u8"),
        ("zeros", "<u8"),
        ("checksum", "<u8"),
    ]
)
HEADER = np.dtype([("kind", "<u4"), ("record_bytes", "<u4"), ("count", "<u8")])
KINDS = {
    1: "private",
    2: "private file",
    3: "shared file",
    4: "shared memory",
    5: "vdso",
    6: "vdso data",
}


def _fields(wide, *narrow):
    """Fields of 8 bytes, then fields of 4."""
    narrow_names = " ".join(narrow).split()
    return [(name, "<u8") for name in wide.split()] + [(name, "<u4") for name in narrow_names]


SECTIONS = {
    "identity": np.dtype(
        _fields(
            "time_ns code_start code_end data_start data_end brk_start brk_end stack_start "
            "arg_start arg_end env_start env_end"
        )
        + _fields("auxv_start auxv_bytes xfeatures pending")
        + [("rseq_offset", "<i8"), ("rseq_bytes", "<u4")]
        + [("xstate_bytes", "<u4"), ("features", "<u4", 8)]
        + _fields("", "pid uid gid umask program interpreter cwd kernel host notes")
    ),
    "areas": np.dtype(_fields("start end offset object", "kind protection flags file")),
    "runs": np.dtype(_fields("address pages offset version")),
    "files": np.dtype(
        _fields("device inode bytes mtime_ns hash")
        + [("build_id", "u1", 32)]
        + _fields("", "build_id_bytes path")
    ),
    "threads": np.dtype(
        _fields("frame fs gs clear_tid robust_list robust_bytes mask pending")
        + [("registers", "<u8", 18), ("tid", "<u4"), ("flags", "<u4"), ("name", "S16")]
    ),
    "handlers": np.dtype(_fields("handler flags restorer mask")),
    "timers": np.dtype(
        _fields("interval_ns value_ns notify_value", "kind id")
        + [("clock", "<i4")]
        + _fields("", "notify signal tid")
    ),
    "descriptors": np.dtype(
        _fields(
            "offset bytes device inode contents contents_bytes",
            "number kind flags marks same_as path",
        )
    ),
    "contents": np.dtype("u1"),
    "texts": np.dtype("u1"),
}


@dataclass(frozen=True)
class Image:
    data: np.ndarray
    sections: dict

    def __getattr__(self, name):
        try:
            return self.sections[name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def identity(self):
        return self.sections["identity"][0]

    def text(self, offset) -> str:
        raw = self.sections["texts"].tobytes()
        if offset >= len(raw):
            raise DamagedError("image: a text is missing")
        return raw[offset : raw.index(b"\0", offset)].decode(errors="surrogateescape")

    def memory(self, address: int, count: int) -> bytes:
        """Bytes of the process. NotFoundError: a page that came from a file unchanged is absent."""
        for area in self.sections["areas"]:
            if area["start"] <= address and address + count <= area["end"]:
                break
        else:
            raise NotFoundError(f"image: no area holds {count} bytes at {address:x}")
        out = np.zeros(count, "u1")
        found = 0
        for run in self.sections["runs"]:
            begin, end = int(run["address"]), int(run["address"]) + int(run["pages"]) * PAGE_BYTES
            low, high = max(begin, address), min(end, address + count)
            if low < high:
                at = int(run["offset"]) + low - begin
                out[low - address : high - address] = self.data[at : at + high - low]
                found += high - low
        if found < count and area["kind"] != 1 and area["kind"] != 4:
            kind = KINDS[int(area["kind"])]
            raise NotFoundError(f"image: the bytes at {address:x} are a file's ({kind})")
        return out.tobytes()


def _footer(data):
    if len(data) < FOOTER.itemsize:
        raise DamagedError("image: too short to have a footer")
    raw = data[len(data) - FOOTER.itemsize : len(data)]
    footer = raw.view(FOOTER)[0]
    if footer["magic"] != b"BKSTIMG1":
        raise DamagedError("image: its footer does not begin with BKSTIMG1")
    if footer["format"] not in (1, 2):
        raise UnsupportedError(f"image: has format {footer['format']}, this reader knows 1 and 2")
    if not checksum.matches(raw[:-8].tobytes(), int(footer["checksum"])):
        raise DamagedError("image: the footer's checksum does not match")
    if int(footer["table_offset"]) + int(footer["table_bytes"]) + FOOTER.itemsize != len(data):
        raise DamagedError("image: the table is not between the pages and the footer")
    return footer


def is_image(last: np.ndarray) -> bool:
    """Whether these last bytes of an object say that it is an image."""
    return last[-FOOTER.itemsize :][:8].tobytes() == b"BKSTIMG1"


def read_image(data) -> Image:
    """`data`: the object; bytes, or whatever gives arrays of bytes (u1) for slices."""
    data = np.frombuffer(data, "u1") if isinstance(data, bytes | bytearray) else data
    footer = _footer(data)
    table = data[int(footer["table_offset"]) : len(data) - FOOTER.itemsize]
    if not checksum.matches(table.tobytes(), int(footer["table_checksum"])):
        raise DamagedError("image: the table's checksum does not match")
    sections, at = {}, 0
    for kind, (name, dtype) in enumerate(SECTIONS.items(), 1):
        header = table[at : at + HEADER.itemsize].view(HEADER)
        at += HEADER.itemsize
        good = len(header) == 1 and header[0]["kind"] == kind
        if not good or header[0]["record_bytes"] != dtype.itemsize:
            raise DamagedError(f"image: section {name} is not that of an image")
        size = int(header[0]["count"]) * dtype.itemsize
        if size > len(table) - at:
            raise DamagedError(f"image: section {name} is longer than the table")
        sections[name] = table[at : at + size].view(dtype)
        at += (size + 7) // 8 * 8
    if at != len(table) or len(sections["identity"]) != 1:
        raise DamagedError("image: the table's sections are not those of an image")
    return Image(data, sections)
