"""Sums in the order of a tree: the same bits wherever, and by however many, the parts are added up."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any, TypeAlias

import numpy as np

from concordant.types import FloatArray

__all__ = ["FAN", "Merge", "Tree", "added", "tree_sum"]

FAN = 8  # sums that are added by one task

Merge: TypeAlias = Callable[..., Any]
"""`merge(*values)`, a function of a module, which takes them from left to right and changes none of them."""


def added(*vectors: FloatArray) -> FloatArray:
    """Add from left to right."""
    return reduce(np.add, vectors)


class Tree:
    """Values, merged by eights, the eights by eights, and so on, as they come: each level keeps one.

    Parameters
    ----------
    merge
        What makes one value of several.
    kept
        Called with the tree whenever something was added, so that it can be written down; None: nobody asks.

    Attributes
    ----------
    done
        Parts that are in it, from the first on.
    counts, values
        Of each level, how many were merged since the last eight were full; and what they are together.

    Examples
    --------
    >>> tree = Tree(added)
    >>> for k in range(20):
    ...     tree.add(np.array([float(k)]))
    >>> tree.whole(), tree.done, tree.counts
    (array([190.]), 20, [4, 2])
    """

    def __init__(self, merge: Merge, kept: Callable[[Tree], object] | None = None) -> None:
        self.merge, self.kept = merge, kept
        self.done = 0
        self.counts: list[int] = []
        self.values: list[Any] = []

    def add(self, value: Any, level: int = 0, n_parts: int = 1) -> None:
        """Add the next part; or, at a level that it may begin, so many parts that were merged elsewhere."""
        self.done += n_parts
        while True:
            while level >= len(self.counts):
                self.counts.append(0)
                self.values.append(None)
            count, before = self.counts[level], self.values[level]
            value = self.merge(before, value) if count else value
            if count + 1 < FAN:
                break
            self.counts[level], self.values[level] = 0, None
            level += 1
        self.counts[level], self.values[level] = count + 1, value
        if self.kept is not None:
            self.kept(self)

    def level(self, highest: int) -> int:
        """Give the level, up to this one, at which parts that were merged elsewhere may be added next."""
        return max(level for level in range(highest + 1) if self.done % FAN**level == 0)

    def whole(self) -> Any:
        """Merge what is left, the lowest level first, each as the last of the next; the tree stays."""
        left = [value for count, value in zip(self.counts, self.values, strict=True) if count]
        return reduce(lambda later, value: self.merge(value, later), left)


def tree_sum(vectors: Iterable[FloatArray]) -> FloatArray:
    """Add up by eights, the eights by eights, and so on; few sums are kept at a time.

    >>> tree_sum(np.array([float(k)]) for k in range(20))
    array([190.])
    """
    tree = Tree(added)
    for vector in vectors:
        tree.add(vector)
    total: FloatArray = tree.whole()
    return total
