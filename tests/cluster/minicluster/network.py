"""Switches and links: one bridge a network in the cluster's own network namespace, one veth pair a
host and network.

Nothing of it exists in the machine's network namespace, so that its addresses cannot collide with
others. On the switch's side the link of n2 to the first network is the port n2-0; on the host's
side it is eth0.
"""

import json
import re
import subprocess

from . import remote
from .errors import ClusterError

RATE_PATTERN = r"\d+(\.\d+)?[kmgt]?bit"
BITS = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}


def address(network, host_number):
    return f"10.{77 + network}.{host_number // 250}.{host_number % 250 + 1}"


def hardware_address(network, host_number):
    """The same after a boot: the others still have it in their tables."""
    return f"02:00:{network:02x}:00:{host_number >> 8:02x}:{host_number & 255:02x}"


def inside(pid, *command):
    """Runs a command of ip or tc in the network namespace of a process."""
    done = subprocess.run(["nsenter", f"--net=/proc/{pid}/ns/net", *command], capture_output=True,
                          text=True)
    if done.returncode != 0:
        raise ClusterError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def make_switches(paths, networks):
    pid = remote.server_pid(paths.keeper)
    for network in range(networks):
        inside(pid, "ip", "link", "add", f"switch{network}", "type", "bridge")
        inside(pid, "ip", "link", "set", f"switch{network}", "up")


def connect(paths, record, host):
    keeper, pid = remote.server_pid(paths.keeper), remote.server_pid(paths.server(host))
    inside(pid, "ip", "link", "set", "lo", "up")
    # Of its life before: its namespace lingers while old connections are being closed.
    unplug(paths, host)
    for network in range(record["networks"]):
        port, device = f"{host}-{network}", f"eth{network}"
        inside(keeper, "ip", "link", "add", port, "type", "veth",
               "peer", "name", device, "address", hardware_address(network, int(host[1:])),
               "netns", str(pid))
        inside(keeper, "ip", "link", "set", port, "master", f"switch{network}", "up")
        inside(pid, "ip", "address", "add", f"{address(network, int(host[1:]))}/16", "dev", device)
        inside(pid, "ip", "link", "set", device, "up")


def set_ports(paths, host, wanted, networks):
    keeper = remote.server_pid(paths.keeper)
    for port in ports(paths, host):
        if networks is None or int(port.rpartition("-")[2]) in networks:
            inside(keeper, "ip", "link", "set", port, wanted)


def cut(paths, host, networks=None):
    """Pulls the cable: both directions go silent, without notice."""
    set_ports(paths, host, "down", networks)


def heal(paths, host, networks=None):
    set_ports(paths, host, "up", networks)


def unplug(paths, host):
    """Takes the links of a dead host away. The kernel does the same in its own time."""
    for port in ports(paths, host):
        try:
            inside(remote.server_pid(paths.keeper), "ip", "link", "delete", port)
        except ClusterError:
            if port in ports(paths, host):
                raise


def links(paths):
    """Port -> is it up, of all hosts that are up."""
    text = inside(remote.server_pid(paths.keeper), "ip", "-json", "link", "show", "type", "veth")
    return {link["ifname"]: "UP" in link["flags"] for link in json.loads(text or "[]")}


def ports(paths, host):
    return [port for port in links(paths) if port.rpartition("-")[0] == host]


def parse_rate(text):
    """Bits a second of '100mbit', '1gbit', '2.5gbit'."""
    if not re.fullmatch(RATE_PATTERN, text):
        raise ClusterError(f"'{text}' is not a rate of a link; write it like 100mbit or 2.5gbit")
    number, unit = re.match(r"([\d.]+)([kmgt]?)", text).groups()
    return float(number) * BITS[unit]


def shape(paths, host, rate, networks=None):
    """Limits what the host sends and what it is sent, each to `rate`. The queue is deep enough for
    one burst.
    """
    bits_per_s = parse_rate(rate)
    burst_bytes = max(128 * 1024, int(bits_per_s / 8 * 0.002))
    for pid, device in both_ends(paths, host, networks):
        inside(pid, "tc", "qdisc", "replace", "dev", device, "root", "tbf",
               "rate", f"{int(bits_per_s)}bit", "burst", str(burst_bytes), "latency", "50ms")


def unshape(paths, host, networks=None):
    for pid, device in both_ends(paths, host, networks):
        if "tbf" in inside(pid, "tc", "qdisc", "show", "dev", device, "root"):
            inside(pid, "tc", "qdisc", "delete", "dev", device, "root")


def both_ends(paths, host, networks):
    keeper, pid = remote.server_pid(paths.keeper), remote.server_pid(paths.server(host))
    for port in ports(paths, host):
        network = int(port.rpartition("-")[2])
        if networks is None or network in networks:
            yield keeper, port
            yield pid, f"eth{network}"


def rates(paths):
    """Port -> rate in bits a second, of the links that are shaped."""
    text = inside(remote.server_pid(paths.keeper), "tc", "-json", "qdisc", "show")
    return {queue["dev"]: 8 * queue["options"]["rate"] for queue in json.loads(text)
            if queue["kind"] == "tbf"}
