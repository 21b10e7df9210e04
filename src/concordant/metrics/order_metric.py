"""Metric of whole orders: zero-one loss on permutations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from concordant.data.labels import Permutations
from concordant.data.queries import Queries
from concordant.exceptions import LabelError
from concordant.metrics.metric import Family, Metric, Standardization
from concordant.types import ArrayLike, BoolArray, FloatArray

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, repr=False)
class ZeroOne(Metric):
    """Zero-one loss on permutations: 1 unless the scores give exactly the observed order.

    Tied scores: the share of compatible orders that differ from the observed one.

    Examples
    --------
    >>> ZeroOne()(Permutations([1, 2, 3]), [0.9, 0.5, 0.5])
    zero_one = 0.5 over 1 of 1 queries
    """

    name: ClassVar[str] = "zero_one"
    label_spaces: ClassVar[tuple[str, ...]] = ("permutations",)
    convention_fields: ClassVar[tuple[str, ...]] = ("ties", "empty")
    greater_is_better: ClassVar[bool] = False

    def read_labels(self, y: ArrayLike) -> Permutations:
        """Check permutations; grades have no single order."""
        if not isinstance(y, Permutations):
            hint = "wrap positions (1 is best): Permutations(positions)."
            raise LabelError(f"zero_one reads Permutations, not {type(y).__name__}", hint)
        return y

    def evaluate(
        self, labels: Permutations, scores: FloatArray, queries: Queries, docid: NDArray[Any] | None
    ) -> tuple[FloatArray, BoolArray]:
        """1 - probability of the observed order, which is 0 if a score rises along it."""
        codes, rule = queries.codes, self.convention.ties
        observed = np.lexsort((labels.grouped(queries), codes))
        ordered = queries.gather(scores)[observed]
        rises, equal = ordered[1:] > ordered[:-1], ordered[1:] == ordered[:-1]  # -inf equals -inf
        if rule in ("expected", "worst", "best"):
            keeps_order = np.full(len(equal), rule != "worst")
        else:
            keeps_order = np.diff(self.tie_places(queries, docid)[observed]) > 0
        within = np.diff(codes) == 0
        violated = within & (rises | (equal & ~keeps_order))
        wrong = np.bincount(codes[1:][violated], minlength=queries.n_queries) > 0
        chance = _tie_chance(within & equal, queries) if rule == "expected" else 1.0
        return np.where(wrong, 1.0, 1.0 - chance), queries.sizes > 0

    def standardize(self, labels: Permutations, queries: Queries) -> FloatArray:
        """Raise: sorting by means does not find the most probable order."""
        del queries
        problem = "no mean of item scores gives the most probable order of every distribution"
        instead = "use a likelihood of whole orders, such as that of Plackett and Luce."
        raise self.unstandardized(labels, problem, instead)

    def conditional(self, labels: Any, f: Family | None = None) -> Mapping[str, Standardization]:
        """Return the places counted from the bottom, on order-preserving permutation spaces."""
        del labels, f
        return {"order_preserving": _places_from_bottom}


def _places_from_bottom(labels: Permutations, queries: Queries) -> FloatArray:
    """Count n + 1 - position: 1 for the last item of a query of n, n for the first."""
    return np.repeat(queries.sizes + 1.0, queries.sizes) - labels.grouped(queries)


def _tie_chance(tied: BoolArray, queries: Queries) -> FloatArray:
    """Probability, per query, that random tie-breaking gives one specific order: 1/size! over the blocks.

    `tied[i]` says that sorted rows i and i + 1 are tied.
    """
    from scipy.special import gammaln

    starts = np.flatnonzero(np.r_[True, ~tied][: queries.n_rows])
    sizes = np.diff(np.r_[starts, queries.n_rows])
    logs = np.bincount(queries.codes[starts], weights=gammaln(sizes + 1.0), minlength=queries.n_queries)
    return np.exp(-logs)
