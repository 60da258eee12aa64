"""The session of a Python program with its agent: backstay.h, with arrays and exceptions.

One session a process; calls from one thread at a time; collective calls on all ranks in the same
order. A protected array is kept alive until it is unprotected or the session ends.
"""

import operator
import pathlib
import sys
from collections.abc import Sequence
from enum import IntEnum

import numpy as np

try:
    from . import _session as _c
except ImportError as missing:
    raise ImportError(
        "the compiled part of the package backstay is missing: run `pip install .` in its source "
        "tree, or `make build` to use it from there"
    ) from missing
from .communicator import MpiGroup
from .errors import BY_CODE, Error, NothingSaved


class Level(IntEnum):
    """How safe a version is."""

    CAPTURED = 1
    LOCAL = 2
    PROTECTED = 3
    DURABLE = 4


# numpy's type character and size -> backstay_type
_TYPES = {
    "b1": 1, "i1": 2, "i2": 3, "i4": 4, "i8": 5, "u1": 6, "u2": 7, "u4": 8, "u8": 9,
    "f4": 10, "f8": 11, "c8": 12, "c16": 13,
}  # fmt: skip

_DIMS_MAX = _c.DIMS_MAX

_regions: dict[str, np.ndarray] = {}
_group: MpiGroup | None = None


def _check(code: int) -> None:
    if code:
        raise BY_CODE.get(code, Error)(_c.error_message() or _c.strerror(code), code)


def _type_of(array: np.ndarray) -> int:
    kind = f"{array.dtype.kind}{array.dtype.itemsize}"
    if kind not in _TYPES or not array.dtype.isnative:
        raise TypeError(f"{array.dtype} has no counterpart; protect array.view(numpy.uint8) instead")
    return _TYPES[kind]


def _text(what: str, value) -> str:
    """Said here, because the compiled part would answer with its own signature."""
    if not isinstance(value, str):
        raise TypeError(f"{what}: a string is needed, not {type(value).__name__}")
    if "\0" in value:
        raise ValueError(f"{what}: it holds a zero byte")
    return value


def _whole(what: str, value) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{what}: a whole number is needed, not {type(value).__name__}") from None


def _version_number(value) -> int:
    number = _whole("version", value)
    if not 0 <= number < 1 << 64:
        raise ValueError(f"version: {number} is no version's number")
    return number


def _extents(what: str, values) -> list[int]:
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise TypeError(f"{what}: a sequence of whole numbers is needed, "
                        f"not {type(values).__name__}")
    numbers = [_whole(what, value) for value in values]
    for number in numbers:
        if not 0 <= number < 1 << 64:
            raise ValueError(f"{what}: {number} is no number of elements")
    return numbers


def _level(value) -> int:
    number = _whole("level", value)
    if number not in list(Level):
        raise ValueError(f"level: {number} is none; take Level.LOCAL, PROTECTED or DURABLE")
    return number


def _seconds(value) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"timeout_s: a number is needed, not {value!r}") from None


def _memory(what: str, array) -> np.ndarray:
    if not isinstance(array,
                      np.ndarray) or not array.flags.c_contiguous or not array.flags.writeable:
        raise TypeError(f"{what}: a writable, C-contiguous numpy array is needed")
    return _whole_array(what, array)


def _whole_array(what: str, array: np.ndarray) -> np.ndarray:
    """Refuses kinds that keep a mask beside their data: numpy.ma, astropy's Masked."""
    if getattr(type(array), "mask", None) is not None:
        raise TypeError(f"{what}: the mask of a {type(array).__name__} would be lost; set "
                        "a.mask = numpy.ma.getmaskarray(a), then give a.data and a.mask, each as "
                        "an array of its own")
    return array


def _program_name() -> str | None:
    """heat for heat.py, and pack for `python -m pack`; None if the interpreter has no script."""
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    if script is None:
        return None
    path = pathlib.Path(script).absolute()
    return path.parent.name if path.stem == "__main__" else path.stem


class Session:
    """The result of init(): ends the session at the end of a `with` block.

    If an exception ends the block, or sys.exit() with another code than 0, the session is
    abandoned: it does not wait, and the run does not count as finished.
    """

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, _, error, __) -> None:
        left_on_purpose = isinstance(error, SystemExit) and error.code in (None, 0)
        if error is None or left_on_purpose:
            finalize()
        else:
            _abandon()


def _abandon() -> None:
    """The communicator is not freed: the other ranks need not come here."""
    global _group
    _c.abandon()
    _regions.clear()
    _group = None


def init(comm=None, config: str | None = None) -> Session:
    """Starts the session; collective over `comm`, a communicator of mpi4py, if one is given.

    Where no job.name is configured, the job is named after the script: heat for heat.py.
    """
    global _group
    path = None if config is None else str(config)
    if name := _program_name():
        _c.name_program(name)
    if comm is None:
        _check(_c.init(path))
        return Session()
    group = MpiGroup(comm)
    code = _c.init_group(list(group.position), group.broadcast, group.minimum, path)
    if code:
        group.free()
    _check(code)
    _group = group
    return Session()


def protect(name: str, array: np.ndarray, global_shape: Sequence[int] = (),
            global_offset: Sequence[int] | None = None) -> None:
    """Makes an array part of every later version. It must be writable and C-contiguous.

    A number that changes goes into an array of one element. With `global_shape` (and the offset of
    this rank's block in it) the place in a global array is saved too.
    """
    _memory(_text("name of a region", name), array)
    shape = list(array.shape) if array.ndim else [1]
    if len(shape) > _DIMS_MAX:
        raise ValueError(f"{name}: {len(shape)} dimensions; at most {_DIMS_MAX} are saved, reshape "
                         f"the array")
    whole = _extents(f"{name}: global_shape", global_shape)
    offset = ([0] * len(whole) if global_offset is None
              else _extents(f"{name}: global_offset", global_offset))
    if len(whole) not in (0, len(shape)) or len(offset) != len(whole):
        raise ValueError(f"{name}: global_shape and global_offset need {len(shape)} numbers each")
    address = array.ctypes.data if array.size else 0
    _check(_c.protect(name, address, _type_of(array), shape, whole, offset))
    _regions[name] = array


def unprotect(name: str) -> None:
    """Forgets a region; its data in earlier versions stays."""
    _check(_c.unprotect(_text("name of a region", name)))
    _regions.pop(name, None)


def due() -> bool:
    """Collective. True if a checkpoint should be taken now; the same answer on all ranks."""
    return bool(_c.due())


def stop_requested() -> bool:
    """Collective. True if the job was asked to end after its next checkpoint."""
    return bool(_c.stop_requested())


def checkpoint() -> int:
    """Collective. Saves all protected arrays and routed files; returns the new version's number."""
    _check(_c.checkpoint())
    return _c.version()


def version() -> int:
    """The newest version that this run captured or restarted from; 0 if none."""
    return _c.version()


def test(version: int) -> Level | None:
    """The level that a version has now; None if none yet."""
    code, level = _c.test(_version_number(version))
    _check(code)
    return Level(level) if level else None


def wait(version: int, level: Level = Level.LOCAL, timeout_s: float = -1) -> None:
    """Blocks until a version has the level; raises Timeout after `timeout_s` (negative: never).

    A version that an earlier run saved on several nodes has at most LOCAL, or DURABLE; waiting for
    PROTECTED of it raises.
    """
    _check(_c.wait(_version_number(version), _level(level), _seconds(timeout_s)))


def restart() -> int | None:
    """Collective. Brings arrays and files back; the version's number, or None if none was saved."""
    code = _c.restart()
    if code == NothingSaved.code:
        return None
    _check(code)
    return _c.version()


def read_region(version: int, name: str, out: np.ndarray) -> np.ndarray:
    """Reads one region of an old version of this rank into `out`, whose size must be what was
    saved.
    """
    _memory("out", out)
    _check(_c.read_region(_version_number(version), _text("name of a region", name),
                          out.ctypes.data, out.nbytes))
    return out


def route_file(name: str) -> str:
    """The path at which the program shall write its file `name`, so that versions contain it."""
    code, path = _c.route_file(_text("name of a file", name))
    _check(code)
    return path


def release() -> str:
    """The library's release, "0.1.0"."""
    return _c.release()


def finalize() -> None:
    """Collective. Ends the session; the agent goes on and brings captured versions to their level.
    """
    global _group
    code = _c.finalize()
    if code == 0:
        _regions.clear()
        if _group is not None:
            _group.free()
        _group = None
    _check(code)
