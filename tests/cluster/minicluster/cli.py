"""The command line of tests/cluster/mini."""

import argparse
import json
import os
import re
import sys

from . import checks, cluster, disks, hosts, mpi, network, remote, slurm, state
from .errors import ClusterError

EXAMPLES = """
examples:
  mini up 4                                  four hosts, n0 to n3
  mini exec n2 -- ping -c 1 n0               a command on a host
  mini mpirun --mpi mpich -n 8 -- ./program  over all hosts
  mini shape all 1gbit                       every link at 1 Gbit/s
  mini kill n3; mini boot n3                 a crash, and the host comes back with its disk
  mini slurm up; mini exec n0 -- srun -N4 hostname
  mini down                                  nothing is left

On a host /mnt/local is its own disk (/var/tmp lies on it), /mnt/shared is common to all; /tmp, /run and /dev/shm
are its own; the rest of the file system is the machine's.
"""


def parser():
    top = argparse.ArgumentParser(prog="mini",
                                  description="A cluster of hosts on this machine, made of "
                                              "namespaces.",
                                  epilog=EXAMPLES,
                                  formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = top.add_subparsers(metavar="COMMAND", required=True)

    def command(name, action, text, host=None, **options):
        sub = commands.add_parser(name, help=text, description=text, **options)
        sub.set_defaults(action=action)
        sub.add_argument("--name", default=os.environ.get("BACKSTAY_MINI_NAME", "mini"),
                         help="which cluster (default: mini, or $BACKSTAY_MINI_NAME)")
        if host:
            sub.add_argument("host", metavar="HOST", help=host)
        return sub

    one, several = "n0, n1, ...", "n0, n1, ..., several with commas, or all"
    add_life(command, one)
    add_commands(command, one)
    add_network(command, several)
    add_disks(command, one)
    add_launchers(command)
    return top


def add_life(command, one):
    sub = command("up", up, "start a cluster, or the hosts of it that are down")
    sub.add_argument("hosts", type=number_of_hosts, metavar="N", help="how many hosts")
    sub.add_argument("--networks", type=int, choices=(1, 2), default=1,
                     help="2: a second network, eth1, where the hosts are called n0-net1, ...")
    sub.add_argument("--disk", choices=("auto", "loop", "tmpfs"), default="auto",
                     help="what the disks are made of")
    sub.add_argument("--disk-size", default="2G", type=disk_size,
                     help="of each disk and of the shared directory (default 2G; sparse)")
    sub = command("down", down, "end a cluster and everything in it")
    sub.add_argument("--all", action="store_true",
                     help="all clusters, and what killed ones have left")
    command("status", status, "what is up, cut, shaped or lost").add_argument("--json",
        action="store_true")
    command("ls", ls, "names of the clusters")
    sub = command("kill", kill,
                  "power a host off: its network falls silent, all its processes end", one)
    sub.add_argument("--reset", action="store_true",
                     help="the peers see their connections closed, not silence")
    command("boot", boot, "start a host that was killed; its disk is as it was", one)


def add_commands(command, one):
    sub = command("exec", execute, "run a command on a host", one)
    sub.add_argument("command", nargs=argparse.REMAINDER, metavar="CMD...")
    command("shell", shell, "an interactive shell on a host", one)


def add_network(command, several):
    for name, action, text in (("cut", cut, "pull a host's cable"),
                               ("heal", heal, "plug it in again"),
                               ("shape", shape, "limit a host's link, each way"),
                               ("unshape", unshape, "no limit again")):
        sub = command(name, action, text)
        sub.add_argument("host", metavar="HOST", help=several,
                         **({"nargs": "?", "default": "all"} if name == "unshape" else {}))
        sub.add_argument("--network", type=int, choices=(0, 1),
                         help="only eth0 or eth1 (default: both)")
        if name == "shape":
            sub.add_argument("rate", metavar="RATE", help="100mbit, 2.5gbit")


def add_disks(command, one):
    command("lose-disk", lose_disk, "the disk and its data are gone: all calls fail with EIO", one)
    command("restore-disk", restore_disk, "put a new, empty disk in its place", one)
    for name, action, text, host in (("slow-disk", slow_disk,
                                      "limit a host's disk, until the host is killed", one),
                                     ("slow-shared", slow_shared,
                                      "limit the shared directory's device", None)):
        sub = command(name, action, text, host)
        sub.add_argument("rate", metavar="RATE",
                         help="20M (megabytes a second, reads and writes each), or off")


def add_launchers(command):
    sub = command("slurm", slurm_command, "start or end a real Slurm on the cluster")
    sub.add_argument("what", choices=("up", "down"))
    sub.add_argument("--silence-s", type=int, default=15,
                     help="a silent node is down after this time (default 15)")
    sub.add_argument("--switches", type=int, default=1, metavar="N",
                     help="the hosts hang on N switches, in turn, and Slurm knows it (default 1: "
                          "it knows of none)")
    sub = command("mpirun", mpirun,
                  "run an MPI program over the hosts, launched from the first of them",
                  usage="mini mpirun --mpi mpich|openmpi -n N [--hosts n0,n1] -- PROGRAM "
                        "[ARGUMENTS]")
    sub.add_argument("--mpi", required=True, choices=mpi.IMPLEMENTATIONS)
    sub.add_argument("-n", type=int, required=True, metavar="N", dest="ranks",
                     help="number of ranks")
    sub.add_argument("--hosts", help="n0,n2 (default: all that are up)")
    sub.add_argument("program", nargs=argparse.REMAINDER, metavar="-- PROGRAM [ARGUMENTS]")


def number_of_hosts(text):
    if not text.isdigit() or not 1 <= int(text) <= 500:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of hosts (1 to 500)")
    return int(text)


def disk_size(text):
    if not re.fullmatch(r"[1-9]\d*[MG]", text):
        raise argparse.ArgumentTypeError(
            f"'{text}' is not a size of a disk; write it like 500M or 2G")
    return text


# --- what the commands do -------------------------------------------------------------------------

def up(args):
    checks.require_cluster()
    cluster.up(args.name, args.hosts, args.networks, args.disk, args.disk_size)
    print(f"cluster {args.name} is up: {', '.join(hosts.names(args.hosts))}")


def down(args):
    checks.require_root()
    ended = cluster.down_all() if args.all else [args.name] if cluster.down(args.name) else []
    print(f"ended: {', '.join(ended)}" if ended else "there was nothing to end")


def ls(_):
    print("\n".join(state.recorded_names()))


def status(args):
    checks.require_root()
    result = cluster.status(args.name)
    if args.json:
        print(json.dumps(result, indent=1))
        return
    print(f"{'host':6} {'state':6} {'disk':12} links")
    for host in result["hosts"]:
        links = "  ".join(describe_link(link) for link in host["links"])
        disk = f"{host['disk']} ({host['disk_kind']}){describe_rate(host['disk_rate_bytes_per_s'])}"
        print(f"{host['name']:6} {host['state']:6} {disk:12} {links}")
    shared = result["shared"]
    print(f"shared {shared['path']}{describe_rate(shared['rate_bytes_per_s'])}; Slurm is "
          f"{result['slurm']}")


def describe_rate(bytes_per_s):
    return f" at {bytes_per_s / 1e6:g} MB/s" if bytes_per_s else ""


def describe_link(link):
    rate = f" at {link['rate_bits_per_s'] / 1e6:g} Mbit/s" if link["rate_bits_per_s"] else ""
    return f"{link['address']} {link['state']}{rate}"


def environment(paths, base):
    """The environment of a command on a host: the cluster's place, for nslaunch, and Slurm's
    configuration.
    """
    return {**base, "BACKSTAY_MINI": str(paths.folder), **slurm.environment(paths)}


def located(args):
    """Paths, record; the host is checked."""
    checks.require_root()
    paths, record = cluster.find(args.name)
    hosts.index(record, args.host)
    return paths, record


def execute(args):
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not command:
        raise ClusterError("which command? For example: mini exec n0 -- hostname")
    paths, _ = located(args)
    return remote.run(paths.server(args.host), command,
                      environment(paths, remote.caller_environment()))


def shell(args):
    paths, _ = located(args)
    if not sys.stdin.isatty():
        raise ClusterError("a shell needs a terminal; for commands from a pipe: mini exec HOST -- "
                           "bash")
    program = os.environ.get("SHELL", "/bin/bash")
    return remote.shell(paths.server(args.host), [program],
                        environment(paths, remote.caller_environment()))


def kill(args):
    paths, _ = located(args)
    with state.changing():
        hosts.kill(paths, args.host, args.reset)


def boot(args):
    paths, record = located(args)
    with state.changing():
        hosts.boot(paths, record, args.host)


def each_host(args, change):
    checks.require_root()
    paths, record = cluster.find(args.name)
    named = hosts.names(record["hosts"]) if args.host == "all" else args.host.split(",")
    for host in named:
        hosts.index(record, host)
        if hosts.is_up(paths, host):
            change(paths, host, networks=None if args.network is None else [args.network])
        elif args.host != "all":
            raise ClusterError(f"{host} is down; start it with: mini boot {host}")


def cut(args):
    each_host(args, network.cut)


def heal(args):
    each_host(args, network.heal)


def shape(args):
    each_host(args, lambda paths, host, networks: network.shape(paths, host, args.rate, networks))


def unshape(args):
    each_host(args, network.unshape)


def lose_disk(args):
    paths, record = located(args)
    with state.changing():
        disks.lose(paths, record, args.host)


def restore_disk(args):
    paths, record = located(args)
    with state.changing():
        disks.restore(paths, record, args.host)


def slow_disk(args):
    slow(*located(args), args.host, args.rate)


def slow_shared(args):
    checks.require_root()
    slow(*cluster.find(args.name), "shared", args.rate)


def slow(paths, record, name, text):
    with state.changing():
        if text == "off":
            disks.unthrottle(paths, name)
        else:
            disks.throttle(paths, record, name, disks.parse_rate(text))


def slurm_command(args):
    checks.require_root()
    checks.require_tools(checks.SLURM_TOOLS)
    paths, record = cluster.find(args.name)
    with state.changing():
        if args.what == "up":
            slurm.up(paths, record, args.silence_s, args.switches)
        else:
            slurm.down(paths, record)


def mpirun(args):
    checks.require_root()
    checks.require_tools(dict([checks.MPI_TOOLS[args.mpi]]))
    program = args.program[1:] if args.program[:1] == ["--"] else args.program
    if not program:
        raise ClusterError("which program? For example: mini mpirun --mpi mpich -n 4 -- ./program")
    paths, record = cluster.find(args.name)
    named = args.hosts.split(",") if args.hosts else [h for h in hosts.names(record["hosts"])
                                                      if hosts.is_up(paths, h)]
    for host in named:
        hosts.index(record, host)
    command = mpi.command(args.mpi, args.ranks, named, program)
    status = remote.run(paths.server(named[0]), command,
                        environment(paths, remote.caller_environment()))
    for host in named if status else ():
        if not hosts.is_up(paths, host):  # MPICH does not say which
            print(f"mini: {host} is down", file=sys.stderr)
    return status


def main():
    os.environ["PATH"] = checks.system_path()
    args = parser().parse_args()
    try:
        return args.action(args) or 0
    except ClusterError as error:
        print(f"mini: {error}", file=sys.stderr)
        return 2 if isinstance(error, checks.MissingFeature) else 1
    except OSError as error:
        print(f"mini: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
