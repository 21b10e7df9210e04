"""PairPart: pairs of one part, and the jobs that training has done on them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from concordant._segments import one_blas_thread
from concordant.comparer.pairs import Scorer, decisions
from concordant.comparer.scaling import Scaling, means, squares
from concordant.solvers.checkpoint import digest
from concordant.solvers.margin import problem_of
from concordant.solvers.margin_rows import RowProblem
from concordant.solvers.partitioned.margin_part import MarginPart, aligned
from concordant.supervision.scans.pair_part import PairRows
from concordant.types import FloatArray, IntArray

__all__ = [
    "ALL",
    "Asked",
    "PairPart",
    "Seen",
    "Survey",
    "Told",
    "decided",
    "digested",
    "furthest",
    "judged",
    "prepared",
    "seen",
    "squared",
    "surveyed",
]

ALL = -1  # no fold is left out


@dataclass(frozen=True, eq=False)
class Told:
    """What one part alone is told: its number, and the fold of each of its pairs; None: there are none."""

    number: int
    folds: IntArray | None = None


@dataclass(frozen=True, eq=False)
class Asked:
    """Which problem a part is to be of: the features' scale, the fold that is left out, and the objective."""

    scaling: Scaling
    left_out: int
    C: float
    method: str
    loss: str

    @property
    def key(self) -> Hashable:
        """Equal only where the problem is the same."""
        scaling = (one.tobytes() for one in (self.scaling.mean, self.scaling.deviation, self.scaling.kept))
        return self.left_out, self.C, self.method, self.loss, *scaling


class PairPart(MarginPart):
    """Pairs of one part, and the rows of a machine's problem that are made of them.

    The pairs are never copied: those that are not used have weight 0.
    """

    def __init__(self, rows: PairRows, told: Told) -> None:
        super().__init__(told.number)
        self.rows, self.folds = of_any_place(rows), told.folds

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.rows = of_any_place(self.rows)

    def __sizeof__(self) -> int:
        # Dask moves what is small to what is large; differences are half of it.
        return int(1.5 * self.rows.pairs.nbytes)

    def weight(self, left_out: int) -> FloatArray:
        """Weights of the pairs, 0 of the fold that is left out."""
        if left_out == ALL or self.folds is None:
            return self.rows.weight
        return np.where(self.folds == left_out, 0.0, self.rows.weight)

    def make(self, which: Asked) -> RowProblem:
        """Give the differences that cost something."""
        rows, weight = self.rows, self.weight(which.left_out)
        differences = which.scaling.differences(rows.pairs, rows.y)
        return problem_of(differences, rows.y == 0, which.C, which.method, which.loss, weight)


def of_any_place(rows: PairRows) -> PairRows:
    """Give pairs whose sums do not depend on how they came here."""
    return PairRows(aligned(rows.pairs), rows.y, aligned(rows.weight))


def prepared(_part: Any, rows: Any, told: Told) -> PairPart:
    """Make of the rows of a part what jobs are done on."""
    return PairPart(rows, told)


# ---------------------------------------------------------------- jobs


@dataclass(frozen=True, eq=False)
class Survey:
    """What a part's pairs are like: how many ties and others are used, their weight and their means."""

    n_ties: int
    n_others: int
    weight: float
    mean: FloatArray


def surveyed(part: PairPart, left_out: int) -> Survey:
    """Count and average the pairs that are used."""
    weight, tie = part.weight(left_out), part.rows.y == 0
    used, total = weight > 0.0, float(weight.sum())
    with one_blas_thread():
        mean = means(part.rows.pairs, weight / (2.0 * total) if total else weight)
    return Survey(int(np.count_nonzero(used & tie)), int(np.count_nonzero(used & ~tie)), total, mean)


def squared(part: PairPart, left_out: int, weight: float, mean: FloatArray) -> FloatArray:
    """Sum the squares about the mean of all; weight is that of all, too."""
    return squares(part.rows.pairs, part.weight(left_out) / (2.0 * weight), mean)


def decided(part: PairPart, scaling: Scaling, scorer: Scorer) -> FloatArray:
    """Give the decisions of all pairs."""
    return decisions(scaling, scorer, part.rows.pairs)


def judged(part: PairPart, left_out: int, scaling: Scaling, scorer: Scorer) -> tuple[Any, ...]:
    """Give decisions, outcomes and weights of the pairs that are used."""
    weight = part.weight(left_out)
    used = weight > 0.0
    return decided(part, scaling, scorer)[used], part.rows.y[used].astype(np.int8), weight[used]


def furthest(part: PairPart, left_out: int, scaling: Scaling, scorer: Scorer) -> float:
    """Size of the largest decision of a pair that is used; 0 where there is none."""
    used = part.weight(left_out) > 0.0
    return float(np.abs(decided(part, scaling, scorer)[used]).max(initial=0.0))


@dataclass(frozen=True, eq=False)
class Seen:
    """What is known of a part before training.

    Attributes
    ----------
    n_rows, n_features, counts
        How many pairs, of how many features, and whether any has weight.
    y, weight
        Outcomes and weights; empty where nobody asked.
    """

    n_rows: int
    n_features: int
    counts: bool
    y: Any
    weight: FloatArray


def seen(part: PairPart, whole: bool) -> Seen:
    """Look at a part; outcomes and weights are given if asked for."""
    rows, n = part.rows, len(part.rows.y)
    given = slice(n if whole else 0)
    own = rows.y[given].astype(np.int8), rows.weight[given]
    return Seen(n, int(rows.pairs.shape[2]), bool(rows.weight.any()), *own)


def digested(part: PairPart) -> str:
    """Give what tells the pairs from others."""
    return digest(part.rows.pairs, part.rows.y, part.rows.weight)
