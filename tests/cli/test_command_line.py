"""Usage, configuration, completion, doctor, probe: everything that needs neither versions nor an
agent.
"""

import contextlib
import json
import os
import pathlib
import pty
import re
import shutil
import signal
import subprocess
import time

import pytest

from conftest import PROGRAM, ROOT

COMMANDS = ["run", "exec", "mount", "unmount",
            "checkpoint", "status", "top", "agent", "ls", "show", "verify", "rm", "copy",
            "doctor", "probe",
            "config", "completion", "version"]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_examples(world, command):
    done = world.run(command, "--help")
    assert done.returncode == 0 and "Example" in done.stdout and f"backstay {command}" in done.stdout
    assert done.stderr == ""
    # Words of people, none of the parser's: types, ranges, tables of values.
    assert not re.search(r"UINT|FLOAT|INT in|TEXT|->|POSITIVE", done.stdout), done.stdout
    assert "--json" in done.stdout


def listed(text, title=""):
    """The names that a page of help lists, under a title or at all."""
    return re.findall(r"^  ([a-z][a-z-]*)  +\S", text.split(title, 1)[1] if title else text, re.M)


def test_all_help_opens_with_one_example(world):
    page = world.run("--help").stdout
    pages = {(): page, **{(name,): world.run(name, "--help").stdout for name in listed(page)}}
    questions = listed(pages["plan",], "Commands:")
    assert set(COMMANDS) | {"plan"} < {words[0] for words in pages if words}
    assert {"interval", "cost", "advise"} < set(questions)
    pages |= {("plan", one): world.run("plan", one, "--help").stdout for one in questions}
    for words, text in pages.items():
        example, blank, *rest = text.splitlines()
        command = " ".join(["backstay", *words])
        assert re.match(rf'Example: (.* |eval "\$\()?{command}', example), (words, example)
        assert blank == "" and "Usage: " in text, words
        assert "Example:" not in "\n".join(rest) or words == ("plan",)
        assert "; `backstay" not in " ".join(text.split()), "examples in one row"


def test_help_of_the_agents_program_opens_with_an_example(world):
    agent = pathlib.Path(PROGRAM).with_name("backstayd")
    text = subprocess.run([agent, "--help"], capture_output=True, text=True, timeout=60,
                          check=True).stdout
    assert text.startswith("Example: backstayd ") and "TEXT" not in text


def test_help_lists_every_command(world):
    text = world.run("--help").stdout
    for command in COMMANDS + ["export"]:
        assert f"\n  {command} " in text


@pytest.mark.parametrize("words",
                         [["help", "no"], ["nonsense"], ["ls", "--nonsense"], ["show", "job", "x"],
                          ["rm"], ["completion", "fish"], ["run"], ["agent", "dance"]])
def test_wrong_usage_is_exit_code_2(world, words):
    done = world.run(*words)
    assert done.returncode == 2 and done.stderr and done.stdout == ""


@pytest.mark.parametrize("words",
                         [["nonsense"], ["ls", "--nonsense"], ["show", "job", 0],
                          ["agent", "dance"],
                                   ["export", "x", "--config", "/nowhere"]])
def test_wrong_usage_with_json_is_json(world, words):
    done = world.run(*words, "--json")
    assert done.returncode == 2 and done.stderr
    error = json.loads(done.stdout)["error"]
    assert error["code"] in ("invalid", "config") and error["message"]


def test_json_of_the_program_under_run_is_not_ours(world):
    done = world.run("run", "--nonsense", "--", "program", "--json")
    assert done.returncode == 2 and done.stdout == ""


@pytest.mark.parametrize("words",
                         [["show", "job", 0], ["verify", "job", "-1"], ["rm", "job", 3, "x"],
                          ["show", "job", "1.5"],
                                   ["show", "job", 2**64]])
def test_a_number_that_is_no_version_is_explained(world, words):
    done = world.run(*words)
    assert done.returncode == 2 and "they count from 1" in done.stderr and "e+308" not in done.stderr
    for words in (["top", "--count", -1], ["run", "--retries", -1, "--", "true"],
                  ["run", "--spares", "x", "--", "true"]):
        done = world.run(*words)
        assert done.returncode == 2 and f'"{words[2]}" is no whole number from 0 on' in done.stderr, done.stderr


@pytest.mark.parametrize("seconds", ["0", "-1", "inf", "nan", "1e300", "1 h"])
def test_seconds_that_cannot_be_are_refused(world, seconds):
    done = world.run("checkpoint", "job", f"--timeout={seconds}")
    assert done.returncode == 2 and "greater than 0 and at most 1000000000" in done.stderr


@pytest.mark.parametrize("seconds", ["0", "-1", "inf", "nan", "3601", "1s"])
def test_an_interval_that_cannot_be_is_refused(world, seconds):
    done = world.run("top", f"--interval={seconds}", "--count=1")
    assert done.returncode == 2 and f'"{seconds}" must be a number of seconds from 0.05 to 3600' in done.stderr


def test_a_level_that_does_not_exist_is_refused(world):
    done = world.run("checkpoint", "job", "--wait", "--level", "disk")
    assert done.returncode == 2, done
    assert '"disk" is none of local, protected and durable' in done.stderr, done
    assert world.run("checkpoint", "job", "--wait", "--level", "durable").returncode == 5


def test_version(world):
    assert world.run("version").stdout.startswith("backstay 0.")
    assert set(world.json("version")) == {"release", "protocol", "format"}


def test_runs_from_any_folder_through_a_link(world):
    link = world.folder / "linked"
    link.symlink_to(PROGRAM)
    done = subprocess.run([link, "version"], cwd="/", env=world.env, capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 0


# Configuration ------------------------------------------------------------------------------------

def write_config(world, text):
    path = world.folder / "c.toml"
    path.write_text(text)
    return path


def test_config_shows_what_holds(world):
    path = write_config(world, "[storage]\nkeep = 5\n")
    values = {k["name"]: k["value"] for k in world.json("config", "--config", path)["keys"]}
    assert values["storage.keep"] == 5 and values["pool.size_mib"] == 32 and values["storage.dir"] == str(world.dir)
    assert "keep = 5" in world.run("config", "--config", path).stdout


def test_config_explain_is_a_file_that_can_be_used(world):
    text = world.run("config", "--explain").stdout
    path = write_config(world, text)
    assert world.run("config", "--config", path).returncode == 0
    assert "BACKSTAY_STORAGE_KEEP" in text and "1 to 1000" in text


def test_config_write_is_a_file_for_this_machine(world):
    done = world.run("config", "--write")
    path = world.folder / "backstay.toml"
    text = path.read_text()
    assert done.returncode == 0 and "wrote backstay.toml" in done.stderr, done
    values = {k["name"]: k["value"] for k in world.json("config")["keys"]}
    assert values["storage.dir"] == str(world.dir) and f'\ndir = "{world.dir}"\n' in text
    assert "# keep = 2" in text and "of memory" in text and "free" in text
    everything = re.sub(r"^# (\w+ = )", r"\1", text, flags=re.M)
    whole = write_config(world, everything)
    assert world.run("config", "--config", whole).returncode == 0, "each comment is a valid key"
    again = world.run("config", "--write")
    assert again.returncode == 2 and "exists" in again.stderr and path.read_text() == text
    assert world.run("config", "--write", "other.toml").returncode == 0
    assert world.run("config", "--write", "/nowhere/c.toml").returncode != 0


def test_config_page_of_the_guide_is_up_to_date(world):
    page = world.run("config", "--explain", "--markdown").stdout
    assert page == (ROOT / "docs/guide/configuration.md").read_text(), \
        "run: backstay config --explain --markdown > docs/guide/configuration.md"


@pytest.mark.parametrize("text, says", [
    ("[storage]\nkepe = 2\n", ['c.toml:2:1', '"storage.kepe"', 'did you mean "storage.keep"']),
    ("[storge]\nkeep = 2\n", ["c.toml:1:2", "did you mean [storage]"]),
    ("[storage]\nkeep = 'two'\n", ["c.toml:2:8", "must be an integer"]),
    ("[storage]\nkeep = 0\n", ["c.toml:2:8", "1 to 1000"]),
    ("[protect]\nparity = '9,9'\n", ["c.toml:2:10", "parity (9, 9)", "1 to 4 parity blocks"]),
    ("[storage\n", ["c.toml:1:"]),
])
def test_a_wrong_configuration_is_named_by_every_command(world, text, says):
    path = write_config(world, text)
    for words in (["config"], ["ls"], ["status"], ["run", "--", "true"]):
        done = world.run(words[0], "--config", path, *words[1:])
        assert done.returncode == 2, words
        assert all(part in done.stderr for part in says), done.stderr


def test_a_named_configuration_must_exist(world):
    done = world.run("config", "--config", "/nowhere/c.toml")
    assert done.returncode == 2 and "/nowhere/c.toml" in done.stderr
    done = world.run("config", env={"BACKSTAY_CONFIG": "/nowhere/d.toml"})
    assert done.returncode == 2 and "BACKSTAY_CONFIG" in done.stderr


def test_config_file_is_found_in_the_working_folder(world):
    assert world.run("config", "--file").returncode == 3
    (world.folder / "backstay.toml").write_text("")
    done = world.run("config", "--file")
    assert (done.returncode, done.stdout) == (0, "./backstay.toml\n")


# Completion ---------------------------------------------------------------------------------------

def completed(world, line):
    script = world.run("completion", "bash").stdout
    words = line.split(" ")
    ask = (f"{script}\nCOMP_WORDS=({' '.join(repr(w) for w in words)}); "
           f"COMP_CWORD={len(words) - 1}; _backstay; "
           'printf "%s\\n" "${COMPREPLY[@]}"')
    env = {**world.env, "PATH": f"{pathlib.Path(PROGRAM).parent}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", ask], env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_bash_completion(world):
    assert completed(world, "backstay ver") == ["verify", "version"]
    assert completed(world, "backstay rm --old") == ["--older-than"]
    assert completed(world, "backstay agent st") == ["start", "stop", "status"]
    world.golden()
    assert completed(world, "backstay show gol") == ["golden"]


def test_completion_knows_what_python_takes(world):
    assert completed(world, "backstay export --reg") == ["--region"]
    assert completed(world, "backstay report --mt") == ["--mtti"]
    assert completed(world, "backstay plan survive --js") == ["--json"]
    world.golden()
    assert completed(world, "backstay export gol") == ["golden"]


def test_completion_as_json(world):
    for shell in ("bash", "zsh"):
        document = world.json("completion", shell)
        assert document == {"shell": shell, "script": world.run("completion", shell).stdout}


def test_zsh_completion_parses(world):
    script = world.run("completion", "zsh").stdout
    assert script.startswith("#compdef backstay\n")
    if not shutil.which("zsh"):
        pytest.skip("zsh is not installed")
    subprocess.run(["zsh", "-n"], input=script, text=True, check=True, timeout=60)


# This machine -------------------------------------------------------------------------------------

def test_doctor(world):
    report = world.json("doctor", "--quick")
    checks = {check["check"]: check for check in report["checks"]}
    assert report["good"] and checks["storage"]["result"] != "fail"
    assert {"O_DIRECT", "io_uring", "memlock", "memory", "huge pages", "socket", "agent", "MPICH",
            "Open MPI", "transparent"} <= set(checks)
    assert all(check["advice"] for check in report["checks"] if check["result"] != "ok")
    assert checks["transparent"]["result"] == "ok", checks["transparent"]
    assert not world.dir.exists() and not (world.folder / "agent").exists(), "doctor only looks"


def test_doctor_says_what_to_do(world):
    report = world.json("doctor", "--quick", code=1, env={"BACKSTAY_DIR": "/proc/nowhere"})
    storage = [check for check in report["checks"] if check["check"] == "storage"][0]
    assert storage["result"] == "fail" and "storage.dir" in storage["advice"]
    long = "/tmp/" + "x" * 120
    report = world.json("doctor", "--quick", code=1, env={"BACKSTAY_AGENT_SOCKET": long})
    assert any("agent.socket" in check["advice"] for check in report["checks"])
    report = world.json("doctor", "--quick", code=1,
                        env={"BACKSTAY_AGENT_SOCKET": "/proc/nowhere/s"})
    socket = [check for check in report["checks"] if check["check"] == "socket"][0]
    assert socket["result"] == "fail" and "/proc/nowhere" in socket["found"] and "agent.socket" in socket["advice"]
    report = world.json("doctor", "--quick", code=1, env={"BACKSTAY_STORAGE_KEEP": "0"})
    assert "1 to 1000" in report["checks"][0]["found"]


def mended(world, words, env):
    """What doctor finds once the commands of --fix were given to a shell with these settings."""
    done = world.run("doctor", "--quick", "--fix", env=env)
    assert done.returncode == 1
    script = "\n".join(line for line in done.stdout.splitlines()
                       if line.startswith(words)) + f"\n{PROGRAM} doctor --quick --json"
    again = subprocess.run(["bash", "-ec", script], env={**world.env, **env}, cwd=world.folder,
                           capture_output=True, text=True, timeout=60)
    return {one["check"]: one["result"] for one in json.loads(again.stdout)["checks"]}, done.stdout


@pytest.mark.parametrize("check, words, env", [
    ("storage", "export BACKSTAY_DIR=", {"BACKSTAY_DIR": "/proc/nowhere"}),
    ("socket", "export BACKSTAY_AGENT_SOCKET=", {"BACKSTAY_AGENT_SOCKET": "/tmp/" + "x" * 120}),
    ("memory", "export BACKSTAY_POOL_SIZE_MIB=", {"BACKSTAY_POOL_SIZE_MIB": str(1 << 22)}),
    ("durable", "mkdir -p ", {}),
])
def test_the_commands_of_doctor_fix_mend_what_it_found(world, check, words, env):
    if check == "durable":
        env = {"BACKSTAY_DURABLE_DIR": str(world.folder / "sha red")}
    results, printed = mended(world, words, env)
    assert f"# {check}: " in printed
    assert results[check] != "fail", printed
    assert not [line for line in printed.splitlines()
                if not line.startswith(("#", "export ", "sudo ", "apt-get ", "sysctl ", "echo ",
                                        "mkdir ", "chmod ", "backstay "))]


@pytest.mark.parametrize("title, package", [("MPICH", "mpich libmpich-dev"),
                                            ("Open MPI", "openmpi-bin libopenmpi-dev")])
def test_doctor_names_the_packages_of_an_mpi_that_is_not_there(world, title, package):
    def found(program, path):
        done = subprocess.run([program, "doctor", "--quick", "--json"], cwd=world.folder,
                              env=world.env | {"PATH": path}, capture_output=True, text=True,
                              timeout=60, check=False)
        return [one for one in json.loads(done.stdout)["checks"] if one["check"] == title][0]
    no_launcher = found(PROGRAM, "/nowhere")
    assert no_launcher["result"] == "note" and package in no_launcher["advice"]
    alone = world.folder / "backstay"  # as one that was built where no MPI was
    shutil.copy2(PROGRAM, alone)
    tools = world.folder / "tools"
    tools.mkdir()
    for launcher in ("mpiexec.mpich", "mpirun.openmpi"):
        (tools / launcher).symlink_to("/bin/true")
    assert package in found(alone, "/nowhere")["advice"]
    not_built = found(alone, str(tools))
    assert "was not built" in not_built["found"] and package in not_built["advice"]


def test_doctor_looks_at_the_durable_directory(world):
    def durable(path, code):
        report = world.json("doctor", "--quick", code=code, env={"BACKSTAY_DURABLE_DIR": str(path)})
        return [check for check in report["checks"] if check["check"] == "durable"][0]
    shared = world.folder / "shared"
    assert durable(shared, 1)["result"] == "fail"
    shared.mkdir()
    assert durable(shared, 0)["result"] == "note" and "same file system" in durable(shared,
        0)["found"]


def test_probe_that_cannot_be_kept_measures_nothing(world):
    done = world.run("probe", "--size-mib", 8, env={"XDG_CACHE_HOME": "/proc/nowhere"})
    assert done.returncode == 1 and "XDG_CACHE_HOME" in done.stderr and "/proc/nowhere/backstay" in done.stderr
    assert not world.dir.exists()


def test_probe_is_kept(world):
    assert world.run("probe", "--show").returncode == 3
    others = world.folder / "others"
    others.write_text("precious")
    (world.folder / "cache/backstay").mkdir(parents=True)
    (world.folder / "cache/backstay/probe.json.tmp").symlink_to(others)
    measured = world.json("probe", "--size-mib", 8, "--processes", 2)
    assert measured["memory"]["copy_bytes_per_s"] > 0 and measured["network"]["scope"] == "loopback only"
    assert measured["disk"]["write_bytes_per_s"] > 0 and measured["disk"]["read_bytes_per_s"] > 0
    assert json.loads((world.folder / "cache/backstay/probe.json").read_text()) == measured
    assert world.json("probe", "--show") == measured
    assert list(world.dir.iterdir()) == []
    assert others.read_text() == "precious"


def test_probe_shows_a_bar_on_a_terminal(world):
    """It takes more than a second: the network alone is measured for one."""
    ours, theirs = pty.openpty()
    env = {**world.env, "TERM": "xterm"}
    words = [PROGRAM, "probe", "--size-mib", "8", "--processes", "2"]
    with subprocess.Popen(words, env=env, cwd=world.folder, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=theirs):
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # EIO: the other end is closed
            while part := os.read(ours, 4096):
                shown += part
        os.close(ours)
    assert re.search(rb"network \[=+ +\]  75 %  [0-9.]+ s", shown), shown
    assert shown.rpartition(b"75 %")[2].count(b"\r\x1b[K") == 1, "it is taken away"


def test_an_agent_that_hangs_is_named_in_time(world):
    assert world.run("agent", "start").returncode == 0
    pid = world.json("agent", "status")["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        for words in (("agent", "stop", "--timeout", "1"), ("checkpoint", "x", "--timeout", "1"),
                      ("agent", "start")):
            begin = time.monotonic()
            done = world.run(*words, env={"BACKSTAY_AGENT_START_TIMEOUT_S": "1"})
            assert done.returncode == 5, done
            assert f"kill -9 {pid}" in done.stderr
            assert time.monotonic() - begin < 10
        done = world.run("checkpoint", "x", "--timeout", "3")
        assert f"the agent (pid {pid}) has not answered yet; waiting 3 s at most" in done.stderr, done
    finally:
        os.kill(pid, signal.SIGCONT)  # it does now what it was asked for, and ends


def test_output_that_cannot_be_written_is_no_success(world):
    world.golden()
    for words in (["ls"], ["show", "golden", "--json"], ["config", "--explain"]):
        with open("/dev/full", "w") as full:
            done = subprocess.run([PROGRAM, *words], env=world.env, cwd=world.folder,
                                  stdin=subprocess.DEVNULL,
                                  stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
        assert done.returncode == 1 and "No space left" in done.stderr, (words, done)


def test_a_configuration_without_end_is_refused(world):
    done = world.run("config", "--config", "/dev/zero")
    assert done.returncode == 2 and "more than 1 MiB" in done.stderr


def test_a_command_that_does_not_exist_names_the_nearest(world):
    for word, meant in (("sttus", "status"), ("exprot", "export"), ("veirfy", "verify")):
        done = world.run(word)
        assert done.returncode == 2 and f"no command '{word}'; did you mean '{meant}'?" in done.stderr, done
    assert world.json("sttus", code=2)["error"]["code"] == "invalid"


@pytest.mark.parametrize("words, command, wrong, meant", [
    (["run", "--transparant", "--", "true"], "run", "--transparant", "--transparent"),
    (["run", "--interval", "1", "--retry=3", "--", "true", "--jbo"], "run", "--retry", "--retries"),
    (["agent", "stop", "--nwo"], "agent", "--nwo", "--now"),
    (["ls", "--fils"], "ls", "--fils", "--files")])
def test_an_option_that_does_not_exist_names_the_nearest(world, words, command, wrong, meant):
    done = world.run(*words)
    assert done.returncode == 2 and (f"backstay {command} has no option {wrong}; did you mean "
                                     f"{meant}?") in done.stderr, done


def test_a_closed_standard_output_is_an_error_in_every_language(world):
    for words in (["ls"], ["plan", "interval", "--cost", "300", "--mtti", "86400"]):
        done = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", PROGRAM, *words], env=world.env,
                              cwd=world.folder,
                              stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                              timeout=60)
        assert done.returncode != 0 and "Traceback" not in done.stderr and done.stderr.strip(), (
            words, done)
