"""`backstay plan model`: one checkpoint of a job on a machine of the papers, or on one's own."""

from enum import Enum
from typing import Annotated, Optional

import typer

from ...plan import creates
from ...plan import model as models
from ...plan import systems
from ...plan.check import PlanError
from ...plan.words import counted
from . import output
from .output import AsJson, percent, seconds, sized

EPILOG = (
    "\b\nExamples:\n"
    "  backstay plan model --system red-storm --processors 65536 --method pfs --json\n"
    "  backstay plan model --system jaguar --processors 8192 --method overlay --staging-memory "
    "8.2e12\n"
    "  backstay plan model --list\n"
    "  backstay plan model --system my-cluster --systems my.toml\n\n"
    f"{output.EXIT_CODES}"
)


class Method(str, Enum):
    pfs = "pfs"
    lwfs = "lwfs"
    overlay = "overlay"


def list_systems(known, as_json: bool) -> None:
    result = {
        "systems": [{"name": one.name, "processors": one.processors, "source": one.source,
                     "assumed": one.assumed} for one in known.values()]
    }
    output.show(result,
                [(one.name, one.source + (f"; not from it: {one.assumed}" if one.assumed else ""))
                 for one in known.values()], as_json)


def processors_of(system, processors) -> int:
    if processors is None and system.processors is None:
        raise PlanError("processors", f"must be given: {system.name} does not say how many it has")
    return system.processors if processors is None else processors


def command(
    system: Annotated[
        Optional[str], typer.Option("--system", metavar="NAME", help="Machine; --list shows them")
    ] = None,
    processors: Annotated[
        Optional[int],
        typer.Option("--processors", parser=output.whole_number, metavar="N",
                     help="Default: all of the machine")
    ] = None,
    method: Annotated[
        Method, typer.Option("--method", help="Straight to storage, lightweight storage, or staged")
    ] = Method.pfs,
    staging_bytes: Annotated[
        Optional[float],
        typer.Option(
            "--staging-memory", metavar="BYTES",
            help="Of all staging nodes; default 1024 × 2 × a processor's"
        ),
    ] = None,
    startup_s: Annotated[
        Optional[float],
        typer.Option("--startup", metavar="S",
                     help="Creating files, s; default 0 for pfs, n/60000 else"),
    ] = None,
    creates_file: Annotated[
        Optional[str],
        typer.Option("--creates", metavar="FILE",
                     help="Startup from what `bench/creates --json` printed, instead")
    ] = None,
    systems_file: Annotated[
        Optional[str], typer.Option("--systems", metavar="FILE", help="TOML file of more machines")
    ] = None,
    show_list: Annotated[bool, typer.Option("--list", help="List the machines")] = False,
    as_json: AsJson = False,
) -> None:
    """How long a checkpoint takes on a machine.

    Paper 000, eqs. 3.2, 3.3, 4.1, 4.2: latency, throughput, interval and the share of time spent
    saving.
    """
    if show_list:
        return list_systems(systems.systems(systems_file), as_json)
    if system is None:
        raise PlanError("system", "must be given; --list shows the machines")
    machine = systems.system(system, systems_file)
    n = processors_of(machine, processors)
    if staging_bytes is not None and method is not Method.overlay:
        raise PlanError("staging_bytes", "counts with --method overlay only")
    if creates_file is not None:
        if startup_s is not None:
            raise PlanError("startup_s", "or --creates may be given, one of them")
        startup_s = creates.startup_s(n, creates.read(creates_file), method.value)
    point = models.checkpoint(machine, n, method.value, staging_bytes, startup_s)
    result = {"system": machine.name, "processors": n, "method": method.value, **point._asdict()}
    lines = [
        (f"{machine.name}, {counted(n, 'processor')}",
         "; ".join(filter(None, (method.value, machine.source)))),
        ("checkpoint", sized(point.data_bytes)),
        ("latency", seconds(point.latency_s)),
        *([("creating files or objects", seconds(point.startup_s))] if creates_file else []),
        ("throughput", f"{sized(point.throughput_bytes_per_s)}/s, bound by: {point.limit}"),
        ("mean time to interrupt", seconds(point.mtti_s)),
        ("interval", seconds(point.interval_s)),
        ("share of time spent saving", percent(point.overhead_fraction)),
    ]
    if method is Method.overlay:
        result["staging_bytes"] = models.paper_staging_bytes(machine) if staging_bytes is None else staging_bytes
        lines.insert(1, ("staging memory", sized(result["staging_bytes"])))
    output.show(result, lines, as_json, notes(machine, point))


def notes(machine, point) -> list[str]:
    found = []
    if point.latency_s >= 2 * point.mtti_s:
        found.append(
            "a checkpoint takes at least twice the mean time to interrupt: Daly's other branch, "
            "interval = MTTI"
        )
    if point.interval_floor_s > point.daly_interval_s:
        found.append("the interval is that at which the staging memory has drained (eq. 4.2), "
                     "longer than Daly's")
    if machine.assumed:
        found.append(f"not from the source: {machine.assumed}")
    if machine.link_bytes_per_s is None:
        found.append(f"{machine.name} has no network bandwidth: storage is taken as the only limit")
    return found
