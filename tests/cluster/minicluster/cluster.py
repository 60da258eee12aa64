"""Up, down, status: a cluster as a whole."""

import shutil

from . import disks, hosts, keeper, network, remote, slurm, state
from .errors import ClusterError


def up(name, count, networks=1, disk="auto", disk_size="2G"):
    """Brings the cluster up. One that is up already stays; hosts of it that are down are started
    again.
    """
    paths = state.Paths(name)
    with state.changing():
        remove_stale(also=None)
        record = state.read_record(paths)
        if record is None:
            build_or_remove(paths, count, networks, disk, disk_size)
        elif record["hosts"] != count:
            raise ClusterError(f"cluster {name} is up with {record['hosts']} hosts, not {count}; "
                               f"first: mini down --name {name}")
        else:
            boot_all(paths, record)


def boot_all(paths, record):
    for host in hosts.names(record["hosts"]):
        hosts.boot(paths, record, host)


def build_or_remove(paths, *wanted):
    """The record comes last: without it all the rest is taken for stale."""
    try:
        record = build(paths, *wanted)
        boot_all(paths, record)
        state.write_record(paths, record)
    except BaseException:
        remove(paths)
        raise


def build(paths, count, networks, disk, disk_size):
    """All but the hosts."""
    kind = ("loop" if disks.loop_works() else "tmpfs") if disk == "auto" else disk
    record = {"hosts": count, "networks": networks, "disk": kind, "disk_size": disk_size}
    paths.disks.mkdir(mode=0o700, parents=True)
    hosts.write_etc_hosts(paths, record)
    keeper.start(paths)
    network.make_switches(paths, networks)
    disks.mount_shared(paths, record)
    return record


def remove(paths):
    keeper.stop(paths)
    disks.clean_up(paths)
    shutil.rmtree(paths.folder)


def remove_stale(also):
    """Takes away what a killed command or a killed cluster left, of any name."""
    for name in state.recorded_names():
        paths = state.Paths(name)
        if name == also or state.read_record(paths) is None or keeper.find(paths) is None:
            remove(paths)


def down(name):
    with state.changing():
        existed = name in state.recorded_names()
        remove_stale(also=name)
    return existed


def down_all():
    with state.changing():
        names = state.recorded_names()
        for name in names:
            remove(state.Paths(name))
    return names


def find(name):
    """Paths and record of a cluster that is up."""
    paths = state.Paths(name)
    record = state.read_record(paths)
    if record is None or keeper.find(paths) is None:
        raise ClusterError(f"cluster {name} is not up; start it with: mini up 4"
                           + ("" if name == "mini" else f" --name {name}"))
    return paths, record


def status(name):
    paths, record = find(name)
    links, rates = network.links(paths), network.rates(paths)
    return {
        "name": name,
        "networks": record["networks"],
        "hosts": [host_status(paths, record, host, links, rates) for host
                  in hosts.names(record["hosts"])],
        "shared": {"path": disks.SHARED,
                   "from_outside": f"/proc/{remote.server_pid(paths.keeper)}/root{paths.shared}",
                   "rate_bytes_per_s": disks.throttled_rate(paths, "shared")},
        "slurm": "up" if slurm.is_up(paths) else "down",
    }


def host_status(paths, record, host, links, rates):
    pid = remote.server_pid(paths.server(host))
    number = hosts.index(record, host)
    return {
        "name": host,
        "state": "up" if pid else "down",
        "pid": pid,
        "disk": "lost" if disks.lost_mark(paths, host).exists() else "ok",
        "disk_kind": record["disk"],
        "disk_rate_bytes_per_s": disks.throttled_rate(paths, host),
        "links": [{"address": network.address(n, number),
                   "state": "up" if links.get(f"{host}-{n}") else "cut",
                   "rate_bits_per_s": rates.get(f"{host}-{n}")} for n in range(record["networks"])]
                   if pid else [],
    }
