"""The shell of a page, its tables and plots; it asks for nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from concordant.evaluation.report.style import FONT, GREY, STYLE

__all__ = ["LARGEST", "base_layout", "figure", "page", "short", "table"]

LARGEST = 1e100  # plotly fails where the ends of an axis are further apart than a double can say

# Colours of text and lines follow the style, so that a change of theme needs no script.
SCRIPT = """
(function () {
  "use strict";
  var figures = JSON.parse(document.getElementById("figures").textContent);
  Object.keys(figures).forEach(function (id) {
    var one = figures[id];
    try {
      Plotly.newPlot(id, one.data, one.layout, {displayModeBar: false, responsive: true});
    } catch (error) {  // told on the console; the others are drawn all the same
      setTimeout(function () { throw error; });
    }
  });
}());
"""

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{style}</style>
<noscript><style>.plot {{ display: none; }}</style></noscript>
</head>
<body>
{body}
{scripts}</body>
</html>
"""


def page(title: str, body: str, figures: Mapping[str, Any]) -> str:
    """Give a page that runs its own scripts and no other, and loads nothing: the policy forbids it.

    Parameters
    ----------
    title
        Plain text.
    body
        HTML; its plots are made by `figure`.
    figures
        Data and layout of each plot, by the id it has in the body.
    """
    scripts, policy = "", "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    if figures:
        from plotly.offline import get_plotlyjs

        library = str(get_plotlyjs())
        policy += f"; script-src {hashed(library)} {hashed(SCRIPT)}"
        held = as_json(figures)
        scripts = f'<script type="application/json" id="figures">{held}</script>\n'
        scripts += f"<script>{library}</script>\n<script>{SCRIPT}</script>\n"
    return PAGE.format(policy=policy, title=escape(title), style=STYLE, body=body, scripts=scripts)


def hashed(script: str) -> str:
    """Give the name by which the policy lets a script run."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def as_json(value: Any) -> str:
    r"""Give JSON that cannot end the script it stands in; null where a number cannot be drawn.

    >>> print(as_json(["</script>", float("nan")]))
    ["\u003c/script\u003e",null]
    """
    text = json.dumps(finite(value), separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def finite(value: Any) -> Any:
    """Give the same value: None for numbers beyond what can be drawn, and six digits of the others.

    >>> finite([1 / 3, float("inf"), 1e200])
    [0.333333, None, None]
    """
    if isinstance(value, Mapping):
        return {key: finite(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(one) for one in value]
    if isinstance(value, float):
        return float(f"{value:.6g}") if abs(value) <= LARGEST else None
    return value


def figure(name: str, label: str, caption: str = "") -> str:
    """Give the place of a plot, which is drawn by its id; the label is for those who cannot see it."""
    below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return (
        f'<figure><div class="plot" id="{escape(name)}" role="img" aria-label="{escape(label)}"></div>'
        '<noscript><p class="dim">The plot needs JavaScript; its numbers stand in the table.</p></noscript>'
        f"{below}</figure>"
    )


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    text: Iterable[str] = (),
    names: Iterable[str] = (),
    wide: Iterable[str] = (),
    caption: str = "",
) -> str:
    """Give a table that scrolls in its box. Cells are HTML: what users wrote is to be escaped before.

    Parameters
    ----------
    columns
        Headings, plain text.
    rows
        Cells.
    text
        Columns of words, which stand to the left and are broken; the others are numbers.
    names
        Columns of short names, which stand to the left and are not broken.
    wide
        Columns that small screens do without.
    caption
        What the table shows; plain text.
    """
    sets = {"text": set(text), "name": set(names), "wide": set(wide)}
    kinds = [" ".join(kind for kind, members in sets.items() if one in members) for one in columns]
    shown = [f' class="{kind}"' if kind else "" for kind in kinds]
    head = "".join(
        f'<th scope="col"{kind}>{escape(one)}</th>' for one, kind in zip(columns, shown, strict=True)
    )
    body = "\n".join(
        "<tr>" + "".join(f"<td{kind}>{cell}</td>" for cell, kind in zip(row, shown, strict=True)) + "</tr>"
        for row in rows
    )
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    # The box can be scrolled by keys, too.
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption or "table")}">\n'
        f"<table>{title}\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>\n</div>"
    )


def base_layout(height: int, **more: Any) -> dict[str, Any]:
    """Give what all plots share: no background, no zoom that would catch a finger, room for labels."""
    axis = {"fixedrange": True, "automargin": True, "gridcolor": GREY, "zerolinecolor": GREY}
    layout: dict[str, Any] = {
        "height": height,
        "margin": {"t": 40 if more.get("showlegend") else 10, "b": 45, "l": 50, "r": 10},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": FONT, "size": 13, "color": GREY},
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "xanchor": "left", "yanchor": "bottom"},
        "showlegend": False,
        "dragmode": False,
        "hovermode": "closest",
    }
    axes = {name: {**axis, **more.pop(name, {})} for name in ("xaxis", "yaxis")}
    return {**layout, **axes, **more}


def short(name: str, most: int = 22) -> str:
    """Give a name that leaves room for the plot; plotly would read < as a tag.

    >>> short("a very long name of some model")
    'a very long name of s…'
    """
    return escape(name if len(name) <= most else f"{name[: most - 1]}…")
