"""The page as one HTML file: plotly.js, the models and all values are in it, nothing is fetched."""

import html
import json

from plotly.offline import get_plotlyjs

from .. import tables
from ..levels import LOST_MAX, SIZES
from .sliders import SLIDERS, Slider

INTRO = (
    "Every version is captured in memory, written to the local disk, protected on other nodes; "
    "some go on to shared storage. Move the sliders; "
    "the address keeps their position. First-order models, docs/plan/explore.md; 96 % of the "
    "incidents are taken to cost one node, 3 % two, 1 % eight."
)
WARNING = "Most of the time is lost here, more than first-order models can say: choose a faster disk, network or storage, or fewer nodes."
PLOTS = (
    ("efficiency", "How much of the time is computing that counts"),
    ("times", "How often to save, and when a version is safe"),
    ("survival", "Chance that no restart is possible"),
    ("losses", "Where the rest of the time goes"),
)


def _slider(one: Slider) -> str:
    name = html.escape(one.label)
    return (f'<label for="{one.key}"><span>{name} <output id="{one.key}-value"></output></span>'
            f'<input type="range" id="{one.key}" min="0" max="{len(one.values) - 1}" step="1" '
            f'autocomplete="off"></label>')  # fmt: skip


def _plot(name: str, title: str) -> str:
    title = html.escape(title)
    return f'<section><h2>{title}</h2><div class="plot" id="plot-{name}" role="img" aria-label="{title}"></div></section>'


def script() -> str:
    """What the scripts need besides: the sliders, the sizes of incidents, where first order ends.
    """
    data = {"sliders": [one._asdict() for one in SLIDERS],
            "sizes": [[size, share] for size, share in SIZES.items()],
            "lost_max": LOST_MAX}
    return f"const page = {json.dumps(data, allow_nan=False)};\n"


def render() -> str:
    """The page."""
    parts = [tables.preset(f"explore/{name}") for name in ("model.js", "page.js")]
    return (f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>backstay plan '
            f'explore</title>'
            f'<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" '
            f'href="data:,">'
            f"<style>{tables.preset('explore/page.css')}</style><script>{get_plotlyjs()}</script></head><body>"
            f"<h1>How often to save, and how safely</h1><p>{html.escape(INTRO)}</p>"
            f"<noscript>This page computes in the browser and needs JavaScript.</noscript>"
            f"<main><form>{''.join(map(_slider, SLIDERS))}</form><div>"
            f'<p id="warning" hidden>{html.escape(WARNING)}</p><dl id="numbers" '
            f'aria-live="polite"></dl>'
            f'<div class="plots">{"".join(_plot(*one) for one in PLOTS)}</div></div></main>'
            f"<script>{script()}{''.join(parts)}begin();</script></body></html>\n")  # fmt: skip
