"""How nodes differ, as Plotly's figures: a row a node, a column a version."""

from . import charts, spread
from .history import History, Version
from .nodes import natural

SHOWN_NODES, SHOWN_VERSIONS = 64, 200  # rows and columns that can still be distinguished


def chosen_nodes(history: History) -> list[str]:
    """Those with a row of their own: all, or those that were slowest most often."""
    sums = [one for one in spread.nodes(history) if one.node in history.nodes]
    slowest = sorted(sums, key=lambda one: (-sum(one.slowest.values()), -one.waited_s))
    return sorted((one.node for one in slowest[:SHOWN_NODES]), key=natural)


def _versions(history: History) -> list[Version]:
    step = -(-len(history.captured) // SHOWN_VERSIONS) or 1
    return history.captured[::-1][::step][::-1]


def _rows(measure: str, names: list[str], versions: list[Version]) -> list[list]:
    """In ms, so that what is short can be read; None where a node had no part."""
    value = spread.MEASURES[measure][1]
    seconds = [[value(v.parts[name]) if name in v.parts else None for v in versions] for name
               in names]
    return [[None if one is None else round(1000 * one, 3) for one in row] for row in seconds]


def nodes(history: History) -> dict:
    """The measures to choose from; the first is how long each node's disk took."""
    names, versions = chosen_nodes(history), _versions(history)
    rows = {name: _rows(name, names, versions) for name in ("written", "blocked", "captured",
        "local", "protected", "durable")}
    rows = {name: found for name,
            found in rows.items() if any(one is not None for row in found for one in row)}
    first = next(iter(rows), None)
    buttons = [{"label": spread.MEASURES[name][0], "method": "restyle", "args": [{"z": [found]}]}
               for name, found in rows.items()]
    columns = [f"{v.number}" for v in versions]
    if len(set(columns)) < len(columns):  # numbers that were taken again after a failed try
        columns = [f"{v.number} ({at})" for at, v in enumerate(versions, 1)]
    data = [{"type": "heatmap", "colorscale": "Cividis", "x": columns, "y": names,
             "z": rows.get(first, []), "xgap": 1, "ygap": 1,
             "colorbar": {"title": {"text": "ms", "side": "top"}},
             "hovertemplate": "%{y}, version %{x}: %{z:.4g} ms<extra></extra>"}]  # fmt: skip
    layout = charts.plain_layout("version", "")
    layout["xaxis"].update(type="category", nticks=charts.TICKS * 3)
    layout["yaxis"].update(type="category", autorange="reversed", dtick=1,
                           tickfont={"size": 14 if len(names) <= 24 else 10})
    layout["margin"]["r"] = 140  # the colours are beside the buttons
    layout["margin"]["t"] = 60
    layout["height"] = max(300, 150 + 16 * len(names))
    layout["updatemenus"] = [{"buttons": buttons, "x": 0, "xanchor": "left", "y": 1,
                              "yanchor": "bottom", "pad": {"b": 8}}] if buttons else []
    return {"data": data, "layout": layout}
