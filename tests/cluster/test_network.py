"""Cut, healed and shaped links."""

import json
import subprocess

import pytest

from conftest import HERE, finish, wait_for_line
from minicluster import waiting

PORT = 5000


def reaches(mini, source, target):
    return mini.run("exec", source, "--", "ping", "-c", "1", "-W", "1", target)[0] == 0


def stream_bytes_per_s(mini, source, target, count):
    receiver = mini.start("exec", target, "--", "python3", HERE / "stream.py", "receive", PORT)
    wait_for_line(receiver, "ready")
    mini("exec", source, "--", "python3", HERE / "stream.py", "send", target, PORT, count)
    return float(finish(receiver)[1])


def test_a_cut_host_is_silent_for_all_and_healed(whole):
    whole("cut", "n1")
    assert not reaches(whole, "n0", "n1") and not reaches(whole, "n1", "n0")
    assert reaches(whole, "n0", "n2")
    assert whole.host("n1")["links"][0]["state"] == "cut"
    whole("heal", "n1")
    waiting.until(lambda: reaches(whole, "n0", "n1"), "the healed link")


def test_a_connection_survives_a_short_cut(whole):
    """A cut gives no error: messages sent before it arrive after it."""
    receive = "import socket; s = socket.create_server(('', 5001)); print('ready', flush=True); print(s.accept()[0].recv(9))"
    send = ("import socket; s = socket.create_connection(('n1', 5001)); print('connected', "
            "flush=True); input(); "
            "s.sendall(b'late')")
    receiver = whole.start("exec", "n1", "--", "python3", "-c", receive)
    wait_for_line(receiver, "ready")
    sender = whole.start("exec", "n0", "--", "python3", "-c", send, stdin=subprocess.PIPE)
    wait_for_line(sender, "connected")
    whole("cut", "n1")
    assert finish(sender, "\n") == (0, "")
    whole("heal", "n1")
    assert finish(receiver) == (0, "b'late'\n")


@pytest.mark.parametrize("rate,bits_per_s", [("100mbit", 100e6), ("800mbit", 800e6)])
def test_a_shaped_link_carries_its_rate(whole, rate, bits_per_s):
    whole("shape", "n1", rate)
    reached = {f"{source} to {target}": 8 * stream_bytes_per_s(whole, source, target,
        int(bits_per_s / 8))
               for source, target in (("n0", "n1"), ("n1", "n0"))}
    print(json.dumps({"shaped to": rate, "reached bits a second": reached}))
    for value in reached.values():
        assert 0.85 * bits_per_s < value < 1.10 * bits_per_s, reached
    assert whole.host("n1")["links"][0]["rate_bits_per_s"] == bits_per_s
    whole("unshape", "n1")
    assert whole.host("n1")["links"][0]["rate_bits_per_s"] is None
    assert 8 * stream_bytes_per_s(whole, "n0", "n1", 200_000_000) > 1.10 * bits_per_s


def test_a_second_network_is_cut_and_shaped_by_itself(clusters):
    mini = clusters("second")
    mini("up", 2, "--networks", 2)
    mini.on("n0", "ping -c 1 -W 5 n1 && ping -c 1 -W 5 n1-net1")
    mini("cut", "n1", "--network", 1)
    assert reaches(mini, "n0", "n1") and not reaches(mini, "n0", "n1-net1")
    mini("heal", "n1", "--network", 1)
    mini("shape", "all", "200mbit", "--network", 1)
    assert [link["rate_bits_per_s"] for link in mini.host("n0")["links"]] == [None, 200e6]
    mini("down")


def test_bad_rates(cluster):
    code, output = cluster.run("shape", "n0", "fast")
    assert code == 1 and "100mbit" in output
    code, output = cluster.run("slow-shared", "0M")
    assert code == 1 and "20M" in output
