"""The shell of a page: style for light, dark and print, tables, plots; it asks for nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

__all__ = ["BLUE", "GREY", "ORANGE", "base_layout", "figure", "page", "short", "table"]

BLUE, ORANGE = "#2b7bba", "#cc5f14"  # both are seen on white and on black
GREY = "#808080"
FONT = "system-ui, -apple-system, Segoe UI, Roboto, sans-serif"

STYLE = """
:root { --text: #1c1c1c; --dim: #565656; --page: #ffffff; --line: #d9dbdf; --stripe: #f5f6f8;
  --link: #1f5f94; --good: #176b35; --fair: #7a5200; --bad: #a3261c; --none: #565656; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e8e8e8; --dim: #a9adb3; --page: #16181c; --line: #3a3d42; --stripe: #1e2126;
    --link: #7db8e8; --good: #6fcf8e; --fair: #e0b45c; --bad: #f28b82; --none: #a9adb3; }
}
@media print {
  :root { --text: #000000; --dim: #444444; --page: #ffffff; --line: #cccccc; --stripe: #ffffff;
    --link: #000000; --good: #176b35; --fair: #7a5200; --bad: #a3261c; --none: #444444; }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body { font: 16px/1.5 FONT; color: var(--text); background: var(--page);
  max-width: 960px; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0.4rem 0 0.6rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2.4rem 0 0.3rem; padding-top: 0.8rem; border-top: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.2rem 0 0.2rem; overflow-wrap: anywhere; }
p { margin: 0.4rem 0; overflow-wrap: anywhere; }
p.dim, figcaption, .note { color: var(--dim); font-size: 0.9rem; }
a { color: var(--link); }
ul { margin: 0.4rem 0; padding-left: 1.2rem; }
nav ul { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: 0.2rem 1rem; font-size: 0.9rem; }
nav a { display: inline-block; padding: 0.15rem 0; }
.scroll { overflow-x: auto; margin: 0.8rem 0; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: 0.92rem; }
caption { text-align: left; color: var(--dim); padding-bottom: 0.3rem; }
th, td { padding: 0.3rem 0.6rem; text-align: right; white-space: nowrap; vertical-align: top; }
tr { border-bottom: 1px solid var(--line); }
th { color: var(--dim); font-weight: 600; }
th.text, td.text { text-align: left; white-space: normal; min-width: 6.5rem; }
td.text { overflow-wrap: anywhere; }
tbody th { color: var(--text); }
tbody tr:nth-child(even) { background: var(--stripe); }
td small { display: block; color: var(--dim); font-size: 0.82rem; }
figure { margin: 0.8rem 0 0; }
.plot { overflow: hidden; }
.plot text { fill: var(--text) !important; }
.plot .gridlayer path, .plot .zerolinelayer path { stroke: var(--line) !important; }
.plot .hoverlayer .hovertext path { fill: var(--page) !important; stroke: var(--dim) !important; }
details { border: 1px solid var(--line); border-radius: 6px; margin: 0.5rem 0; padding: 0 0.7rem; }
summary { cursor: pointer; padding: 0.45rem 0; overflow-wrap: anywhere; }
.status { display: inline-block; font-weight: 700; border: 2px solid currentColor; border-radius: 6px;
  padding: 0 0.5rem; }
.proven { color: var(--good); } .conditional { color: var(--fair); } .refuted { color: var(--bad); }
.open { color: var(--none); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.15rem 1rem; margin: 0.6rem 0; }
dt { color: var(--dim); } dd { margin: 0; overflow-wrap: anywhere; }
footer { margin-top: 2.5rem; padding-top: 0.6rem; border-top: 1px solid var(--line); }
@media (max-width: 600px) {
  body { padding: 0.7rem; }
  th, td { padding: 0.25rem 0.35rem; font-size: 0.82rem; }
  th.text, td.text { min-width: 4.5rem; }
  td small { white-space: normal; max-width: 4.2rem; margin-left: auto; }
  .wide { display: none; }
}
@media print {
  body { max-width: none; font-size: 11px; padding: 0; }
  nav, .plot .hoverlayer { display: none; }
  .plot { zoom: 0.7; }
  h2 { break-after: avoid; } figure, tr, details { break-inside: avoid; }
  .scroll { overflow: visible; }
}
""".replace("FONT", FONT)

# Colours of text and lines follow the style, so that a change of theme needs no script.
SCRIPT = """
(function () {
  "use strict";
  var figures = JSON.parse(document.getElementById("figures").textContent);
  Object.keys(figures).forEach(function (id) {
    Plotly.newPlot(id, figures[id].data, figures[id].layout, {displayModeBar: false, responsive: true});
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
    r"""Give JSON that cannot end the script it stands in; null where a number is not finite.

    >>> print(as_json(["</script>", float("nan")]))
    ["\u003c/script\u003e",null]
    """
    text = json.dumps(finite(value), separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def finite(value: Any) -> Any:
    """Give the same value: None for numbers that are not finite, and six digits of the others.

    >>> finite([1 / 3, float("inf")])
    [0.333333, None]
    """
    if isinstance(value, Mapping):
        return {key: finite(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(one) for one in value]
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
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
    wide
        Columns that small screens do without.
    caption
        What the table shows; plain text.
    """
    words, large = set(text), set(wide)
    kinds = [" ".join(["text"] * (one in words) + ["wide"] * (one in large)) for one in columns]
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
