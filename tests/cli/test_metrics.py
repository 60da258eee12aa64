"""The agent's metrics over HTTP, as a collector asks for them: docs/guide/metrics.md lists them."""

import http.client
import os
import pathlib
import re
import socket
import subprocess

import pytest
from conftest import ROOT

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABELS = r'\{[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"(?:,[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*")*\}'
SAMPLE = re.compile(rf"({NAME})({LABELS})? ([-+0-9.eE]+|NaN|[+-]Inf)")
HEAT = pathlib.Path(os.environ.get("BACKSTAY_TEST_HEAT", "/nowhere")) / "heat_serial"


def checked(text):
    """{name: {labels: value}} after what `promtool check metrics` looks at, and the format's own
    rules.
    """
    assert text.endswith("\n")
    found, types, heads, current = {}, {}, {}, None
    for line in text.splitlines():
        if line.startswith("# "):
            _, kind, name, rest = line.split(" ", 3)
            assert name not in found, f"{name}: its head comes after samples, or twice"
            if kind == "HELP":
                assert name not in heads and rest.strip() and name not in types, line
                heads[name] = rest
            else:
                assert kind == "TYPE" and name not in types and rest in ("counter", "gauge"), line
                types[name] = rest
            continue
        sample = SAMPLE.fullmatch(line)
        assert sample, line
        name, labels, value = sample.groups()
        assert name == current or name not in found, f"{name}: its samples are not together"
        assert name in types and name in heads, f"{name} has no head"
        assert labels not in found.setdefault(name, {}), f"twice: {line}"
        current = name
        found[name][labels or ""] = float(value)
    for name, kind in types.items():
        assert name.startswith("backstay_") and found.get(name), name
        assert (kind == "counter") == name.endswith("_total"), f"{name} is a {kind}"
        assert not re.search(r"_(ms|milliseconds|minutes|kb|mib|percent)(_|$)",
                             name), f"{name}: not a base unit"
        if kind == "counter":
            assert all(value >= 0 for value in found[name].values())
    return found


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Agent:
    def __init__(self, world, port, **env):
        self.world, self.port = world, port
        world.env.update(BACKSTAY_METRICS_PORT=str(port), **env)
        started = world.run("agent", "start")
        assert started.returncode == 0, started.stderr

    def ask(self, path="/metrics", method="GET"):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.request(method, path)
        answer = connection.getresponse()
        body = answer.read().decode()
        connection.close()
        return answer, body

    def metrics(self):
        answer, body = self.ask()
        assert answer.status == 200
        assert answer.getheader("Content-Type") == "text/plain; version=0.0.4; charset=utf-8"
        return checked(body)


@pytest.fixture
def agent(world):
    made = Agent(world, free_port())
    if "libmicrohttpd" in world.json("status")["metrics"]["error"]:
        pytest.skip("this build has no libmicrohttpd")
    return made


def test_an_idle_agent(agent):
    found = agent.metrics()
    buffers = found["backstay_pool_buffers"]
    assert buffers['{state="free"}'] == sum(buffers.values()) > 0
    assert found["backstay_disk_written_bytes_total"] == {"": 0}
    assert agent.world.json("status")["metrics"] == {"address": f"127.0.0.1:{agent.port}",
                                                     "error": ""}
    assert f"metrics http://127.0.0.1:{agent.port}/metrics" in agent.world.run("status").stdout


@pytest.mark.skipif(not HEAT.exists(), reason="the serial heat example was not built")
def test_a_job(agent):
    env = {**agent.world.env, "BACKSTAY_JOB": "heat", "BACKSTAY_CHECKPOINT_POLICY": "calls",
           "BACKSTAY_CHECKPOINT_EVERY_CALLS": "10", "BACKSTAY_CHECKPOINT_WAIT_AT_END": "true"}
    subprocess.run([HEAT, "50", "128", "128"], env=env, check=True, stdout=subprocess.DEVNULL,
                   timeout=60)
    found = agent.metrics()
    newest = found["backstay_job_newest_version"]

    def labels(name, value):
        return f'{{job="heat",dir="{agent.world.dir}",{name}="{value}"}}'

    assert newest[labels("level", "local")] == newest[labels("level", "captured")] >= 4
    events = labels("event", "captured")
    assert found["backstay_job_events_total"][events] >= 4
    assert found["backstay_job_event_bytes_total"][events] >= 4 * 128 * 128 * 8
    assert found["backstay_disk_written_bytes_total"][""] > 0
    assert found["backstay_job_newest_version_time_seconds"][labels("level", "local")] > 1.7e9


def test_every_metric_stands_in_the_guide(agent):
    page = (ROOT / "docs" / "guide" / "metrics.md").read_text()
    listed = set(re.findall(r"^\| `(backstay_\w+)` \|", page, re.MULTILINE))
    found = set(agent.metrics())
    assert found <= listed
    source = (ROOT / "src" / "agent" / "server" / "metrics.cc").read_text()
    assert set(re.findall(r'"(backstay_\w+)"', source)) == listed


def test_other_questions(agent):
    assert agent.ask("/")[0].status == 404
    assert agent.ask("/metrics", "POST")[0].status == 405
    answer, body = agent.ask("/metrics", "HEAD")
    assert answer.status == 200 and body == ""


def test_nonsense_and_who_says_nothing_do_not_hold_it_up(agent):
    silent = [socket.create_connection(("127.0.0.1", agent.port)) for _ in range(10)]
    with socket.create_connection(("127.0.0.1", agent.port)) as rude:
        rude.sendall(b"\x00\xff" * 5000)
        agent.metrics()
    for one in silent:
        one.close()
    assert agent.world.run("status").returncode == 0


def test_a_port_that_is_taken_is_said_and_the_agent_works_on(world):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        Agent(world, port)
        error = world.json("status")["metrics"]["error"]
        if "libmicrohttpd" in error:
            pytest.skip("this build has no libmicrohttpd")
        assert "port_in_use" in error and str(port) in error
        shown = world.run("status").stdout
        assert "no metrics: port_in_use" in shown
        assert all(len(line) <= 80 for line in shown.split("\n") if "metrics" in line), shown


def test_an_address_that_is_none(world):
    Agent(world, free_port(), BACKSTAY_METRICS_ADDRESS="example.org")
    error = world.json("status")["metrics"]["error"]
    assert "metrics.address is 'example.org'" in error or "libmicrohttpd" in error


def test_none_by_default(world):
    assert world.run("agent", "start").returncode == 0
    assert world.json("status")["metrics"] == {"address": "", "error": ""}
