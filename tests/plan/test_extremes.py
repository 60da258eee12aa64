"""Extreme and senseless values of every option: a result in strict JSON, or one line and exit code
2; never a traceback or a warning.
"""

import pathlib
import random
import warnings

import pytest
from backstay.cli.plan import COMMANDS
from runner import run, strict

LOG = str(pathlib.Path(__file__).parents[2] / "docs" / "plan" / "failures.csv")

SEED, DRAWS = 20_261_124, 150
NUMBERS = ["0", "-1", "1", "2", "3", "7.5", "64", "1000", "86400", "1e-300", "1e-49", "1e-30",
           "1e-9", "1e9", "1e15", "1e300", "1e308", "nan", "inf", "-inf", "x", ""]
COUNTS = ["0", "-1", "1", "2", "3", "8", "64", "1000", "100000", "99999999999999999999", "1e3",
          "1e400", "1.5", "x"]
SHARES = ["0", "1", "0.5", "0.999", "1e-300", "-0.1", "1.1", "nan", "x"]
OPTIONS = {
    "interval": {"--cost": NUMBERS, "--mtti": NUMBERS, "--restart": NUMBERS, "--solve": NUMBERS,
                 "--interval": NUMBERS,
                 "--node-mtti": NUMBERS, "--nodes": COUNTS},
    "model": {"--system": ["red-storm", "petaflop", "stampede", "ccr-ub", "x"],
              "--processors": COUNTS, "--method": ["pfs", "lwfs", "overlay"],
              "--staging-memory": NUMBERS, "--startup": NUMBERS},
    "fill-time": {"--ram": NUMBERS, "--storage": NUMBERS, "--device": NUMBERS,
                  "--device-bandwidth": NUMBERS, "--checkpoint": NUMBERS,
                  "--observed-factor": NUMBERS, "--system": ["titan", "red-storm"]},
    "survive": {"--nodes": COUNTS, "--replicas": COUNTS, "--partners": COUNTS,
                "--parity": ["2+1", "14+2", "0+1", "99999999999999999999+1", "1+",
                             "9" * 5000 + "+1"],
                "--failures": COUNTS, "--target": SHARES, "--domain-size": COUNTS},
    "strategy": {"--np": COUNTS, "--ng": COUNTS, "--size": NUMBERS,
                 "--collective-bandwidth": NUMBERS, "--writer-bandwidth": NUMBERS,
                 "--perceived-bandwidth": NUMBERS, "--blocked": SHARES, "--between": NUMBERS,
                 "--ratio-before": NUMBERS,
                 "--ratio-after": NUMBERS, "--steps": NUMBERS},
    "multilevel": {"--level": [f"l{i}:{c}:{r}:{m}" for i,
                               (c, r, m)
                               in enumerate([(5, 10, 2e4), (0, 1, 1), (1e300, 1, 1e-300),
                                             (1e-300, 0, 1e300),
                               ("nan", 1, 1), (1e9, 1e9, 1), (3, 3, 3)])]},
    "cost": {"--nodes": COUNTS, "--replicas": COUNTS, "--parity": ["2+1", "14+2", "0+1"],
             "--years": NUMBERS, "--checkpoint": NUMBERS},
    "aggregation": {"--profile": ["lu.C.64", "x"], "--processes": COUNTS, "--pool": NUMBERS,
                    "--buffer": NUMBERS, "--disk-bandwidth": NUMBERS,
                    "--request-time": NUMBERS, "--copy-bandwidth": NUMBERS,
                    "--merge-below": NUMBERS},
    "advise": {"--nodes": COUNTS, "--saved": NUMBERS, "--storage-bandwidth": NUMBERS,
               "--mtti": NUMBERS, "--copy-bandwidth": NUMBERS,
               "--disk-bandwidth": NUMBERS, "--network-bandwidth": NUMBERS,
               "--stage-memory": NUMBERS, "--software-share": SHARES,
               "--window": NUMBERS, "--seed": ["0", "-1", "7", "99999999999999999999"],
               "--local": ["sata-1tb-raid1", "x"]},
    "replay": {"--trace": [LOG], "--cost": NUMBERS, "--restart": NUMBERS, "--window": NUMBERS},
    "validate": {"--jobs": ["0", "-1", "1", "2", "3", "8", "1.5", "x", "99999999999999999999"],
                 "--seed": ["0", "-1", "7", "99999999999999999999", "x"]},
}  # fmt: skip


BASE = {
    "interval": {"--cost": "300", "--mtti": "86400"},
    "model": {"--system": "red-storm", "--processors": "1000"},
    "fill-time": {"--ram": "205e12", "--storage": "10e15", "--device": "2e12",
                  "--device-bandwidth": "100e6"},
    "survive": {"--nodes": "64", "--replicas": "2"},
    "strategy": {"--np": "65536", "--ng": "64"},
    "multilevel": {"--level": "l9:5:10:20000"},
    "cost": {"--nodes": "1000"},
    "aggregation": {"--profile": "lu.C.64"},
    "advise": {"--nodes": "512", "--saved": "64e9", "--storage-bandwidth": "100e9",
               "--mtti": "86400", "--copy-bandwidth": "10e9",
               "--disk-bandwidth": "2e9", "--network-bandwidth": "12e9"},
    "replay": {"--trace": LOG, "--cost": "300"},
    "validate": {"--jobs": "8"},
}
FEWER = {"advise": 60, "replay": 30, "validate": 12}  # they simulate


def test_every_question_is_asked():
    """But for those that write a page or pictures: test_explore.py, test_figures.py."""
    assert set(OPTIONS) == set(BASE) == set(COMMANDS) - {"explore", "figures"}


def draw(rng, name):
    """A good command with one to three options replaced or added."""
    chosen = dict(BASE[name])
    for option in rng.choices(list(OPTIONS[name]), k=rng.randint(1, 3)):
        chosen[option] = rng.choice(OPTIONS[name][option])
    words = [word for pair in chosen.items() for word in pair]
    for value in rng.sample(OPTIONS[name].get("--level", []),
                            rng.randint(0, 3) if name == "multilevel" else 0):
        words += ["--level", value]
    return words


@pytest.mark.parametrize("name", OPTIONS)
def test_a_result_or_one_line(name):
    rng, good, draws = random.Random(SEED), 0, FEWER.get(name, DRAWS)
    for _ in range(draws):
        words = draw(rng, name)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            code, out, err = run(name, *words, "--json")
            plain_code, plain_out, plain_err = run(name,
                                                   *words) if name not in FEWER or code else (0,
                                                       "-", "")
        shown = f"seed {SEED}: backstay plan {name} {' '.join(map(repr, words))}"
        assert code == plain_code and code in ((0, 1, 2) if name == "validate" else (0, 2)), shown
        parsed = strict(out)
        if "error" not in parsed:
            good += 1
            assert err == plain_err == "" and plain_out and "nan" not in plain_out.split(), shown
        else:
            assert err.count("\n") == plain_err.count("\n") == 1 and plain_out == "" and parsed["error"]["message"], shown
    print(f"{name}: {good} of {draws} gave a result")
    assert draws / 10 < good < draws * 9 / 10
