"""A log of any known format."""

from ..check import PlanError
from . import infinitehbd, lanl, plain, slurm, text
from .log import Log, Rows

FORMATS = (infinitehbd, lanl, slurm, plain)


def log(path, system: str | None = None) -> Log:
    """The log in a file; its first line says the format. `system`: which one, in files that hold
    several.

    Raises OSError if the file cannot be read, PlanError about `trace` (with line and column) or
    `system`.
    """
    body = text.read(path)
    head = text.first_line(body)
    for form in FORMATS:
        if form.matches(head):
            return form.read(body, Rows(str(path)), system)
    raise PlanError(
        "trace",
        f"{path}:1: column 1: not a failure log: the first line must be LANL's head, a JSON list, "
        f"Slurm's head "
        "(sacctmgr show event --parsable2, sacct --parsable2), or time,node",
    )
