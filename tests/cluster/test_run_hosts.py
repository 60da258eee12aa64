"""`backstay run` with mpirun over several hosts: hosts that die under load, spares, too few slots,
hosts that do not answer.
"""

import re
import signal

import pytest

from conftest import finish, wait_for_line
from minicluster import waiting
from supervised import BACKSTAY, JOBS, LAUNCHERS, SETTINGS, Supervised, result

STEPS = 150
SAFE = "safe_step=20"  # a version is on other hosts before one is killed
RUNNING = "protected step=20"  # and it goes on computing and saving
HOSTS = "/mnt/shared/hosts"
needs = {kind: pytest.mark.skipif(not JOBS[kind], reason=f"{kind} is missing") for kind in JOBS}


@pytest.fixture
def job(whole):
    """Makes jobs; their agents are ended after the test."""
    yield lambda kind="openmpi": Supervised(whole, kind)
    whole.end_agents()


@pytest.fixture(scope="module")
def undisturbed(cluster):
    """The result of six ranks; where they run does not change it."""
    job = Supervised(cluster)
    code, output = job.run("", "--host n0:3,n2:3 -n 6", f"{STEPS} 50")
    cluster.end_agents()
    assert code == 0, output
    return result(output)


def lines_until(process, *patterns):
    """Reads until each pattern was found in a line, in any order."""
    missing, lines = set(patterns), []
    while missing:
        line = process.stdout.readline()
        assert line, f"{missing} not in\n{''.join(lines)}"
        lines.append(line)
        missing -= {one for one in missing if re.search(one, line)}


def host_file(mini, *lines):
    text = "\\n".join(lines)
    mini.on("n0", f"printf '{text}\\n' >{HOSTS}")


def left_behind(mini, host):
    return mini.on(host, "ls /tmp/backstay-hosts-* 2>/dev/null || true")


@needs["openmpi"]
def test_a_spare_takes_the_place_of_a_host_that_dies(job, whole, undisturbed):
    """The host file is in the way of Open MPI; nothing but --spares is given to Backstay."""
    host_file(whole, "# ours", "n0 slots=2", "n1 slots=2", "n2 slots=2", "n3 slots=2")
    running = job().start("--spares 1", f"--hostfile {HOSTS} -n 6", f"{STEPS} 5 {SAFE}")
    wait_for_line(running, RUNNING)
    whole("kill", "n1")
    code, output = finish(running)
    assert code == 0, output
    assert "n1 is gone: the connection ended: nslaunch: n1: the host is down" in output
    assert "goes on without n1, with n3 instead, on n0, n3, n2" in output
    assert "restart 1 of 3 from version " in output and "restarted version=" in output
    assert result(output) == undisturbed
    assert left_behind(whole, "n0") == ""


@needs["openmpi"]
@pytest.mark.parametrize("protection", ["REPLICAS=2", "PARITY=2,2"])
def test_two_hosts_that_die_at_the_same_instant(job, whole, undisturbed, protection):
    host_file(whole, *(f"{host} slots=3" for host in ("n0", "n1", "n2", "n3")))
    running = job().start("", f"-x BACKSTAY_PROTECT_{protection} --hostfile {HOSTS} -n 6",
                          f"{STEPS} 5 {SAFE}")
    wait_for_line(running, RUNNING)
    for kill in [whole.start("kill", host) for host in ("n1", "n2")]:
        finish(kill)
    code, output = finish(running)
    assert code == 0, output
    assert "restarted version=" in output
    assert result(output) == undisturbed


@needs["mpich"]
def test_mpich_does_not_hang_for_the_dead_host(job, whole, undisturbed):
    """By itself it would wait for 16 minutes. Its list has one slot a host, and 6 ranks from the
    start.
    """
    running = job("mpich").start("", "-hosts n0,n1,n2 -n 6", f"{STEPS} 5 {SAFE}")
    wait_for_line(running, RUNNING)
    whole("kill", "n2")
    wait_for_line(running, "backstay run: goes on without n2, on n0, n1")
    wait_for_line(running, undisturbed)
    # Debian's MPICH 4.0.2 can hang in MPI_Finalize over TCP (README.md).
    running.send_signal(signal.SIGINT)
    finish(running)


@needs["mpich"]
def test_the_launchers_host_loses_power_and_its_ranks_are_taken_over(job, whole, undisturbed):
    """MPICH's ranks on other hosts would hold the job for a quarter of an hour."""
    one = job("mpich")
    gate = f"/mnt/shared/{one.job}"  # never opened: the ranks wait there
    lost = one.start("", "-hosts n0,n1,n2 -n 6", f"{STEPS} 5 {SAFE} gate_step=30 gate={gate}",
                     on="n3")
    wait_for_line(lost, RUNNING)
    waiting.until(lambda: whole.run("exec", "n0", "--", "test", "-e", f"{gate}.reached")[0] == 0,
                  "the ranks to wait")
    whole("kill", "n3")
    finish(lost)
    again = ("-hosts n0,n1,n2 -n 6", f"{STEPS} 50")
    code, output = one.run("", *again)
    assert code == 7 and "with --take-over ends them" in output, output
    found = {host: re.findall(r"process (\d+)", line) for host,
             line in re.findall(r"^  (n\d): (rank .*)$", output, re.MULTILINE)}
    assert {host: len(pids) for host, pids in found.items()} == {"n0": 2, "n1": 2, "n2": 2}, output
    for host, pids in found.items():
        whole.on(host, f"kill -0 {' '.join(pids)}")
    running = one.start("--take-over", *again)
    lines_until(running, *(f"backstay run: ended rank .* on {host}$" for host in found),
                "^restarted version=")
    for host, pids in found.items():
        whole.on(host,
                 f"for pid in {' '.join(pids)}; do ! kill -0 $pid 2>/dev/null || grep -q "
                 f"'^State:.Z' /proc/$pid/status; done")
    wait_for_line(running, undisturbed)
    # Debian's MPICH 4.0.2 can hang in MPI_Finalize over TCP (README.md).
    running.send_signal(signal.SIGINT)
    finish(running)


@needs["openmpi"]
def test_too_few_slots_are_said_and_the_job_goes_on_with_oversubscription(job, whole, undisturbed):
    one = job()
    host_file(whole, "n0:3", "n1:3")
    running = one.start(f"--hosts {HOSTS}", "-n 6", f"{STEPS} 5 {SAFE}")
    wait_for_line(running, RUNNING)
    whole("kill", "n1")
    code, output = finish(running)
    assert code != 0 and "n0 have 3 slots and the job has 6 ranks" in output and "--oversubscribe" in output, output
    assert "giving up; the same command starts from version" in output

    # The dead host is still in the file.
    code, output = one.run(f"--hosts {HOSTS} --oversubscribe", "-n 6", f"{STEPS} 50")
    assert code == 8 and "n1 cannot be reached" in output and "checkpoint" not in output

    host_file(whole, "n0:3")
    code, output = one.run(f"--hosts {HOSTS}", "-n 6", f"{STEPS} 50")
    assert code == 2 and "the job has 6 ranks, and n0 have 3 slots" in output
    code, output = one.run(f"--hosts {HOSTS} --oversubscribe", "-n 6", f"{STEPS} 50")
    assert code == 0 and "restarted version=" in output, output
    assert result(output) == undisturbed
    code, output = one.run(f"--hosts {HOSTS}", "--host n1 -n 2", f"{STEPS} 50")
    assert code == 2 and "the launcher names its hosts too" in output


@needs["openmpi"]
def test_a_host_that_is_not_known_is_said_before_the_start(job, whole):
    code, output = job().run("--json", "--host n0,nowhere -n 2", "10 5")
    assert code == 8 and "checkpoint" not in output
    assert '"event":"host_unreachable"' in output and '"host":"nowhere"' in output and "its name: " in output
    assert '"code": "unreachable"' in output


@needs["openmpi"]
def test_asked_to_stop_from_a_host_without_ranks(job, whole):
    """The first rank's host is asked, and the disks of the job's hosts show which version there is.
    """
    one = job()
    gate = f"/mnt/shared/{one.job}"
    running = one.start("", "--host n0:1,n1:1 -n 2",
                        f"1000000 5 until_stop=1 gate_step=3 gate={gate}", on="n3")
    waiting.until(lambda: whole.run("exec", "n0", "--", "test", "-e", f"{gate}.reached")[0] == 0,
                  "the program to run")
    running.send_signal(signal.SIGTERM)
    whole.on("n0", f"touch {gate}")
    code, output = finish(running)
    assert code == 0, output
    assert "asked the program to save and end" in output
    assert "stopped; the same command starts from version 1, captured" in output
    assert "(on the disks of the hosts)" in output


@needs["openmpi"]
def test_fresh_starts_and_refusals_where_no_rank_runs_on_this_host(job, whole):
    """What the ranks refused is asked of the agents of other hosts."""
    running = job()
    where = "--host n1:2,n2:2 -n 4"
    code, output = running.run("", where, "10 5 wait_level=3")
    assert code == 0, output
    undisturbed_here = result(output)
    code, output = running.run("--fresh --retries 1", where, "10 5 kill_step=8 kill_rank=3")
    assert code == 137 and re.findall("restarted .*",
                                      output) == ["restarted version=3 step=5"], output
    code, output = running.run("", where, "10 5 wait_level=3")
    assert code == 0 and result(output) == undisturbed_here, output
    code, output = running.run("--retries 5", "--host n1:2,n2:2 -n 3", "10 5")
    assert code != 0 and "not tried again" in output and "restart 1 of 5" not in output, output
    assert "saved by 4 ranks" in output and "--fresh" in output, output


@needs["openmpi"]
@pytest.mark.parametrize("name, value", [("REPLICAS", 2), ("PARITY", "2,1")])
def test_too_few_nodes_at_the_start_are_refused_once(job, whole, name, value):
    """Another try would be allowed to keep fewer copies, though no node was lost."""
    code, output = job().run("--retries 5", f"-x BACKSTAY_PROTECT_{name}={value} --host n1,n2 -n 2",
                             "10 5")
    assert code != 0 and "not tried again" in output and "restart 1 of 5" not in output, output
    assert f"protect.{name.lower()}" in output.split("not tried again")[1], output


@pytest.mark.parametrize("kind, hosts", [("openmpi", "--host n0,n2"), ("mpich", "-hosts n0,n2")])
def test_the_library_for_files_is_in_the_ranks_of_each_host(job, whole, kind, hosts):
    """And in none of the processes above a rank: the launcher's and those of its daemons."""
    if not JOBS[kind]:
        pytest.skip(f"{kind} is missing")
    job(kind)  # ends the agents
    count = "$(grep -c libbackstay_files.so /proc/$process/maps)"
    program = ("process=$$; line=\"on $(hostname): %s, above:\"; while process=$(ps -o ppid= -p "
               "$process | tr -d ' '); [ ${process:-0} -gt 1 ]; do line=\"$line %s\"; done; "
               "echo \"$line end\"" % (count, count))
    settings = [f"{name}={value}" for name, value in SETTINGS.items()]
    code, output = whole.run("exec", "n0", "--", "env", *settings, BACKSTAY, "run", "--job",
                             "files", "--capture-files", "out/*", "--", *LAUNCHERS[kind],
                             *hosts.split(), "-n", 2, "sh", "-c", program)
    assert code == 0, output
    for host in ("n0", "n2"):
        assert re.search(rf"^on {host}: [1-9]\d*, above:( 0)+ end", output, re.MULTILINE), output
