"""What a host has of its own, how commands run on it, how it dies and comes back."""

import signal
import subprocess

from conftest import MINI, finish, wait_for_line
from minicluster import remote, state, waiting


def test_names_and_addresses(cluster):
    for host in range(4):
        assert cluster("exec", f"n{host}", "--", "hostname").strip() == f"n{host}"
        assert cluster.on("n0", f"getent hosts n{host}").split() == [f"10.77.0.{host + 1}",
            f"n{host}"]
    assert "n3" not in subprocess.run(["cat", "/etc/hosts"], capture_output=True, text=True).stdout


def test_private_folders(cluster):
    for folder in ("/tmp", "/run", "/dev/shm", "/mnt/local", "/var/tmp"):
        cluster.on("n0", f"echo secret >{folder}/cluster-test")
        assert cluster.run("exec", "n1", "--", "cat", f"{folder}/cluster-test")[0] == 1
        assert subprocess.run(["test", "-e", f"{folder}/cluster-test"]).returncode == 1


def test_one_shared_folder(cluster):
    cluster.on("n2", "echo all >/mnt/shared/cluster-test")
    assert cluster.on("n3", "cat /mnt/shared/cluster-test") == "all\n"
    with open(cluster.status()["shared"]["from_outside"] + "/cluster-test") as file:
        assert file.read() == "all\n"


def test_processes_and_devices_are_the_hosts_own(cluster):
    assert cluster.on("n0", "cat /proc/1/cmdline | tr '\\0' ' '").split()[-1] == "n0"
    assert set(cluster.on("n0", "ls /sys/class/net").split()) == {"eth0", "lo"}
    cluster.on("n0", "test -d /sys/fs/cgroup")


def test_exit_status_input_and_errors_of_a_command(cluster):
    assert cluster.run("exec", "n0", "--", "sh", "-c", "exit 7")[0] == 7
    assert cluster.run("exec", "n0", "--", "sh", "-c", "kill -9 $$")[0] == 137
    code, output = cluster.run("exec", "n0", "--", "no-such-program")
    assert code == 127 and "cannot be started: No such file" in output
    code, output = cluster.run("exec", "n7", "--", "true")
    assert code == 1 and "there is no host 'n7'" in output and "n0 .. n3" in output
    code, output = cluster.run("exec", "n0")
    assert code == 1 and "which command" in output


WAIT_FOR_A_SIGNAL = """
import signal, sys
wanted = {signal.SIGTERM, signal.SIGHUP}
signal.pthread_sigmask(signal.SIG_BLOCK, wanted)
print('ready', flush=True)
came = signal.sigwait(wanted).name
open('/tmp/signal', 'w').write(came)
sys.exit(3)
"""


def test_a_signal_reaches_the_command(cluster):
    run = cluster.start("exec", "n0", "--", "python3", "-c", WAIT_FOR_A_SIGNAL)
    wait_for_line(run, "ready")
    run.send_signal(signal.SIGTERM)
    assert finish(run) == (3, "")
    assert cluster.on("n0", "cat /tmp/signal; rm /tmp/signal") == "SIGTERM"


def test_a_command_is_hung_up_when_its_caller_is_killed(cluster):
    run = cluster.start("exec", "n0", "--", "python3", "-c", WAIT_FOR_A_SIGNAL)
    wait_for_line(run, "ready")
    run.kill()
    finish(run)
    waiting.until(lambda: cluster.run("exec", "n0", "--", "grep", "-q", "SIGHUP", "/tmp/signal")[0]
                  == 0, "the signal")


def test_a_killed_host_takes_all_its_processes_with_it_and_keeps_its_disk(whole):
    whole.on("n2", "echo kept >/mnt/local/file; echo gone >/tmp/file; sync /mnt/local/file; "
                   "nohup setsid sleep 1000 >/dev/null 2>&1 &")
    whole.on("n0", "ping -c 1 -W 5 n2")  # knows its hardware address now
    inside = remote.server_pid(state.Paths("four").server("n2"))
    with whole.start("exec", "n2", "--", "sleep", "2000") as run:
        waiting.until(lambda: "sleep 2000" in whole.on("n2", "ps -e -o args"), "the command")
        whole("kill", "n2")
        assert "n2: the host went down" in run.stdout.read()
        assert run.wait() == 255
    assert subprocess.run(["nsenter", f"--pid=/proc/{inside}/ns/pid", "true"],
                          capture_output=True).returncode != 0
    assert whole.host("n2")["state"] == "down"
    code, output = whole.run("exec", "n2", "--", "true")
    assert code == 1 and "mini boot n2" in output
    whole("kill", "n2")  # twice is once
    whole("boot", "n2")
    assert whole.on("n2",
                    "cat /mnt/local/file; test -e /tmp/file && echo there; pgrep sleep || echo none") == "kept\nnone\n"
    whole.on("n0", "ping -c 1 -W 1 n2")


def test_a_shell_has_a_terminal_of_its_own(cluster):
    on_a_terminal = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)"
    run = subprocess.Popen(["python3", "-c", on_a_terminal, MINI, "shell", "n1"], text=True,
                           env={**cluster.environment, "SHELL": "/bin/sh"}, stdin=subprocess.PIPE,
                           stdout=subprocess.PIPE)
    code, output = finish(run, "hostname; tty; exit 4\n")
    assert "n1" in output.split() and "/dev/pts/" in output and code == 4, output
