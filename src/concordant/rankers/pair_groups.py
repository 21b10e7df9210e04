"""Which groups of pair features a pair ranker has: by their names, or a function of two items."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from concordant.exceptions import ParameterError, UnknownNameError
from concordant.scorers.pair_features import TABLES, PairFunction

__all__ = ["AUTO", "Groups", "chosen_groups"]

AUTO: Mapping[str, tuple[str, ...]] = {
    "ap": ("sum", "product", "absdiff"),
    "pd": ("difference", "signed_square", "context"),
}
Groups: TypeAlias = tuple[str, ...] | PairFunction
"""Names of groups of the table, or a user's function."""


def chosen_groups(features: Any, metric: str) -> Groups:
    """Groups of pair features by their names, or a user's function; what is neither is refused.

    >>> chosen_groups(("auto", "cross"), "ap")
    ('sum', 'product', 'absdiff', 'cross')
    """
    if callable(features):
        own: PairFunction = features
        return own
    names = (features,) if isinstance(features, str) else features
    if not isinstance(names, (tuple, list)) or not names:
        raise ParameterError("features", features, "'auto', a tuple of names, or a function of two items")
    known = TABLES[metric == "ap"]
    for name in names:
        if not isinstance(name, str) or name not in ("auto", *known):
            raise UnknownNameError(f"group of pair features of {metric}", name, ["auto", *known])
    groups = tuple(one for name in names for one in (AUTO[metric] if name == "auto" else (name,)))
    if len(set(groups)) < len(groups):
        raise ParameterError("features", features, "a tuple in which no name stands twice")
    return groups
