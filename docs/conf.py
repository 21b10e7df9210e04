"""Sphinx configuration: Markdown pages, numpydoc reference, formulas that need no network."""

from __future__ import annotations

import re
from html import escape
from importlib.util import find_spec
from typing import TYPE_CHECKING

from concordant import __version__

if TYPE_CHECKING:  # pytest reads this file, too, where sphinx is not installed
    from docutils import nodes
    from sphinx.application import Sphinx
    from sphinx.writers.html5 import HTML5Translator

project = "concordant"
copyright = "the concordant authors"  # noqa: A001
release = version = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "concordant"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_math_renderer = "mathml"
default_role = "code"
autodoc_mock_imports = [name for name in ("torch", "triton") if find_spec(name) is None]  # read, not run
autodoc_typehints = "none"  # numpydoc's parameter sections say more
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3


def setup(app: Sphinx) -> None:
    """Formulas become MathML, which browsers draw by themselves: MathJax would be fetched from elsewhere.

    Results of benchmarks are linked on the page that has them all.
    """
    app.add_html_math_renderer("mathml", (inline_formula, None), (displayed_formula, None))
    app.connect("source-read", link_results)


def link_results(_app: Sphinx, _page: str, source: list[str]) -> None:
    """Links to the results of a benchmark, which are files of the repository, lead to its section here."""
    source[0] = re.sub(
        r"\]\(\.\./benchmarks/results/([\w/]+)\.md\)",
        lambda match: f"](benchmarks.md#suite-{re.sub('[/_]', '-', match[1])})",
        source[0],
    )


def inline_formula(writer: HTML5Translator, node: nodes.math) -> None:
    """Write a formula within a line."""
    from docutils.nodes import SkipNode

    writer.body.append(_mathml(node))
    raise SkipNode


def displayed_formula(writer: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula on a line of its own, which scrolls where it is too wide."""
    from docutils.nodes import SkipNode

    writer.body.append(f'<div class="math">{_mathml(node, as_block=True)}</div>')
    raise SkipNode


def _mathml(node: nodes.Element, *, as_block: bool = False) -> str:
    """Return the formula as MathML; what cannot be read is a warning at its line, and stays as it is."""
    from docutils.utils.math import MathError
    from docutils.utils.math.latex2mathml import tex2mathml
    from sphinx.util.logging import getLogger

    try:
        return str(tex2mathml(node.astext(), as_block=as_block))
    except MathError as error:
        getLogger(__name__).warning("%s: %s", node.astext(), error, location=node)
        return escape(node.astext())
