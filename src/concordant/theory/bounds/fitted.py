"""EmpiricalBound: what is guaranteed of a fitted ranker; and the terms it is made of."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from concordant._segments import run_chunks
from concordant.supervision.columns import frozen
from concordant.supervision.queries import Queries
from concordant.theory.bounds.bound import Summed, Term, check_positive, readable
from concordant.theory.bounds.hinges import Facts
from concordant.theory.bounds.terms import scaled
from concordant.types import FloatArray, IntArray

__all__ = ["EmpiricalBound", "Shape", "shape", "terms"]


@dataclass(frozen=True, repr=False)
class EmpiricalBound(Summed):
    """With probability 1 - delta: risk <= multiplier * empirical loss + excess, for the ranker at hand.

    Attributes
    ----------
    bounds
        The loss whose risk is bounded.
    empirical
        Mean over the queries of the hinge, cut off by the tight version.
    parts
        The terms whose sum is the excess.
    multiplier
        Times which the hinge dominates the bounded loss.
    largest
        Largest value of the bounded loss.
    measured
        The bounded loss itself, mean over all these queries; where labels do not differ nothing is lost,
        while a metric's mean leaves those out.
    worst
        What it is at most on these queries, whatever the ranking.
    B, rule
        Length of w that was fixed, and how: "regulariser", "union" or "given".
    length, M
        Length of the ranker's weights, and the largest distance of a document from the mean of its list.
    version, n, delta
        "sharp" or "tight"; number of queries; probability of failure.
    assumes
        What must be true besides independent queries.
    """

    bounds: str
    empirical: float
    parts: tuple[Term, ...]
    multiplier: float
    largest: float
    measured: float
    worst: float
    B: float
    rule: str
    length: float
    M: float
    version: str
    n: int
    delta: float
    assumes: tuple[str, ...]

    @property
    def value(self) -> float:
        """The bound."""
        return self.multiplier * self.empirical + self.excess

    @property
    def vacuous(self) -> bool:
        """Whether it says nothing: it is at least the largest value of the bounded loss."""
        return self.value >= self.largest

    @property
    def verdict(self) -> str:
        """Why it says nothing, where it does."""
        return f"it is never above {self.largest:g}"

    def queries_needed(self, epsilon: float) -> int:
        """Give the number of queries like these at which the excess would be at most epsilon."""
        rate = self.excess * math.sqrt(self.n) / check_positive("epsilon", epsilon)
        return max(math.ceil(rate**2), 1)

    def __str__(self) -> str:
        times = "" if self.multiplier == 1.0 else f"{self.multiplier:g} * "
        excess = readable(self.excess, math.log10(max(self.excess, 1e-300)))
        sum_of = f"{times}{self.empirical:.4g} + {excess}"
        lines = [f"{self.bounds} <= {self.value:.4g} = {sum_of} with probability {1 - self.delta:g}"]
        lines += [f"  {one.name} {readable(one.value, one.log10)}: {one.meaning}" for one in self.parts]
        lines.append(
            f"  B = {self.B:.4g} by {self.rule}, weights of length {self.length:.4g}, {self.n} queries"
        )
        lines.append(f"  on these queries the loss is {self.measured:.4g}, and at most {self.worst:.4g}")
        lines += [f"  assumes that {text}" for text in self.assumes]
        return "\n".join(lines + [f"  vacuous: the loss is never above {self.largest:g}"] * self.vacuous)

    def __repr__(self) -> str:
        state = "; vacuous" * self.vacuous
        return f"EmpiricalBound({self.bounds} <= {self.value:.4g}; n={self.n}{state})"


class Shape(NamedTuple):
    """How the documents of each list lie: about their mean, and across levels; and the farthest of all."""

    spread: FloatArray  # sum of squared distances from the mean
    apart: FloatArray  # sum of squared distances within pairs of different levels
    farthest: float  # from the mean of its list


def shape(X: Any, queries: Queries, codes: IntArray) -> Shape:
    """Measure list by list, on threads: X is read twice, and never copied."""
    from concordant.theory.bounds.kernels import dense_shape, sparse_shape

    shapes = np.zeros((queries.n_queries, 3))
    offsets, levels = frozen(queries.offsets), frozen(codes)
    body: Callable[..., None]
    if hasattr(X, "indptr"):
        order = frozen(np.lexsort((codes, np.repeat(np.arange(queries.n_queries), queries.sizes))))
        body = partial(sparse_shape, *stored(X), X.shape[1], offsets, levels, order)
    else:
        body = partial(dense_shape, frozen(np.ascontiguousarray(X)), offsets, levels)
    run_chunks(queries.offsets, lambda first, last: body(first, last, shapes))
    return Shape(shapes[:, 0], shapes[:, 1], math.sqrt(shapes[:, 2].max(initial=0.0)))


def stored(X: Any) -> tuple[Any, Any, Any]:
    """Give the arrays of compressed rows, each entry once."""
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return frozen(X.data), frozen(X.indices), frozen(X.indptr)


def terms(
    known: Facts, measured: Shape, B: float, height: float, chance: float, *, tight: bool
) -> tuple[Term, Term]:
    """Give the complexity of the linear rankers on these lists, and the confidence."""
    n, by_scores = len(known.slopes), known.slopes**2 * measured.spread
    by_pairs = known.pair_slopes**2 * measured.apart
    words, total = "2 sqrt(2) (B/n) sqrt(sum_q L_q^2 S_q): vector contraction", 8.0 * by_scores.sum()
    if tight:
        words = "2 sqrt(2) (B/n) sqrt(sum_q min(L_q^2 S_q, K_q^2 D_q)): vector contraction"
        total = 8.0 * np.minimum(by_scores, by_pairs).sum()
    if tight and known.separable and 4.0 * by_pairs.sum() < total:
        words, total = "2 (B/n) sqrt(sum_q K_q^2 D_q): contraction pair by pair", 4.0 * by_pairs.sum()
    times = known.multiplier
    confidence = 3.0 * times * height * math.sqrt(math.log(2.0 / chance) / 2.0)
    told = f"3 c sqrt(ln(2/delta) / (2n)), c = {height:.4g}, delta = {chance:.3g}"
    return (
        Term("complexity", scaled(times, words), 1, times * B * math.sqrt(float(total) / n), n),
        Term("confidence", scaled(times, told), 1, confidence, n),
    )
