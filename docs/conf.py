"""Sphinx configuration: Markdown pages, numpydoc reference."""

from importlib.util import find_spec

from concordant import __version__

project = "concordant"
copyright = "the concordant authors"  # noqa: A001
release = version = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "concordant"
default_role = "code"
autodoc_mock_imports = [name for name in ("torch", "triton") if find_spec(name) is None]  # read, not run
autodoc_typehints = "none"  # numpydoc's parameter sections say more
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
myst_heading_anchors = 3
