"""Captured files of a host that is lost come home out of the durable directory, or out of copies on
another host.

The agents of some hosts stand still before they bring the first file home; what they have captured
becomes durable, or protected, meanwhile.
"""

import threading

import pytest

from captured import BYTES, COPY, Captured
from conftest import DEADLINE_S, finish
from minicluster import waiting
from supervised import JOBS

pytestmark = pytest.mark.skipif(not JOBS["openmpi"], reason="Open MPI is missing")


@pytest.fixture
def captured(whole):
    yield lambda *stuck, **more: Captured(whole, *stuck, **more)
    whole.end_on_all("backstayd ", "backstay-collector")


def test_the_next_attempt_finds_the_files_of_the_lost_host(captured, whole):
    one = captured("n1")
    script = (f"case $(hostname) in n1) {COPY} in/a in/b in/c; read x <never;; "
              "*) cmp in/a out/a && cmp in/b out/b && cmp in/c out/c && echo all of them;; esac")
    running = one.start(["--spares", "1"], ["--host", "n1,n2", "-n", "1"], script)
    one.wait_for_durable("n1", 3)  # more than durable.keep

    # From another host: what there is, and the bytes.
    code, output = one.tool("n3", f"ls {one.job} --files --dir {one.durable}")
    assert code == 0 and f"{one.folder}/out/a" in output, output
    code, output = one.tool("n3", f"export {one.job}.files.n1 --dir {one.durable} -o "
                                  f"{one.folder}/exported")
    assert code == 0 and f"exported/files{one.folder}/out/" in output, output

    # Nobody brings them while the host's agent lives, also after its writer has ended.
    whole.on("n1", "pkill -KILL -f '[/]backstay-collector'")
    waiting.until(lambda: "0 of 1 rank connected" in one.tool("n1", "status")[1],
                  "the agent to see the end of its writer")
    code, output = one.run([], ["--host", "n2", "-n", "1"], "true")
    assert code == 0 and "captured files of n1 are not brought home, as it may" in output, output
    assert one.size("a") == 0

    whole("kill", "n1")
    code, output = finish(running)
    assert code == 0 and "all of them" in output, output
    assert f"brought 3 captured files of n1 home out of {one.durable}" in output, output
    assert whole.on("n0", f"ls -A {one.folder}/out").split() == ["a", "b", "c"]

    # Once: what the user removes does not come back.
    whole.on("n0", f"rm {one.folder}/out/a")
    code, output = one.run([], ["--host", "n2", "-n", "1"], "true")
    assert code == 0 and "of n1" not in output, output
    assert whole.on("n0", f"ls {one.folder}/out").split() == ["b", "c"]


def test_who_brings_them_is_killed_and_the_same_command_goes_on(captured, whole):
    one = captured("n1", "n2")
    script = f"case $(hostname) in n1) {COPY} in/a in/b;; n2) {COPY} in/c;; esac; read x <never"
    running = one.start(["--retries", "0"], ["--host", "n1,n2", "-n", "2"], script)
    one.wait_for_durable("n1", 2)
    one.wait_for_durable("n2", 1)
    for host in ("n1", "n2"):
        whole("kill", host)
    finish(running)
    again = [[], ["--host", "n3", "-n", "1"], "true"]
    code, output = one.run(*again, failpoint="home.4=kill@1")
    assert code == 137, output
    code, output = one.run(*again)
    assert code == 0, output
    assert "of n2 home out of" in output or "of n1 home out of" in output, output
    assert all(one.is_home(name) for name in "abc")
    assert whole.on("n0", f"ls -A {one.folder}/out").split() == ["a", "b", "c"]


def lost_after(captured, whole, level):
    """A job whose only host, n1, has lost its power when one file was local or durable."""
    one = captured("n1")
    if level == "local":  # somebody else has the durable directory's lock
        folder = f"{one.durable}/{one.job}.files.n1"
        whole.on("n0", f"mkdir -m 700 {folder}; flock {folder}/lock sleep inf >/dev/null 2>&1 &")
    running = one.start(["--retries", "0"], ["--host", "n1", "-n", "1"],
                        f"{COPY} in/a; read x <never")
    if level == "local":
        waiting.until(lambda: whole.on("n1", f"ls /var/tmp/backstay-root/{one.job}.files.n1/v*/"
                                             "commit.local 2>/dev/null || true"), "level local")
    else:
        one.wait_for_durable("n1", 1)
    whole("kill", "n1")
    finish(running)
    whole.on("n0", f"rm {one.folder}/stuck")
    return one


def test_what_was_not_durable_waits_for_its_host(captured, whole):
    one = lost_after(captured, whole, "local")
    code, output = one.run([], ["--host", "n2", "-n", "1"], "true")
    assert code == 0 and "brought" not in output and one.size("a") == 0, output
    whole.on("n0", "pkill -x flock; pkill -x sleep")
    whole("boot", "n1")
    code, output = one.run([], ["--host", "n1", "-n", "1"], "cmp in/a out/a")
    assert code == 0 and "brought" not in output, output


def test_a_host_that_is_back_without_its_disk(captured, whole):
    """Its files come home although it is one of the hosts of the run."""
    one = lost_after(captured, whole, "durable")
    whole("lose-disk", "n1")
    whole("restore-disk", "n1")
    whole("boot", "n1")
    code, output = one.run([], ["--host", "n1", "-n", "1"], "cmp in/a out/a")
    assert code == 0 and "brought 1 captured file of n1 home" in output, output


def test_copies_on_another_host_come_home_at_the_next_attempt(captured, whole):
    one = captured("n1", durable=False)
    script = (f"case $(hostname) in n1) {COPY} in/a in/b in/c; read x <never;; "
              "*) cmp in/a out/a && cmp in/b out/b && cmp in/c out/c && echo all of them;; esac")
    running = one.start(["--spares", "1"], ["--host", "n1,n2", "-n", "1"], script)
    one.wait_for_protected("n1", 3)
    code, output = one.tool("n1", f"ls {one.job}.files.n1")
    assert code == 0 and output.count("protected") == 3, output
    assert one.count("n2", "n1", "commit.local") == 3
    whole("kill", "n1")
    code, output = finish(running)
    assert code == 0 and "all of them" in output, output
    assert f"brought 3 captured files home out of the copies of {one.job}.files.n1 on n2" in output
    assert whole.on("n0", f"ls -A {one.folder}/out").split() == ["a", "b", "c"]
    assert one.count("n2", "n1", "*") == 0


def test_what_a_user_changed_stays_and_who_brings_the_copies_is_killed(captured, whole):
    one = captured("n1", durable=False)
    running = one.start(["--retries", "0"], ["--host", "n1,n2", "-n", "1", "--map-by", "node"],
                        f"{COPY} in/a in/b in/c; read x <never")
    one.wait_for_protected("n1", 3)
    whole.on("n0", f"cd {one.folder}/out && rm a && echo mine >b")
    # Nobody brings them while their host lives.
    whole.on("n1", "pkill -KILL -f '[/]backstay-collector'")
    again = [["--spares", "1"], ["--host", "n2,n3", "-n", "1"], "true"]
    code, output = one.run(*again)
    assert "captured files of n1 are not brought home, as n1 lives" in output, output
    assert one.size("c") == 0
    whole("kill", "n1")
    finish(running)
    code, output = one.run(*again, failpoint="home.4=kill@1")
    assert "n2 has copies and did not succeed" in output, output
    code, output = one.run(*again)
    assert code == 0, output
    assert f"out/a of {one.job}.files.n1" in output and f"out/b of {one.job}.files.n1" in output
    assert one.is_home("c") and whole.on("n0", f"cat {one.folder}/out/b") == "mine\n"
    assert whole.on("n0", f"ls -A {one.folder}/out").split() == ["b", "c"]
    code, output = one.tool("n2", f"export {one.job}.files.n1 -o {one.folder}/exported")
    assert code == 0, output
    # Once: what was left is not told again.
    code, output = one.run(*again)
    assert code == 0 and "of n1" not in output and ".files.n1" not in output, output


def test_copies_go_once_the_files_are_at_home(captured, whole):
    one = captured("n1", durable=False)
    # One process: the start of another one would wait for the files before.
    write = f"printf %0{BYTES}d 0 >out/"
    running = one.start(["--spares", "1"], ["--host", "n1,n2", "-n", "1"],
                        f"{write}a; {write}b; read x <never; {write}c; read x <never; true")
    one.wait_for_protected("n1", 2)
    whole.on("n2", "pkill -KILL -f '[k]eep-copies'")  # the next keeper goes on
    whole.on("n0", f"echo go >{one.folder}/never")
    one.wait_for_protected("n1", 3)
    assert one.count("n2", "n1", "commit.local") == 3
    whole.on("n0", f"rm {one.folder}/stuck; echo go >{one.folder}/never")
    whole.on("n1", "pkill -KILL -f '[/]backstayd '")
    code, output = finish(running)
    assert code == 0, output
    assert [one.size(name) for name in "abc"] == [BYTES] * 3
    assert one.count("n2", "n1", "*") == 0


def test_what_is_renamed_on_its_way_is_not_called_protected(captured, whole):
    """The copy has the former name, so it would not come home."""
    one = captured("n1", durable=False)
    folder = f"/var/tmp/backstay-root/{one.job}.files.n1"
    whole.on("n2", f"mkdir -p -m 700 {folder}; flock {folder}/lock sleep inf >/dev/null 2>&1 &")
    whole.on("n0", f"echo old >{one.folder}/out/x")
    write = ("import os; "
             f"[open(f'out/{{name}}', 'w').write(name * {BYTES}) for name in ('x.tmp', 'b')]; "
             "os.rename('out/x.tmp', 'out/x'); open('done', 'w'); open('never').read()")
    running = one.start(["--retries", "0"], ["--host", "n1,n2", "-n", "1"],
                        f'python3 -c "{write}"')
    waiting.until(lambda: whole.on("n0", f"ls {one.folder}/done 2>/dev/null || true"), "files")
    whole.on("n2", "pkill -x flock; pkill -x sleep")  # the keeper begins, with the oldest version
    second = f"{folder}/v0000000000000002/commit.protected"
    waiting.until(lambda: whole.on("n1", f"ls {second} 2>/dev/null || true"), "a protected one")
    assert one.count("n1", "n1", "commit.protected") == 1
    assert one.count("n2", "n1", "commit.local") == 2
    whole("kill", "n1")
    finish(running)


def test_a_keeper_whose_line_is_silent_gives_way(captured, whole):
    """The host of `backstay run` falls silent, then the one that has written the files is lost."""
    one = captured("n1", durable=False)
    running = one.start(["--retries", "0"], ["--host", "n1,n2", "-n", "1"],
                        f"{COPY} in/a in/b; read x <never")
    one.wait_for_protected("n1", 2)
    whole.on("n0", "pkill -STOP -f '[n]slaunch n|[b]ackstay run --job'")
    whole("kill", "n1")
    code, output = one.run([], ["--host", "n3,n2", "-n", "1"], "cmp in/a out/a && cmp in/b out/b",
                           on="n3")
    whole("kill", "n0")
    finish(running)
    assert code == 0 and "brought 2 captured files home" in output, output


def with_two_keepers(captured, whole):
    """A job whose host n1 is lost: n2 keeps the first version of its file, n3 the second one."""
    one = captured("n1", durable=False)
    write = ("import os; f = os.open('out/a', os.O_WRONLY | os.O_CREAT | os.O_TRUNC)\n"
             "for line in iter(lambda: open('never').read(), 'end'):\n"
             f" os.write(f, line.encode() * {BYTES}); os.fsync(f)")
    running = one.start(["--retries", "0", "--spares", "2"], ["--host", "n1,n2,n3", "-n", "1"],
                        f'python3 -c "{write}"')
    whole.on("n0", f"printf 1 >{one.folder}/never")
    one.wait_for_protected("n1", 1)
    whole.on("n2", "pkill -KILL -f '[k]eep-copies'")
    waiting.until(lambda: one.count("n3", "n1", "commit.local") == 1, "a copy on n3")
    versions = f"ls /var/tmp/backstay-root/{one.job}.files.n1 | grep ^v || true"
    first = whole.on("n3", versions)
    whole.on("n0", f"printf 2 >{one.folder}/never")
    waiting.until(lambda: first not in whole.on("n3", versions) and
                  one.count("n3", "n1", "commit.local") == 1, "another copy on n3")
    assert one.count("n2", "n1", "commit.local") == 1
    whole("kill", "n1")
    finish(running)
    return one


def test_an_older_file_of_an_earlier_keeper_is_no_trouble(captured, whole):
    one = with_two_keepers(captured, whole)
    whole.on("n2", f"cd /var/tmp/backstay-root/{one.job}.files.n1 && cp -r v* v0000000000000009 && "
                   "rm v0000000000000009/commit.local")  # a keeper was killed at its work
    code, output = one.run([], ["--host", "n2,n3", "-n", "1"], "true")
    assert code == 0 and "did not come home" not in output, output
    assert whole.on("n0", f"cd {one.folder}/out && stat -c %s a && tail -c 1 a && ls -A") == (
        f"{2 * BYTES}\n2a\n")
    assert one.count("n2", "n1", "*") == one.count("n3", "n1", "*") == 0


def test_an_older_copy_of_a_file_that_the_newest_keeper_leaves_stays_and_is_named(captured, whole):
    one = with_two_keepers(captured, whole)
    whole.on("n0", f"echo mine >{one.folder}/out/a")
    code, output = one.run([], ["--host", "n2,n3", "-n", "1"], "true")
    assert code == 0, output
    for keeper in ("n2", "n3"):
        assert f"-o DIR` on {keeper} fetches what is good of it" in output, output
        assert one.count(keeper, "n1", "commit.local") == 1
    code, output = one.run([], ["--host", "n2,n3", "-n", "1"], "true")
    assert code == 0 and "did not come home" not in output, output
    assert whole.on("n0", f"cat {one.folder}/out/a") == "mine\n"


def test_a_host_in_the_list_by_its_address_is_back_without_its_disk(captured, whole):
    one = captured("n1", durable=False)
    one.reach_by("""names = {"10.77.0.2": "n1", "10.77.0.3": "n2"}
words = [names.get(word, word) for word in words]""")
    hosts = ["--host", "10.77.0.2,10.77.0.3", "-n", "1"]
    running = one.start(["--retries", "0"], hosts, f"{COPY} in/a; read x <never")
    one.wait_for_protected("n1", 1)
    whole("kill", "n1")
    finish(running)
    whole("lose-disk", "n1")
    whole("restore-disk", "n1")
    whole("boot", "n1")
    whole.on("n0", f"rm {one.folder}/stuck")
    code, output = one.run([], hosts, "cmp in/a out/a")
    assert code == 0 and "brought 1 captured file home" in output, output


def test_a_host_that_does_not_tell_of_its_copies_is_named(captured, whole):
    one = captured(durable=False)
    one.reach_by("""if "'copies'" in words[-1]:
    sys.exit(1)""")
    code, output = one.run(["--spares", "1"], ["--host", "n1,n2", "-n", "1"], "true")
    assert code == 0 and "n2 does not tell whether it has copies" in output, output


def test_keepers_that_end_without_a_word_are_told(captured, whole):
    one = captured("n1", durable=False)
    running = one.start(["--retries", "0"], ["--host", "n1,n2", "-n", "1"],
                        f"{COPY} in/a; read x <never", failpoint="keeper.1=kill@1")
    end = threading.Timer(DEADLINE_S, running.kill)
    end.start()
    lines = iter(running.stdout.readline, "")
    told = next((line for line in lines if "without a word" in line), "")
    end.cancel()
    whole("kill", "n1")
    finish(running)
    assert "captured files of n1 are not copied to n2" in told, told


def test_a_storage_folder_of_all_hosts_gets_no_copies_and_its_agent_is_not_locked_out(captured,
                                                                                     whole):
    one = captured(durable=False)
    one.more = {"BACKSTAY_DIR": f"{one.folder}/store"}
    whole.on("n0", f"rm {one.folder}/stuck; mkdir -m 700 {one.folder}/store")
    running = one.start(["--spares", "1"], ["--host", "n1,n2", "-n", "1"],
                        f"read x <never; {COPY} in/a")
    end = threading.Timer(DEADLINE_S, running.kill)
    end.start()
    told = next(line for line in iter(running.stdout.readline, "") if "are not copied" in line)
    end.cancel()
    assert "captured files of n1 are not copied to n2" in told, told
    assert "is one folder for both" in told, told
    whole.on("n0", f"echo go >{one.folder}/never")
    code, output = finish(running)
    assert code == 0 and one.is_home("a"), output
