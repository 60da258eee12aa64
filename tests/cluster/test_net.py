"""The network of the agents (src/net) between hosts: dead hosts, cut cables, a second network,
names.
"""

import os
import threading
import time

import pytest

from conftest import DEADLINE_S, finish
from minicluster import waiting

PROGRAM = os.environ.get("BACKSTAY_TEST_NET_PEER", "")
FOR_EVER = 1 << 40
DEAD_AFTER_S = 2
SLACK_S = 8  # the machine may be busy; a TCP that waits for its own timeouts needs minutes
ways = pytest.mark.parametrize("way", ("tcp", "ucx"))


class Peer:
    def __init__(self, mini, host, *words, way="tcp", dead_after_s=DEAD_AFTER_S):
        options = ["--dead-after", dead_after_s] + (["--ucx"] if way == "ucx" else [])
        self.mini, self.host = mini, host
        self.process = mini.start("exec", host, "--", PROGRAM, *words, *options)
        self.pid = self.line("pid")

    def line(self, start):
        """Reads on to the line that begins so; what follows on it."""
        end = threading.Timer(DEADLINE_S, self.process.kill)
        end.start()
        try:
            for line in iter(self.process.stdout.readline, ""):
                if line.startswith(start):
                    return line[len(start):].strip()
                if line.startswith("failed"):
                    pytest.fail(line)
            pytest.fail(f"no line '{start}' from {self.process.args}")
        finally:
            end.cancel()

    def kill(self):
        self.mini("exec", self.host, "--", "kill", "-9", self.pid)
        finish(self.process)

    def closed(self):
        """(requests that were lost, why it ended)."""
        lost = int(self.line("lost"))
        why = self.line("closed")
        assert finish(self.process)[0] == 0
        return lost, why


def connect(mini, way="tcp", pieces=FOR_EVER, server="n1", **options):
    serving = Peer(mini, server, "serve", way=way, **options)
    address = serving.line("address")
    calling = Peer(mini, "n0", "call", address, "--pieces", pieces, way=way, **options)
    calling.line("connected")
    serving.line("connected")
    if pieces:
        calling.line("moving")
    return serving, calling


def ends_soon(peer, since, dead_after_s=DEAD_AFTER_S):
    lost, why = peer.closed()
    assert time.monotonic() - since < 1.1 * dead_after_s + SLACK_S
    return lost, why


@ways
def test_a_host_that_is_powered_off_is_noticed_while_data_moves(whole, way):
    _, calling = connect(whole, way)
    since = time.monotonic()
    whole("kill", "n1")
    lost, why = ends_soon(calling, since)
    assert why.startswith("agent_lost") and lost == 8


@ways
def test_a_host_that_is_powered_off_is_noticed_in_silence(whole, way):
    _, calling = connect(whole, way, pieces=0)
    since = time.monotonic()
    whole("kill", "n1")
    lost, why = ends_soon(calling, since)
    assert "nothing was heard" in why and lost == 0


@ways
def test_the_receiver_notices_a_sender_that_is_powered_off(whole, way):
    serving = Peer(whole, "n0", "serve", way=way)
    calling = Peer(whole, "n1", "call", serving.line("address"), "--pieces", FOR_EVER, way=way)
    serving.line("moving")
    since = time.monotonic()
    whole("kill", "n1")
    assert ends_soon(serving, since)[1].startswith("agent_lost")
    finish(calling.process)


@ways
def test_a_process_that_dies_is_noticed_at_once(whole, way):
    _, calling = connect(whole, way, dead_after_s=30)
    since = time.monotonic()
    whole("kill", "--reset", "n1")
    _, why = calling.closed()
    assert why.startswith("agent_lost") and time.monotonic() - since < 10


@ways
def test_a_cut_that_is_shorter_than_the_deadline_is_survived(whole, way):
    serving, calling = connect(whole, way, pieces=3000, dead_after_s=30)
    whole("cut", "n1")
    time.sleep(5)  # the length of the cut, not a wait for something
    whole("heal", "n1")
    calling.line("done")
    assert calling.closed() == (0, "ok")
    assert serving.closed()[0] == 0


@ways
def test_a_longer_cut_is_told_to_both(whole, way):
    serving, calling = connect(whole, way)
    whole("cut", "n1")
    since = time.monotonic()
    for peer in (calling, serving):
        assert ends_soon(peer, since)[1].startswith("agent_lost")
    whole("heal", "n1")
    waiting.until(lambda: whole.run("exec", "n0", "--", "ping", "-c", "1", "-W", "1", "n1")[0]
                  == 0, "the healed link")
    serving, calling = connect(whole, way, pieces=10)
    calling.line("done")
    serving.closed()


@ways
def test_an_idle_end_uses_no_processor(whole, way):
    serving, calling = connect(whole, way, pieces=0)
    time.sleep(3)  # what is measured is this time
    calling.kill()
    used, passed = map(float, serving.line("cpu").split(" of "))
    assert passed > 2.5 and used < 0.02 * passed
    serving.closed()


def test_hosts_that_cannot_be_reached(whole):
    whole("kill", "n2")
    since = time.monotonic()
    for address, wanted in (("n2:7000", "agent_lost"), ("n1:7", "agent_lost"),
                            ("no-such-host:7000", "unreachable"),
                            ("n1", "invalid")):
        assert Peer(whole, "n0", "call", address).closed()[1].startswith(wanted), address
    assert time.monotonic() - since < 2 * DEAD_AFTER_S + 2 * SLACK_S  # four programs


def test_what_cannot_be_listened_on(cluster):
    first = Peer(cluster, "n0", "serve", "--port", 7100)
    first.line("address")
    code, output = cluster.run("exec", "n0", "--", PROGRAM, "serve", "--port", 7100)
    assert code == 1 and "port_in_use" in output and "7100" in output
    code, output = cluster.run("exec", "n0", "--", PROGRAM, "serve", "--device", "mlx5_0")
    assert code == 1 and "not_found" in output and "eth0" in output
    first.kill()


@ways
def test_a_named_second_network_carries_everything(clusters, way):
    mini = clusters("net2")
    mini("up", 2, "--networks", 2)
    serving = Peer(mini, "n1", "serve", "--device", "eth1", way=way)
    address = serving.line("address")
    assert address.startswith("10.78.0.2:")
    mini("cut", "n0", "--network", 0)
    calling = Peer(mini, "n0", "call", address, "--device", "eth1", "--pieces", FOR_EVER, way=way)
    calling.line("moving")
    mini("cut", "n0", "--network", 1)
    assert calling.closed()[1].startswith("agent_lost")
    assert serving.closed()[1].startswith("agent_lost")
    mini("down")
