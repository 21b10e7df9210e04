"""Ranking data: queries, the four kinds of labels, readers, datasets, generators."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submodules=["datasets", "synthetic"])
