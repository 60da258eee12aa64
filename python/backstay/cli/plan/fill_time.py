"""`backstay plan fill-time`: a full dump from four numbers."""

from typing import Annotated, Optional

import typer

from ...plan import fill_time, systems
from ...plan.check import PlanError
from . import output
from .output import AsJson, seconds, sized

EPILOG = (
    "\b\nExamples:\n"
    "  backstay plan fill-time --ram 205e12 --storage 10e15 --device 2e12 --device-bandwidth 100e6 "
    "--json\n"
    "  backstay plan fill-time --system titan\n"
    "  backstay plan fill-time --system stampede --checkpoint 38e12\n\n"
    f"{output.EXIT_CODES}"
)

_NAMES = ("ram_bytes", "storage_bytes", "device_bytes", "device_bytes_per_s")


def gathered(system, systems_file, given: dict) -> dict:
    """The four numbers: as given, else the machine's."""
    machine = systems.system(system, systems_file) if system is not None else None
    for name in _NAMES:
        if given[name] is None and machine is None:
            raise PlanError(name, "must be given, or --system")
        if given[name] is None:
            given[name] = getattr(machine, name)
        if given[name] is None:
            raise PlanError(name, f"must be given: {machine.name} does not say it")
    return given


def command(
    ram_bytes: Annotated[
        Optional[float], typer.Option("--ram", metavar="BYTES", help="Memory of the whole machine")
    ] = None,
    storage_bytes: Annotated[
        Optional[float],
        typer.Option("--storage", metavar="BYTES", help="Size of the whole storage")
    ] = None,
    device_bytes: Annotated[
        Optional[float], typer.Option("--device", metavar="BYTES", help="Size of one disk or SSD")
    ] = None,
    device_bytes_per_s: Annotated[
        Optional[float],
        typer.Option("--device-bandwidth", metavar="B/S", help="Write bandwidth of one disk or SSD")
    ] = None,
    checkpoint_bytes: Annotated[
        Optional[float],
        typer.Option("--checkpoint", metavar="BYTES", help="What is saved, if less than the memory")
    ] = None,
    observed_factor: Annotated[
        float, typer.Option("--observed-factor", metavar="F", help="Measured against ideal; the "
                                                                   "paper saw about 10")
    ] = fill_time.OBSERVED_FACTOR,
    system: Annotated[
        Optional[str],
        typer.Option("--system", metavar="NAME", help="Numbers of a machine of paper 001")
    ] = None,
    systems_file: Annotated[
        Optional[str], typer.Option("--systems", metavar="FILE", help="TOML file of more machines")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """How long a dump of all memory takes.

    The Checkpoint-Fill-Time Law of paper 001, § III-D, from four numbers of a data sheet: RAM /
    storage × time to fill one device.
    """
    given = {"ram_bytes": ram_bytes, "storage_bytes": storage_bytes, "device_bytes": device_bytes,
             "device_bytes_per_s": device_bytes_per_s}  # fmt: skip
    four = gathered(system, systems_file, given)
    ideal = fill_time.ideal_checkpoint_s(**four, checkpoint_bytes=checkpoint_bytes)
    result = {
        **four,
        "checkpoint_bytes": four["ram_bytes"] if checkpoint_bytes is None else checkpoint_bytes,
        "fill_time_s": fill_time.fill_time_s(four["device_bytes"], four["device_bytes_per_s"]),
        "ideal_checkpoint_s": ideal,
        "observed_factor": observed_factor,
        "expected_checkpoint_s": fill_time.expected_checkpoint_s(ideal, observed_factor),
    }
    lines = [
        ("one device filled in", seconds(result["fill_time_s"])),
        ("ideal checkpoint", seconds(ideal)),
        (f"expected (× {observed_factor:g})", seconds(result["expected_checkpoint_s"])),
    ]
    output.show(result, lines, as_json, notes(result["checkpoint_bytes"], four["storage_bytes"]))


def notes(saved_bytes: float, storage_bytes: float) -> list[str]:
    if saved_bytes <= storage_bytes:
        return []
    return [f"what is saved ({sized(saved_bytes)}) does not fit into the storage "
            f"({sized(storage_bytes)}): the time is that of writing "
            "as much, more than the storage keeps; --checkpoint says how much is saved"]  # fmt: skip
