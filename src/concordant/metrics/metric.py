"""Metric: a frozen value that turns labels and scores into one number per query, and their mean."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from concordant._numbers import as_double
from concordant.exceptions import LengthMismatchError, NoStandardizationError, ParameterError
from concordant.metrics.conditions import CONDITIONS, Family, Standardization, check_assumption
from concordant.metrics.convention import PRESETS, Convention, written
from concordant.supervision.columns import check_ids, check_lengths, check_nonnegative, check_scores
from concordant.supervision.queries import Queries, naming_query
from concordant.types import ArrayLike, BoolArray, FloatArray, IntArray, OrderLoss

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Metric", "MetricValue"]


class MetricValue(float):
    """A float that also says over how many queries it is the mean, and how many were skipped.

    >>> value = MetricValue(0.5, name="ndcg@10", n_queries=4, n_skipped=1)
    >>> value + 1, value.n_skipped
    (1.5, 1)
    """

    __slots__ = ("n_queries", "n_skipped", "name")
    name: str
    n_queries: int
    n_skipped: int

    def __new__(cls, value: float, name: str = "", n_queries: int = 0, n_skipped: int = 0) -> Self:
        """Attach what the mean was taken over."""
        self = super().__new__(cls, value)
        self.name, self.n_queries, self.n_skipped = name, n_queries, n_skipped
        return self

    def __getnewargs__(self) -> tuple[float, str, int, int]:  # type: ignore[override]
        return float(self), self.name, self.n_queries, self.n_skipped

    def __repr__(self) -> str:
        counted = self.n_queries - self.n_skipped
        return f"{self.name} = {float(self):.6g} over {counted} of {self.n_queries} queries"

    def __str__(self) -> str:
        return float.__repr__(self)


@dataclass(frozen=True, repr=False)
class Metric:
    """What a ranking is worth.

    A metric is called with labels, scores (high is better) and query ids, in any row order::

        metric(y, scores, qid=qid)            # the mean over queries, as a MetricValue
        metric.per_query(y, scores, qid=qid)  # one number per query, ascending ids; NaN where skipped

    Parameters
    ----------
    convention
        What the name leaves open: ties, empty queries, gains (see `Convention`).
    """

    convention: Convention = field(default=PRESETS["concordant"], kw_only=True)

    name: ClassVar[str] = ""
    greater_is_better: ClassVar[bool] = True
    normalised: ClassVar[bool] = False  # divides by what is best: 0/0 on an empty query
    joint_targets: ClassVar[bool] = False  # other queries decide whether those of one are a stand-in

    def __call__(
        self,
        y: ArrayLike,
        scores: ArrayLike,
        *,
        qid: ArrayLike = None,
        weights: ArrayLike = None,
        docid: ArrayLike = None,
    ) -> MetricValue:
        """Mean over the queries on which the metric is defined.

        Parameters
        ----------
        y
            One grade per row; or `Preferences`, `Permutations` or outcomes in {-1, 0, 1}, as it reads.
        scores
            One score per row, high is better; -inf marks a row that is not in the ranking.
        qid
            Query ids in any order, or a `Queries`; None: all rows are one query.
        weights
            One weight >= 0 per query, in ascending order of the ids; the mean divides by their sum over the
            queries that count.
        docid
            Document ids, for the tie rule `id_descending`.
        """
        return self.average(self.per_query(y, scores, qid=qid, docid=docid), weights)

    def per_query(
        self, y: ArrayLike, scores: ArrayLike, *, qid: ArrayLike = None, docid: ArrayLike = None
    ) -> FloatArray:
        """One value per query, in ascending order of the ids; NaN where the convention skips the query."""
        with naming_query(qid):
            labels = self.read_labels(y)
            checked = check_scores(scores, len(labels))
            queries = Queries.of(qid, len(labels))
            ids = None if docid is None else check_ids(docid, "docid")
            check_lengths("y", len(labels), docid=ids)
            values, defined = self.evaluate(labels, checked, queries, ids)
        return self.fill(values, defined)

    def read_labels(self, y: ArrayLike) -> Any:
        """Give the labels in the kind this metric reads."""
        raise NotImplementedError

    def evaluate(
        self, labels: Any, scores: FloatArray, queries: Queries, docid: NDArray[Any] | None
    ) -> tuple[FloatArray, BoolArray]:
        """One value per query, and whether it is defined there."""
        raise NotImplementedError

    def targets(
        self, y: ArrayLike, *, qid: ArrayLike = None, assume: str | None = None, f: Family | None = None
    ) -> FloatArray:
        """Give the standardization r(y), whose mean is an optimal score vector: `concordant.standardize`.

        One number >= 0 per row, in the caller's order; 0 on queries where the metric is undefined.
        """
        check_assumption(assume, f)
        with naming_query(qid):
            labels = self.read_labels(y)
            queries = Queries.of(qid, len(labels))
            return queries.scatter(self.standardize_under(assume, labels, queries, f))

    def standardize_under(
        self, assume: str | None, labels: Any, queries: Queries, f: Family | None = None
    ) -> FloatArray:
        """Give r(y) by sorted row: the one for every distribution, else the one under this condition."""
        try:
            targets = self.standardize(labels, queries)
        except NoStandardizationError as missing:
            if assume is None:
                raise
            known = self.conditional(labels, f)
            if assume not in known:
                problem = f"assume={assume!r} does not serve these labels"
                raise NoStandardizationError(str(self), problem, missing.alternatives) from missing
            return known[assume](labels, queries)
        if f is not None:
            raise ParameterError("f", f, f"left out: {self} has a standardization for every distribution")
        return targets

    def standardize(self, labels: Any, queries: Queries) -> FloatArray:
        """Give r(y) by sorted row, for every distribution of y; metrics without one name the theorem."""
        del queries
        raise self.unstandardized(labels, "none is known", "name a metric of grades, such as ndcg.")

    def conditional(self, labels: Any, f: Family | None = None) -> Mapping[str, Standardization]:
        """Standardizations that need a condition of the table, the one to try first standing first."""
        del labels, f
        return {}

    def stand_in(self, labels: Any, queries: Queries) -> FloatArray:
        """Give targets where no standardization exists, by sorted row; no theorem speaks for them."""
        return self.standardize(labels, queries)

    def order_loss(self, y: ArrayLike, sizes: IntArray) -> OrderLoss:
        """Give what each order of the rows loses against the best one; rows of each query are adjacent."""
        del y, sizes
        known = "one whose worst order can be found: ap, auc, dcg, eru, ndcg, p@k, wpd, or pd on two grades"
        raise ParameterError("metric", str(self), known)

    def unstandardized(self, labels: Any, theorem: str, instead: str) -> NoStandardizationError:
        """Say why none holds for every distribution, which conditions give one, and what else to do."""
        offers = (f'assume="{name}" ({CONDITIONS[name]})' for name in self.conditional(labels))
        request = " or ".join(offers)
        hint = f"pass {request} if the labels satisfy it; else {instead}" if request else instead
        return NoStandardizationError(str(self), theorem, hint)

    @property
    def by_query(self) -> bool:
        """Whether what a query is worth depends on its own rows alone, not on those of others."""
        return True

    @property
    def empty_rule(self) -> str | float:
        """What a query without anything relevant gives."""
        return self.convention.empty

    def tie_key(
        self, rows: IntArray, docid: NDArray[Any] | None, grades: FloatArray | None = None
    ) -> FloatArray | IntArray:
        """Give the key by which tied rows (of the caller's numbers) stand, lowest first."""
        rule = self.convention.ties
        if rule == "random":
            return np.random.default_rng(self.convention.seed).random(len(rows))
        if rule == "id_descending":
            return -rows if docid is None else -np.unique(docid[rows], return_inverse=True)[1]
        if grades is None or rule == "input":
            return rows
        return -grades if rule == "best" else grades

    def tie_places(self, queries: Queries, docid: NDArray[Any] | None) -> IntArray:
        """Place of each sorted row in the order in which ties are broken."""
        return np.argsort(np.lexsort((self.tie_key(queries.order, docid), queries.codes)))

    def fill(self, values: FloatArray, defined: BoolArray) -> FloatArray:
        """Apply the convention's rule to the queries on which the metric is undefined."""
        if defined.all():
            return values
        if isinstance(self.empty_rule, str):
            return np.where(defined, values, np.nan)
        return np.where(defined, values, self.empty_rule) if self.normalised else values

    def average(self, values: FloatArray, weights: ArrayLike = None) -> MetricValue:
        """Weighted mean of per-query values; skipped queries (NaN) are left out and counted."""
        counts = ~np.isnan(values) if self.empty_rule == "skip" else np.ones(len(values), dtype=bool)
        shares = np.ones(len(values)) if weights is None else check_weights(weights, len(values))
        used = shares[counts]
        mean = float("nan")
        if used.any():
            used = used / used.max()  # so that neither huge nor tiny weights leave the range of doubles
            mean = float(used @ values[counts] / used.sum())
        return MetricValue(mean, str(self), len(values), int((~counts).sum()))

    def arguments(self) -> dict[str, Any]:
        """Parameters that differ from their defaults, without the convention and the cutoff."""
        own = (f for f in dataclasses.fields(self) if f.name not in ("convention", "k"))
        return {f.name: getattr(self, f.name) for f in own if getattr(self, f.name) != f.default}

    def __str__(self) -> str:
        # Read back by `metric`: metric(str(m)) == m.
        values = ",".join(f"{name}={written(value)}" for name, value in self.arguments().items())
        cutoff = getattr(self, "k", None)
        base = self.name + (f"({values})" if values else "") + (f"@{cutoff}" if cutoff else "")
        return base if self.convention == PRESETS["concordant"] else f"{base}[{self.convention}]"

    def __repr__(self) -> str:
        return f"metric({str(self)!r})"


def check_number(name: str, value: object) -> float:
    """Give a parameter of a metric as a plain float; refuse what is no finite number."""
    if math.isfinite(number := as_double(value)):
        return number
    raise ParameterError(name, value, "a finite number")


def check_weights(weights: ArrayLike, n_queries: int) -> FloatArray:
    """One weight >= 0 per query, not all 0."""
    values = check_nonnegative(weights, "weights", "query")
    if len(values) != n_queries:
        raise LengthMismatchError("weights", len(values), n_queries, "the data, counted in queries,")
    if not values.any():
        raise ParameterError("weights", "all 0", "positive for at least one query")
    return values
