"""One exception class a code of backstay.h, all under backstay.Error."""


class Error(RuntimeError):
    """A call of Backstay failed. `code` is the number of backstay.h, the text says what to do."""

    code = 90

    def __init__(self, message: str, code: int | None = None):
        super().__init__(message)
        if code is not None:
            self.code = code


# In the order of backstay.h: by how much is lost.
_NAMES = {
    1: ("NothingSaved", "No version exists."),
    2: ("TryAgain", "Temporary; call again."),
    3: ("Timeout", "The level was not reached in time; it still may be."),
    4: ("InvalidArgument", "An argument is wrong."),
    5: ("WrongState", "A call out of order."),
    6: ("ConfigError", "The configuration is wrong."),
    7: ("JobBusy", "Another run of a job of this name is alive."),
    8: ("Unsupported", "This build or machine cannot do it."),
    9: ("DuplicateName", "The name is protected already."),
    10: ("TooLarge", "Beyond a limit that the message names."),
    11: ("ProtocolError", "Agent and library are of different releases."),
    12: ("PortInUse", "Another process has the network port."),
    13: ("Unreachable", "A node cannot be reached by its name or address."),
    14: ("FewNodes", "Too few nodes for the replicas or parity that are asked for."),
    15: ("NullPointer", "A pointer is NULL."),
    16: ("PathTooLong", "A path is longer than the system allows."),
    20: ("RegionMismatch", "A region is not what was saved."),
    21: ("WrongRanks",
         "The version was saved by another number of ranks, and is not fit for this one."),
    22: ("NotFound", "No such version, rank or region."),
    30: ("StorageError", "The operating system refused a read or write."),
    31: ("NoSpace", "The disk or quota is full."),
    32: ("NotPermitted", "Not allowed; the message names the path."),
    40: ("AgentLost", "An agent died, cannot be started or cannot be reached."),
    41: ("RankLost", "A rank died during the checkpoint."),
    50: ("Corrupt", "Bytes do not match their checksum."),
    51: ("WrongFormat", "Not a file of Backstay, or of a newer format."),
    52: ("DataLost", "More nodes are gone than replicas or parity make up for."),
    90: ("InternalError", "A defect of Backstay."),
}

BY_CODE: dict[int, type[Error]] = {
    code: type(name, (Error,), {"__doc__": text, "__module__": "backstay.errors", "code": code})
    for code, (name, text) in _NAMES.items()
}
globals().update({kind.__name__: kind for kind in BY_CODE.values()})
__all__ = ["Error", "BY_CODE", *(kind.__name__ for kind in BY_CODE.values())]
