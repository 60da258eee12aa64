"""Files of the user: text that is read, files that appear whole or not at all. Errors name the file
and what to do.
"""

import contextlib
import errno
import os
import pathlib

READ_MAX = 2**30  # bytes; no log or table comes near, a device without an end would fill the memory
BOM = b"\xef\xbb\xbf"  # in front of the text that Windows programs write

ADVICE = {
    errno.ENOSPC: "make room there, or choose another place",
    errno.EDQUOT: "make room there, or choose another place",
    errno.EFBIG: "raise the limit of file sizes (`ulimit -f`), or choose another place",
    errno.ENOENT: "make the folder first, or choose another place",
    errno.EISDIR: "name a file in it",
    errno.EACCES: "choose a place where you may write",
    errno.EPERM: "choose a place where you may write",
    errno.EROFS: "choose a place on a disk that may be written to",
}


class WriteError(OSError):
    """A file or folder that cannot be written. `str()` is the whole message."""

    def __init__(self, path, cause: OSError):
        reason = cause.strerror or str(cause)
        advice = ADVICE.get(cause.errno, "choose another place")
        super().__init__(cause.errno, reason, str(path))
        self.message = f"{path}: cannot be written: {reason}; {advice}"

    def __str__(self) -> str:
        return self.message


def read_bytes(path, opener=None) -> bytes:
    """All bytes. OSError, with the name of the file, if it cannot be read or holds more than
    READ_MAX.
    """
    try:
        with open(path, "rb", opener=opener) as file:
            return at_most(file, path)
    except OSError as error:
        raise error if error.filename is not None else OSError(error.errno, error.strerror,
            str(path)) from None


def at_most(file, path) -> bytes:
    """All that an open file holds. OSError about `path` if it is more than READ_MAX."""
    data = bytearray()
    while part := file.read(2**20):
        data += part
        if len(data) > READ_MAX:
            raise OSError(errno.EFBIG, f"larger than {READ_MAX >> 20} MiB", str(path))
    return bytes(data)


def read_text(path) -> str:
    """Text in UTF-8, without a byte order mark. OSError with the file's name, or
    UnicodeDecodeError.
    """
    return read_bytes(path).removeprefix(BOM).decode("utf-8")


def check(path) -> None:
    """WriteError if `path` cannot be a file that is written: it is a folder, or its folder is not
    there.
    """
    file = pathlib.Path(path)
    try:
        if file.is_dir():
            raise IsADirectoryError(errno.EISDIR, "it is a folder")
        if not file.parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, f"there is no folder {file.parent}")
    except OSError as error:
        raise WriteError(file, error) from None


def make_folder(path) -> None:
    """Makes the folder and those above it. WriteError names the obstacle."""
    try:
        pathlib.Path(path).mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise WriteError(path, NotADirectoryError(errno.ENOTDIR, "it is not a folder")) from None
    except OSError as error:
        raise WriteError(path, error) from None


@contextlib.contextmanager
def whole(path):
    """The path to write to, under another name until the block ends: a file that is there can be
    used.

    A link stays one; a device or a pipe is written to, not replaced. What was begun is removed if
    the block fails; its OSError becomes a WriteError.
    """
    check(path)
    target = pathlib.Path(path)
    in_place = target.exists() and not target.is_file()
    target = target if in_place else target.resolve()
    begun = target if in_place else target.with_name(f".backstay-{os.getpid()}.tmp")
    try:
        if not in_place:
            # A link there would be followed, and its file overwritten.
            begun.unlink(missing_ok=True)
        yield begun
        if not in_place:
            os.replace(begun, target)
    except BaseException as error:
        if not in_place:
            with contextlib.suppress(OSError):
                begun.unlink()
        if isinstance(error, OSError):
            raise WriteError(path, error) from error
        raise
