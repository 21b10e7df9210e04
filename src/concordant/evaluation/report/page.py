"""The shell of a page and the layout of its plots; a page loads nothing from elsewhere."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment

BLUE, ORANGE = "#2b7bba", "#cc5f14"  # both are seen on white and on black
GREY = "#808080"
FONT = "system-ui, -apple-system, Segoe UI, Roboto, sans-serif"
LARGEST = 1e100  # plotly fails where the ends of an axis are further apart than a double can say

# Colours of text and lines follow the style, so that a change of theme needs no script.
SCRIPT = Path(__file__).with_name("page.js").read_text("utf-8")


def render_page(
    template: str,
    figures: Mapping[str, Any],
    filters: Mapping[str, Callable[..., Any]] | None = None,
    **values: Any,
) -> str:
    """Render a page; its policy forbids loading anything, and any script other than those of the page.

    Parameters
    ----------
    template
        File of the package that extends `evaluation/report/page.html`.
    figures
        Data and layout of each plot, by its id in the page.
    filters
        Formats of the template.
    values
        What the template shows; text is escaped.
    """
    scripts = []
    if figures:
        from plotly.offline import get_plotlyjs

        scripts = [(script, _script_hash(script)) for script in (str(get_plotlyjs()), SCRIPT)]
    environment = _environment()
    environment.filters.update(filters or {})
    style = {"font": FONT, "blue": BLUE, "orange": ORANGE}
    page = environment.get_template(template)
    return page.render(figures=_drawable(figures), scripts=scripts, **style, **values)


def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("concordant", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    return environment


def _script_hash(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _drawable(value: Any) -> Any:
    """Replace numbers too large to draw by None, and round the others to six digits.

    >>> _drawable([1 / 3, float("inf"), 1e200])
    [0.333333, None, None]
    """
    if isinstance(value, Mapping):
        return {key: _drawable(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_drawable(entry) for entry in value]
    if isinstance(value, float):
        return float(f"{value:.6g}") if abs(value) <= LARGEST else None
    return value


def base_layout(height: int, **more: Any) -> dict[str, Any]:
    """Return the layout that all plots share: no background, no zoom on touch, room for labels."""
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
    """Shorten a name to leave room for the plot, and escape it, since plotly reads < as a tag.

    >>> short("a very long name of some model")
    'a very long name of s…'
    """
    return escape(name if len(name) <= most else f"{name[: most - 1]}…")
