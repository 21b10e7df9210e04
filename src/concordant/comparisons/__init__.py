"""Pairs with ties and votes: the Comparer and its machines, ratings, rank aggregation."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__, submodules=["aggregation", "ratings"], submod_attrs={"comparer": ["Comparer"]}
)
