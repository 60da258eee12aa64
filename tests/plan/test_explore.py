"""`backstay plan explore`: the browser's models against Python's, and the page in a real browser at
every slider's ends.
"""

import html
import json
import math
import pathlib
import random
import re

import pytest

pytest.importorskip("plotly")
import browser
from backstay.plan import interval, levels
from backstay.plan.explore import answer, page, sliders
from backstay.plan.tables import preset
from runner import result, run

SEED, DRAWS = 20_261_121, 300
# Says on the page, as JSON, what became of it after each position of `moves`: [{slider: index},
# ..].
MOVER = """<script>
const seen = moves.map(move => {
  for (const [key, index] of Object.entries(move)) {
    const input = document.getElementById(key);
    if (input.value === String(index)) continue;
    input.value = index;
    input.dispatchEvent(new Event("input"));
    input.dispatchEvent(new Event("change"));
  }
  const charts = [...document.querySelectorAll("div.plot")];
  const rows = charts.flatMap(one => one.data), finite = rows.every(row => row.y.every(Number.isFinite));
  return {text: document.querySelector("main").innerText, drawn: charts.map(one => one.querySelectorAll(".main-svg").length),
          paths: charts.map(one => one.querySelectorAll(".js-line, .points path").length), finite, empty: rows.filter(row => row.y.length === 0).map(row => row.name),
          address: location.hash, warned: !document.getElementById("warning").hidden};
});
const out = document.createElement("pre");
out.id = "seen";
out.textContent = JSON.stringify(seen);
document.body.append(out);
</script>"""


def ends(one: sliders.Slider) -> tuple:
    return one.values[0], one.values[-1]


def drawn_settings() -> list[sliders.Settings]:
    """Any positions, and any mixtures of the sliders' ends."""
    rng = random.Random(SEED)
    made = [sliders.Settings(*(rng.choice(one.values) for one in sliders.SLIDERS)) for _
            in range(DRAWS)]
    return made + [sliders.Settings(*(rng.choice(ends(one)) for one in sliders.SLIDERS)) for _
                   in range(DRAWS)]


def flat(found) -> list[float]:
    return [one for value in found for one
            in (value if isinstance(value, tuple | list) else [value])]


def test_every_slider_is_a_setting_and_starts_on_one_of_its_values():
    assert tuple(one.key for one in sliders.SLIDERS) == sliders.Settings._fields
    for one in sliders.SLIDERS:
        assert one.start in one.values and len(set(one.values)) == len(one.values)
        assert one.unit == "text" or one.values == sorted(one.values)


def test_the_answer_by_hand():
    one = sliders.START._replace(nodes=512, node_mtti_s=86400.0 * 512, saved_bytes=63e9,
                                 protection="2 replicas", losses=2)
    found = answer.answer(one)
    assert (found.mtti_s, found.blocked_s, found.survival) == (86400.0, 6.3, 1.0)
    assert found.interval_s[0] == pytest.approx(interval.long_job_s(6.3,
        86400.0)) and found.lag_s[:2] == pytest.approx((31.5, 94.5))
    assert found.efficiency == pytest.approx(1 / (1 + sum(found.lost)))


def test_no_position_gives_anything_but_numbers():
    for one in drawn_settings():
        found = answer.answer(one)
        assert all(math.isfinite(value) for value in flat(found)), one
        assert 0 < found.efficiency < 1 and 0 <= found.survival <= 1, one


@browser.needed
def test_the_browser_computes_what_python_computes(tmp_path):
    cases = drawn_settings()
    script = (f"{page.script()}{preset('explore/model.js')}const cases = "
              f"{json.dumps([one._asdict() for one in cases])};\n"
              "document.body.textContent = JSON.stringify(cases.map(one => answer(one, "
              "page.sizes)));")  # fmt: skip
    (tmp_path
     / "model.html").write_text(f'<link rel="icon" href="data:,"><body><script>{script}</script>',
                                encoding="utf-8")
    text = browser.elements(tmp_path / "model.html", tmp_path / "profile")
    answers = json.loads(html.unescape(re.search(r"<body>(.*)</body>", text, re.S)[1]))
    assert len(answers) == len(cases)
    for one, found in zip(cases, answers, strict=True):
        wanted = answer.answer(one)
        assert set(found) == set(wanted._fields)
        for key, value in wanted._asdict().items():
            least = 1e-12 if key == "survival" else 0  # a chance below it is none
            assert flat([found[key]]) == pytest.approx(flat([value]), rel=1e-9,
                                                       abs=least), f"seed {SEED}: {key} of {one}"


def moved(tmp_path, moves):
    file = tmp_path / "explore.html"
    file.write_text(page.render().replace("</body>",
                                          f"<script>const moves = "
                                          f"{json.dumps(moves)};</script>{MOVER}</body>"),
                                          encoding="utf-8")
    text = browser.elements(file, tmp_path / "profile")
    return json.loads(html.unescape(re.search(r'<pre id="seen">(.*?)</pre>', text, re.S)[1]))


@browser.needed
def test_every_slider_moves_the_numbers_and_no_end_is_blank(tmp_path):
    moves = [{}]
    start = {one.key: one.values.index(one.start) for one in sliders.SLIDERS}
    for one in sliders.SLIDERS:
        moves += [{**start, one.key: 0}, {**start, one.key: len(one.values) - 1}]
    rng = random.Random(SEED)
    moves += [{one.key: rng.choice((0, len(one.values) - 1)) for one in sliders.SLIDERS} for _
              in range(12)]
    seen = moved(tmp_path, moves)
    for move, one in zip(moves, seen, strict=True):
        assert not re.search(r"NaN|Infinity|undefined|null", one["text"]), move
        assert not one["empty"] and one["finite"] and all(one["drawn"]) and all(one["paths"]), move
    shown = [one["text"] for one in seen]
    assert all(text != shown[0] for text in shown[1:1 + 2 * len(sliders.SLIDERS)])
    assert "1\u202f024" in shown[0] and "63 GB" in shown[0] and "2 replicas" in shown[0], "the sliders do not start where they should"
    # Most nodes.
    settings = sliders.Settings(*(one.values[moves[2][one.key]] for one in sliders.SLIDERS))
    assert seen[2]["warned"] == (answer.answer(settings).efficiency < 1
                                 / (1 + levels.LOST_MAX)) and not seen[0]["warned"]
    assert f"nodes={len(sliders.SLIDERS[0].values) - 1}&" in seen[2]["address"]


@browser.needed
def test_moving_a_slider_changes_the_picture_and_the_address_keeps_it(tmp_path):
    file = pathlib.Path(result("explore", "-o", tmp_path / "page.html")["file"])
    text = file.read_text("utf-8")
    assert not re.search(r'(src|href)="(?!data:)', text.split("</script>", 1)[1])
    first = browser.picture(file, tmp_path / "profile")
    assert len(first) > 80_000, "an almost empty picture"
    assert browser.picture(file, tmp_path / "profile", fragment="#nodes=30&protection=5") != first
    assert browser.picture(file, tmp_path / "profile",
                           fragment="#nodes=99&protection=x&none=1") == first, "nonsense is ignored"
    assert len(browser.picture(file, tmp_path / "profile", (400, 2600))) > 80_000
    assert 'data-drawn="1"' in browser.elements(file, tmp_path / "profile")


def test_a_page_that_cannot_be_written(tmp_path):
    code, out, err = run("explore", "-o", tmp_path / "none" / "x.html")
    assert (code, out) == (1,
                           "") and f"{tmp_path / 'none' / 'x.html'}: cannot be written: there is no folder {tmp_path / 'none'}; make" in err
    for words in (tmp_path, ""):
        code, out, err = run("explore", "-o", words)
        assert (code, out) == (1,
                               "") and "it is a folder; name a file in it" in err and err.count("\n") == 1
    assert not list(tmp_path.iterdir())
