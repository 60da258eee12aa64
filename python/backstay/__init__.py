"""Backstay: fast, safe checkpoints for long-running programs.

    import backstay
    with backstay.init(comm):                       # an mpi4py communicator; none: one process
        backstay.protect("u", u)
        version = backstay.restart()                # None: nothing saved yet
        while ...:
            if backstay.due(): backstay.checkpoint()

backstay.open(path) reads a version from its files; it needs numpy and no compiled part. Nothing is
imported before it is used, so the command line does not pay for numpy.
"""

import importlib

_HOMES = {
    "session": ("Level", "Session", "init", "protect", "unprotect", "due", "stop_requested",
                "checkpoint",
                "version", "test", "wait", "restart", "read_region", "route_file", "release",
                "finalize"),
    "stream": ("open_stream", "streams", "read_stream"),
    "format": ("open",),
}  # fmt: skip
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

from . import errors  # noqa: E402
from .errors import Error  # noqa: E402

__all__ = ["Error", "errors", *_HOME_OF]


def __getattr__(name: str):
    if name in errors.__all__:
        return getattr(errors, name)
    if name not in _HOME_OF:
        raise AttributeError(f"module 'backstay' has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_HOME_OF[name]}", __name__), name)


def __dir__():
    return sorted({*globals(), *__all__})
