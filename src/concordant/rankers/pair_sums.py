"""Sums over blocks of pairs that are written down on the way, so that a killed fit goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any, TypeAlias

import numpy as np

from concordant.exceptions import ModelFileError
from concordant.solvers.checkpoint import ANEW, Snapshot
from concordant.solvers.moments import Block, Moments

__all__ = ["EVERY", "Sums", "Told"]

Told: TypeAlias = Callable[[str], None]
"""Called after each block, with what it is made of."""

EVERY = 64  # blocks between two writings: a block takes far longer to add than its share of one


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
        self.arrays |= {f"{name}.{key}": np.asarray(part) for key, part in asdict(sums).items()}
        self.snapshot.write({"blocks": self.counts}, self.arrays)

    def known(self, name: str, n_features: int, *, intercept: bool) -> Moments:
        """Give the sums on disk, or those of nothing."""
        nothing = Moments.zero(n_features, intercept=intercept)
        if name not in self.counts or self.snapshot is None:
            return nothing
        parts: dict[str, Any] = {}
        for key, part in vars(nothing).items():
            found = self.arrays.get(f"{name}.{key}")
            if found is None or found.shape != np.shape(part):
                raise ModelFileError(self.snapshot.path, f"it has no {name}.{key} of this fit", ANEW)
            parts[key] = found if found.ndim else type(part)(found)
        return Moments(**parts)
