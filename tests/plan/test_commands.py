"""`backstay plan`: keys that programs rely on, help, and every kind of wrong input as one line that
names the option.
"""

import pathlib
import re

import pytest
from backstay.cli.plan import COMMANDS, output
from backstay.plan.check import PlanError
from runner import result, run, strict

RED = ("model", "--system", "red-storm", "--processors", 65536)


def test_model_prints_what_is_promised():
    found = result(*RED, "--method", "pfs")
    assert {"latency_s", "interval_s", "throughput_bytes_per_s", "overhead_fraction",
            "mtti_s"} <= set(found)
    assert found["latency_s"] == pytest.approx(655.36) and found["interval_s"] == pytest.approx(
        1366.4, abs=0.1)
    assert found["overhead_fraction"] == pytest.approx(0.324, abs=5e-4)
    assert found["throughput_bytes_per_s"] == pytest.approx(50e9) and found["mtti_s"] == pytest.approx(2407.65, abs=0.01)
    assert result("model", "--system", "jaguar", "--processors",
                  131072)["overhead_fraction"] == pytest.approx(0.708, abs=5e-4)


@pytest.mark.parametrize("method", ["pfs", "lwfs", "overlay"])
@pytest.mark.parametrize("system", ["red-storm", "bluegene-l", "jaguar", "petaflop"])
def test_model_for_every_machine_and_method(system, method):
    for processors in (1, 32, 8192, 131072):
        found = result("model", "--system", system, "--processors", processors, "--method", method)
        assert 0 < found["overhead_fraction"] < 1 and found["method"] == method


def test_model_lists_machines_and_reads_more(tmp_path):
    names = [one["name"] for one in result("model", "--list")["systems"]]
    assert {"red-storm", "bluegene-l", "jaguar", "petaflop", "stampede", "titan",
            "taihulight"} <= set(names)
    (tmp_path
     / "my.toml").write_text("[mine]\nprocessors = 4\nmemory_per_processor_bytes = "
                             "2\nstorage_bytes_per_s = 1\n")
    assert result("model", "--system", "mine", "--systems",
                  tmp_path / "my.toml")["latency_s"] == 4.0


def test_fill_time_prints_what_is_promised():
    found = result("fill-time", "--ram", "205e12", "--storage", "10e15", "--device", "2e12",
                   "--device-bandwidth", "100e6")
    assert found["ideal_checkpoint_s"] == pytest.approx(410.0) and found["expected_checkpoint_s"] == pytest.approx(4100.0)
    assert result("fill-time", "--system", "stampede")["ideal_checkpoint_s"] == pytest.approx(410.0)


def test_survive_prints_what_is_promised():
    found = result("survive", "--nodes", 2048, "--replicas", 4, "--failures", 112)
    assert found["probability"] >= 0.999 and found["probability_at_least"] <= found["probability"]
    assert abs(result("survive", "--nodes", 2048, "--replicas", 4, "--target",
                      0.999)["allowed_failures"] - 112) <= 1
    assert [row["target"] for row in result("survive", "--nodes", 64, "--replicas",
                                            2)["allowed"]] == [0.9, 0.99, 0.999]


def test_survive_draws_with_a_seed():
    words = ("survive", "--nodes", 64, "--replicas", 2, "--failures", 8, "--monte-carlo", 2000,
             "--seed")
    first, again, other = result(*words, 1), result(*words, 1), result(*words, 2)
    assert first == again and first["monte_carlo"]["share"] != other["monte_carlo"]["share"]
    assert first["monte_carlo"]["low"] <= first["probability"] <= first["monte_carlo"]["high"]


def test_interval_prints_what_is_promised():
    found = result("interval", "--cost", 300, "--mtti", 86400, "--restart", 600)
    assert found["young_s"] == pytest.approx(7200) and found["daly_s"] == pytest.approx(7001.39,
        abs=0.01)
    parts = found["expected"]
    total = sum(parts[f"{part}_s"] for part in ("solve", "checkpoint", "rework", "restart"))
    assert total == pytest.approx(parts["wall_clock_s"]) and parts["efficiency"] == pytest.approx(
        0.9127, abs=1e-4)
    assert result("interval", "--cost", 300, "--node-mtti", 86400 * 64, "--nodes",
                  64)["mtti_s"] == 86400


def test_interval_says_when_a_job_hardly_gets_on():
    found = result("interval", "--cost", 300, "--mtti", 100)
    assert found["daly_s"] == 100 and "Daly's other branch" in found["notes"][0]
    assert "no checkpoint pays" in result("interval", "--cost", 300, "--mtti", 1e6, "--solve",
                                          10)["notes"][0]


def test_what_json_cannot_hold_is_refused():
    with pytest.raises(PlanError, match="too large"):
        output.plain({"a": [1.0, float("inf")]})


def test_the_other_questions_print_their_keys():
    found = result("strategy", "--np", 65536, "--ng", 1024)
    assert found["speedup_unblocked"] == pytest.approx(64) and found["production_improvement"] == pytest.approx(25.5)
    assert result("strategy", "--np", 64, "--ng", 1, "--between",
                  6)["blocked_fraction"] == pytest.approx(0.5)
    found = result("multilevel", "--level", "local:5:10:20000", "--level", "durable:300:600:2e6")
    assert [row["name"] for row in found["levels"]] == ["local", "durable"]
    assert found["efficiency"] > found["strongest_alone"]["efficiency"]
    found = result("multilevel", "--level", "local:100:10:1e7", "--level", "durable:30:600:2e5")
    assert found["levels"][0] == {"name": "local", "used": False, "interval_s": None, "every": None,
                                  "free_interval_s": pytest.approx((2 * 100
                                      * 1e7) ** 0.5)}  # fmt: skip
    found = result("cost", "--nodes", 1000, "--checkpoint", "50e12")
    assert found["local_cost"] == 334_000 and (found["local_versions"],
                                               found["shared_versions"]) == (10, 1)
    found = result("aggregation", "--profile", "lu.C.64")
    assert found["without_pool"]["requests"] > 50 * found["with_pool"]["requests"] and found["blocked_speedup"] > 1


@pytest.mark.parametrize("writers, improvement, says", [
    (4096, None, ["no process is left", "eq. 1 needs --ratio-before"]),
    (4000, None, ["more than half", "eq. 1 needs"]),
    (2049, None, ["more than half", "eq. 1 needs"]), (2048, None, ["eq. 1 needs"]),
    (257, None, ["eq. 1 needs"]), (256, 25.5, ["ratios of paper 004's machine"]),
    (64, 25.5, ["ratios of paper 004's machine"]),
])  # fmt: skip
def test_no_gain_is_claimed_without_processes_that_compute_on(writers, improvement, says):
    words = ("strategy", "--np", 4096, "--ng", writers)
    found = result(*words)
    assert found["production_improvement"] == improvement and found["speedup_unblocked"] == pytest.approx(4096 / writers)
    assert len(found["notes"]) == len(says) and all(part in note for part,
                                                    note in zip(says, found["notes"], strict=True))
    assert ("not known" in run(*words)[1]) == (improvement is None)
    measured = result(*words, "--ratio-before", 100, "--ratio-after", 30, "--steps", 40)
    assert measured["production_improvement"] == 2 and not any("eq. 1" in note for note
        in measured["notes"])


def test_the_papers_own_case_needs_no_note():
    assert not result("strategy", "--np", 65536, "--ng", 1024)["notes"]


def test_memory_that_does_not_fit_the_storage_is_said():
    words = ("fill-time", "--ram", "205e12", "--storage", "10e12", "--device", "2e12",
             "--device-bandwidth", "100e6")
    assert "(205.0 TB) does not fit into the storage (10.00 TB)" in result(*words)["notes"][0]
    assert not result(*words, "--checkpoint", "10e12")["notes"] and not result("fill-time",
        "--system", "stampede")["notes"]


def test_few_nodes_show_the_bound():
    """For 8 nodes with 1 replica e^(−λ) allows 2 losses at 75 %; drawn ones say that it is 1, as
    the bound does.
    """
    found = result("survive", "--nodes", 8, "--replicas", 1, "--target", 0.75)
    assert (found["allowed_failures"], found["allowed_failures_at_least"]) == (2,
        1) and "by the bound 1 − λ it is 1 node at 75 %" in found["notes"][0]
    drawn = result("survive", "--nodes", 8, "--replicas", 1, "--failures", 2, "--monte-carlo",
                   20_000)
    assert drawn["monte_carlo"]["high"] < 0.75 < drawn["probability"] and "too hopeful" in drawn["notes"][0]
    for words in (("--nodes", 64, "--replicas", 1, "--failures", 3),
                  ("--nodes", 32, "--parity", "3+1"),
                  ("--nodes", 32, "--replicas", 4, "--failures", 5)):
        assert not result("survive", *words)["notes"], words
    assert not result("survive", "--nodes", 2048, "--replicas", 4)["notes"]


def test_same_room_buys_as_many_systems_as_are_needed():
    found = result("cost", "--nodes", 1000, "--same-room", "--years", 1)
    assert found["shared_cost"] == 10 * (1.1e6
                                         + 16570) and found["shared_room_bytes"] == pytest.approx(
                                             540e12)
    assert found["local_room_bytes"] == pytest.approx(500e12)


@pytest.mark.parametrize("text, says", [
    ("size,count\n1,2\n", ":1: the first line must be size_bytes,count"),
    ("", ":1: the first line"), ("size_bytes,count\n", "holds no write"),
    ("size_bytes,count\n1,2\n3\n", ":3: 1 column;"),
    ("size_bytes,count\n1,x\n", ":2: count must be a number"),
    ("size_bytes,count\n0,1\n", ":2: size_bytes must be a number, at least 1"),
    ("size_bytes,count\n4,nan\n", ":2: count"),
    ("size_bytes,count\n4,-1\n", ":2: count"), ("size_bytes,count\n4,0\n", "holds no write"),
])  # fmt: skip
def test_a_wrong_histogram_names_line_and_column(tmp_path, text, says):
    path = tmp_path / "writes.csv"
    path.write_text(text)
    code, out, err = run("aggregation", "--histogram", path)
    assert (code, out) == (2,
                           "") and "--histogram" in err and f"{path}" in err and says in err and err.count("\n") == 1


def test_a_histogram_of_ones_own(tmp_path):
    (tmp_path / "writes.csv").write_text("size_bytes,count\n100,50\n\n1000000,10\n")
    found = result("aggregation", "--histogram", tmp_path / "writes.csv", "--processes", 4)
    assert found["data_bytes"] == 4 * (5000
                                       + 10_000_000) and found["without_pool"]["requests"] == 40
    assert run("aggregation", "--histogram", tmp_path / "no.csv")[0] == 3


@pytest.mark.parametrize("text, says", [
    ("[a]\nprice = 3\n", ':1: a needs kind = "local" or "shared"'),
    ('[a]\nkind = "locl"\n', ":1: a needs kind"),
    ('[a]\nkind = "local"\ndisk_price = 1\n', ":1: a needs disk_bytes"),
    ('[a]\nkind = "shared"\nprice = 1\ndisk_bytes = 3\n', ":4: disk_bytes does not"),
    ('[a]\nkind = "shared"\nprise = 1\n', ":3: unknown key prise; did you mean price"),
    ('[a]\nkind = "shared"\nprice = 0\n', ":3: price must be"),
])  # fmt: skip
def test_wrong_prices_name_line_and_key(tmp_path, text, says):
    (tmp_path / "p.toml").write_text(text)
    code, _, err = run("cost", "--list", "--prices", tmp_path / "p.toml")
    assert code == 2 and f"--prices {tmp_path / 'p.toml'}{says}" in err


# Help and errors
# --------------------------------------------------------------------------------------------------

def test_help_lists_every_question():
    code, out, _ = run("--help")
    assert code == 0 and all(re.search(rf"^  {name}  +[A-Z].*[.]$", out, re.M) for name in COMMANDS)
    code, out, err = run()
    assert (code, out) == (2, "") and "interval" in err


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_examples_that_work(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some write files
    code, out, err = run(name, "--help")
    assert (code, err) == (0,
                           "") and "Examples:" in out and "Exit codes:" in out and "--json" in out
    shown = re.findall(rf"^ +backstay plan ({name} [^(\n]+)", out, re.M)
    assert len(shown) >= 2
    for line in shown:
        words = line.split()
        if not {"--systems", "--histogram", "--prices", "--trace", "--creates",
                "--strategies", "--job"} & set(words):  # a file or job of the reader's
            assert run(*words)[0] == 0, line


LOG = pathlib.Path(__file__).parents[2] / "docs" / "plan" / "failures.csv"
# The option marked with ! is the one that the message must name.
WRONG = [
    "interval !--cost 0 --mtti 5", "interval !--cost -1 --mtti 5", "interval !--cost nan --mtti 5",
    "interval !--cost inf --mtti 5",
    "interval !--mtti 0 --cost 5", "interval !--mtti x --cost 5",
    "interval --cost 1 --mtti 5 !--restart -1",
    "interval --cost 1 --mtti 5 !--solve 0", "interval --cost 1 --mtti 5 !--interval 1e99",
    "interval !--cost 1e6 --mtti 1",
    "interval --cost 1 --mtti 5 !--nodes 4", "interval --cost 1 --node-mtti 5 !--nodes 0",
    "model !--system red-strom", "model --system red-storm !--processors 0",
    "model --system red-storm !--processors 1.5",
    "model --system red-storm !--method nfs",
    "model --system red-storm --method overlay !--staging-memory 0",
    "model --system red-storm !--staging-memory 1", "model --system red-storm !--startup -1",
    "model !--system ccr-ub --processors 4",
    "model !--system stampede --method overlay",
    "fill-time !--ram 0 --storage 1 --device 1 --device-bandwidth 1",
    "fill-time !--device -1 --ram 1 --storage 1 --device-bandwidth 1",
    "fill-time --system titan !--observed-factor 0", "fill-time --system titan !--checkpoint 1e18",
    "survive --nodes 8 !--replicas 8", "survive --nodes 8 !--replicas 0",
    "survive !--nodes 1 --replicas 1", "survive !--nodes -4 --replicas 1",
    "survive --nodes 8 --replicas 1 !--failures 9", "survive --nodes 8 --replicas 1 !--failures -1",
    "survive --nodes 8 --replicas 1 !--target 1", "survive --nodes 8 --replicas 1 !--target 0",
    "survive --nodes 8 --replicas 1 !--target nan",
    "survive --nodes 8 --replicas 1 !--failures 1 --target 0.9", "survive --nodes 8 !--partners 8",
    "survive --nodes 8 !--parity 3",
    "survive --nodes 8 !--parity 0+1", "survive --nodes 8 !--parity 8+1",
    "survive --nodes 8 --replicas 1 !--domain-size 3",
    "survive --nodes 8 --replicas 1 !--domain-size 0",
    "survive --nodes 8 --replicas 1 !--ignore-domains",
    "survive --nodes 8 --replicas 1 --failures 1 !--monte-carlo 0",
    "survive --nodes 8 --replicas 1 --failures 1 !--monte-carlo 999999999",
    "survive --nodes 8 --replicas 1 !--monte-carlo 5",
    "survive --nodes 8 !--parity 99999999999999999999+1",
    f"survive --nodes 8 !--parity {5000 * '9'}+1", f"replay --trace {LOG} !--cost 1e-40",
    "multilevel !--level a:1:1", "multilevel !--level a:0:1:5", "multilevel !--level a:1:nan:5",
    "multilevel !--level a:1:1:x",
    "multilevel !--level a:1:1:5 --level a:1:1:5", "multilevel !--level :1:1:5",
    "multilevel" + " !--level a:1:1:1" * 9,
    "strategy !--np 0 --ng 1", "strategy --np 4 !--ng 5", "strategy --np 4 --ng 1 !--size 0",
    "strategy --np 4 --ng 1 !--writer-bandwidth 0",
    "strategy --np 4 --ng 1 !--collective-bandwidth -1",
    "strategy --np 4 --ng 1 !--perceived-bandwidth 0", "strategy --np 4 --ng 1 !--blocked 2",
    "strategy --np 4 --ng 1 !--blocked nan", "strategy --np 4 --ng 1 --blocked 0.1 !--between 3",
    "strategy --np 4 --ng 1 !--between 0",
    "strategy --np 4 --ng 1 !--steps 0", "strategy --np 4 --ng 1 !--ratio-before -1",
    "strategy --np 4 --ng 1 !--ratio-after -1",
    "cost !--nodes 0", "cost --nodes 4 !--local mid-range-san", "cost --nodes 4 !--shared x",
    "cost --nodes 4 !--replicas -1", "cost --nodes 4 !--parity 3",
    "cost --nodes 4 !--parity 3+1 --replicas 1", "cost --nodes 4 !--years -1",
    "cost --nodes 4 !--checkpoint 0",
    "aggregation !--profile x", "aggregation --profile lu.C.64 !--processes 0",
    "aggregation --profile lu.C.64 !--pool 0",
    "aggregation --profile lu.C.64 !--buffer 1e9",
    "aggregation --profile lu.C.64 !--disk-bandwidth 0",
    "aggregation --profile lu.C.64 !--request-time -1",
    "aggregation --profile lu.C.64 !--copy-bandwidth 0",
    "aggregation --profile lu.C.64 !--merge-below -1",
    "survive --nodes 8 --replicas 1 --failures 1 --monte-carlo 5 !--seed -1",
    "survive --nodes 8 --parity 2+1 !--replicas 2",
    f"replay --trace {LOG} !--cost 0", f"replay --trace {LOG} --cost 1 !--restart -1",
    f"replay --trace {LOG} --cost 1 !--window nan",
    f"replay --trace {LOG} --cost 1 !--system 3", f"replay !--trace {LOG} --cost 1 --window 1e9",
    "validate !--jobs 0", "validate !--jobs 1.5", "validate --jobs 8 !--seed -1",
]  # fmt: skip

MISSING = [
    ("interval --mtti 5", "--cost"), ("interval --cost 5", "--mtti"),
    ("interval --cost 5 --node-mtti 7", "--nodes"), ("model", "--system"),
    ("model --system ccr-ub", "--processors"), ("fill-time", "--ram"),
    ("fill-time --ram 3", "--storage"), ("survive --replicas 1", "--nodes"),
    ("survive --nodes 8", "--replicas"), ("multilevel", "--level"), ("strategy --ng 4", "--np"),
    ("strategy --np 4", "--ng"), ("cost", "--nodes"),
    ("aggregation", "--profile"), ("replay --cost 3", "--trace"),
    (f"replay --trace {LOG}", "--cost"),
]  # fmt: skip
LINES = [(line.replace("!", ""), re.search(r"!(\S+)", line)[1]) for line in WRONG] + MISSING


@pytest.mark.parametrize("line, option", LINES, ids=lambda one: one.replace(" ", "_"))
def test_wrong_input_is_one_line_that_names_the_option(line, option):
    name = line.split()[0]
    code, out, err = run(*line.split())
    assert (code, out) == (2,
                           "") and err.count("\n") == 1 and err.startswith(
                               f"backstay plan {name}: ")
    assert re.search(rf"{option}\b", err) and "Traceback" not in err
    code, out, _ = run(*line.split(), "--json")
    error = strict(out)["error"]
    assert code == 2 and option in error["message"] and error["code"] == "invalid"


def test_a_missing_file_is_exit_code_3(tmp_path):
    code, out, err = run("model", "--system", "mine", "--systems", tmp_path / "no.toml", "--json")
    assert code == 3 and strict(out)["error"]["code"] == "not_found" and err.count("\n") == 1
    code, _, err = run("model", "--system", "mine", "--systems", tmp_path)
    assert code == 1 and err.count("\n") == 1


def test_a_wrong_file_names_line_and_key(tmp_path):
    path = tmp_path / "my.toml"
    path.write_text("[mine]\nprocesors = 3\n")
    code, _, err = run("model", "--system", "mine", "--systems", path)
    assert code == 2 and f"--systems {path}:2: unknown key procesors; did you mean processors" in err
    path.write_bytes(b"\xff\xfe\x00")
    assert "UTF-8" in run("model", "--system", "mine", "--systems", path)[2]
    for text, says in (("x = " + "[" * 5000, ": not TOML"),
                       ("[mine]\nprocessors = 1" + "0" * 20,
                        ":2: processors must be a whole number up to 2^53"),
                       ("[mine]\nram_bytes = 1e60",
                        ":2: ram_bytes must be a number above 0, up to 1e+50")):  # fmt: skip
        path.write_text(text)
        code, _, err = run("model", "--system", "mine", "--systems", path)
        assert code == 2 and f"--systems {path}{says}" in err and err.count("\n") == 1
