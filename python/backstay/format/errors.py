"""What can go wrong when a version is read. Every exception of this package is a FormatError."""


class FormatError(Exception):
    """Something could not be read; the message names the file."""


class NotFoundError(FormatError, KeyError):
    """No such version, node, rank or region."""

    def __str__(self) -> str:  # KeyError would quote the message
        return str(self.args[0]) if self.args else ""


class IncompleteError(FormatError):
    """The version, or a global array of it, is not all here."""


class DamagedError(FormatError):
    """Bytes are not what was written, or were marked as damaged."""


class UnsupportedError(FormatError):
    """Of a newer format than this reader knows."""


class ShapeError(FormatError):
    """An array that this machine's numpy cannot hold: too large, or of a shape beyond its limits."""


class ChecksumsUnavailableError(FormatError):
    """The `xxhash` package is missing, so nothing can be verified."""


class ChecksumsSkippedWarning(UserWarning):
    """Data is read without verification because the `xxhash` package is missing."""
