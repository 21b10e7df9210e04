"""Sums over blocks of pairs that are written down on the way, so that a killed fit goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from concordant.exceptions import ModelFileError
from concordant.solvers.checkpoint import ANEW, Snapshot
from concordant.solvers.moments import Block, Moments

__all__ = ["EVERY", "PairSums", "Sums", "Told", "packed", "unpacked"]

Told: TypeAlias = Callable[[str], None]
"""Called after each block, with what it is made of."""

EVERY = 64  # blocks between two writings: a block takes far longer to add than its share of one


@dataclass(frozen=True, eq=False)
class PairSums:
    """What a fit must know of all pairs and, where their scores are symmetric, of all items.

    Attributes
    ----------
    pairs, items
        Sums over them; of items None, where scores are not symmetric.
    n_informative
        Queries from which something is learned.
    """

    pairs: Moments
    items: Moments | None
    n_informative: int

    def __sizeof__(self) -> int:
        # Dask moves what is small to what is large.
        return int(self.pairs.gram.nbytes + (0 if self.items is None else self.items.gram.nbytes))

    def merged(self, other: PairSums) -> PairSums:
        """Give those of the queries of both; neither is changed."""
        items = None if self.items is None or other.items is None else self.items.merged(other.items)
        return PairSums(self.pairs.merged(other.pairs), items, self.n_informative + other.n_informative)


def packed(name: str, sums: Moments) -> dict[str, Any]:
    """Give sums as arrays, to be written down."""
    return {f"{name}.{key}": np.asarray(part) for key, part in vars(sums).items()}


def unpacked(name: str, arrays: Mapping[str, Any], nothing: Moments, path: Path) -> Moments:
    """Give sums as they were written down, if they are like those of nothing."""
    parts: dict[str, Any] = {}
    for key, part in vars(nothing).items():
        found = arrays.get(f"{name}.{key}")
        if found is None or found.shape != np.shape(part):
            raise ModelFileError(path, f"it has no {name}.{key} of this fit", ANEW)
        parts[key] = found if found.ndim else type(part)(found)
    return Moments(**parts)


class Sums:
    """Moments of pairs and of items: in memory, and where a snapshot is given on disk.

    Parameters
    ----------
    snapshot
        Where they are written, and may have been; None: nowhere.
    """

    def __init__(self, snapshot: Snapshot | None) -> None:
        self.snapshot = snapshot
        self.counts: dict[str, int] = {}
        self.arrays: dict[str, Any] = {}
        known = None if snapshot is None else snapshot.read()
        if known is not None:
            self.counts, self.arrays = known[0].get("blocks", {}), known[1]

    def added(
        self,
        name: str,
        blocks: Callable[[Told, int], Iterator[Block]],
        told: Told,
        n_features: int,
        *,
        intercept: bool,
    ) -> Moments:
        """Add up the blocks that are missing."""
        if self.snapshot is None:
            return Moments.of(blocks(told, 0), n_features, intercept=intercept)
        done, start = self.counts.get(name, 0), self.known(name, n_features, intercept=intercept)
        for _ in range(done):
            told(name)
        number = done

        def kept(sums: Moments) -> None:
            nonlocal number
            number += 1
            if number % EVERY == 0:
                self.keep(name, number, sums)

        whole = Moments.of(blocks(told, done), n_features, intercept=intercept, start=start, told=kept)
        if number > done or name not in self.counts:
            self.keep(name, number, whole)
        return whole

    def keep(self, name: str, number: int, sums: Moments) -> None:
        """Replace what is on disk."""
        if self.snapshot is None:
            return
        self.counts[name] = number
        self.arrays |= packed(name, sums)
        self.snapshot.write({"blocks": self.counts}, self.arrays)

    def known(self, name: str, n_features: int, *, intercept: bool) -> Moments:
        """Give the sums on disk, or those of nothing."""
        nothing = Moments.zero(n_features, intercept=intercept)
        if name not in self.counts or self.snapshot is None:
            return nothing
        return unpacked(name, self.arrays, nothing, self.snapshot.path)
