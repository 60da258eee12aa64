"""What can go wrong when a version is read. Every exception that leaves this package is a FormatError."""

import contextlib


class FormatError(Exception):
    """Something could not be read; the message names the file."""


class NotFoundError(FormatError, KeyError):
    """No such version, node, rank or region."""

    def __str__(self) -> str:  # KeyError would quote the message
        return str(self.args[0]) if self.args else ""


class IncompleteError(FormatError):
    """The version, or a global array of it, is not all here."""


class UncommittedError(IncompleteError):
    """No commit record: what a crash left, or a version that is being written."""


class DamagedError(FormatError):
    """Bytes are not what was written, or were marked as damaged."""


class UnsupportedError(FormatError):
    """Of a newer format than this reader knows."""


class UnreadableError(FormatError):
    """The system refused to read it: permission, a disk's error, memory. `__cause__` is what Python said."""


class ShapeError(FormatError):
    """An array that this machine's numpy cannot hold: too large, or of a shape beyond its limits."""


class ChecksumsUnavailableError(FormatError):
    """The `xxhash` package is missing, so nothing can be verified."""


class ChecksumsSkippedWarning(UserWarning):
    """Data is read without verification because the `xxhash` package is missing."""


@contextlib.contextmanager
def as_ours(what: str):
    """What the system says while `what` is read, as an error of this package."""
    try:
        yield
    except FileNotFoundError as error:
        raise NotFoundError(f"{error.filename or what}: was removed while it was read") from error
    except OSError as error:
        raise UnreadableError(f"{error.filename or what}: cannot be read ({error.strerror or error})") from error
    except MemoryError as error:
        raise UnreadableError(f"{what}: reading it needs more memory than this process may take") from error
