"""Metric: a frozen value that turns labels and scores into one number per query, and their mean."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

import numpy as np

from concordant._base.validate import (
    all_zero_error,
    check_ids,
    check_lengths,
    check_nonnegative,
    check_scores,
    has_rows,
    list_words,
    refuse_misaligned,
)
from concordant._base.warn import warn_caller_once
from concordant.data.queries import Queries, naming_query
from concordant.exceptions import (
    LabelError,
    LabelWarning,
    LengthMismatchError,
    NoStandardizationError,
    ParameterError,
    UnknownNameError,
)
from concordant.metrics.convention import PRESETS, Convention, format_field
from concordant.types import ArrayLike, BoolArray, FloatArray, IntArray, OrderLoss

if TYPE_CHECKING:
    from numpy.typing import NDArray


# Conditions on the distribution of the labels, under which a metric has a standardization.

CONDITIONS: Mapping[str, str] = {  # name -> where the standardization is proved
    "P_reinforce": "Ramaswamy et al. 2013, Corollary 5",
    "low_noise": "Buffoni et al. 2011, section 5.3",
    "P_f": "Ramaswamy et al. 2013, Theorem 6",
    "order_preserving": "Buffoni et al. 2011, section 5.4",
}

Family: TypeAlias = Callable[[IntArray, IntArray, FloatArray, int], ArrayLike]
"""f(better, worse, weights, n_items) of one query's preferences: one number per item."""

Standardization: TypeAlias = Callable[[Any, Queries], FloatArray]
"""Labels and queries -> one target >= 0 per sorted row."""


def check_assumption(assume: str | None, f: Family | None = None) -> None:
    """Raise for a condition that is in no theorem, and for an f that no condition reads."""
    if isinstance(assume, str) and assume == "P_DAG":
        hint = "P_DAG is a condition of PairRanker(decoder='edge-deletion')."
        raise ParameterError("assume", assume, list_words(map(repr, CONDITIONS)), hint=hint)
    if assume is not None and not (isinstance(assume, str) and assume in CONDITIONS):
        raise UnknownNameError("condition", assume, CONDITIONS)
    if f is not None and assume != "P_f":
        raise ParameterError.because(
            "f was given, but it is used only with assume='P_f'. Leave f out, or set assume."
        )
    if f is not None and not callable(f):
        raise ParameterError("f", f, "a function f(better, worse, weights, n_items)")


GRADED, TWO_GRADES = ("grades", "binary"), ("binary", "grades")  # label spaces, the default first


class MetricValue(float):
    """A float with the number of queries that it is the mean of, and the number that were skipped.

    >>> value = MetricValue(0.5, name="ndcg@10", n_queries=4, n_skipped=1)
    >>> value + 1, value.n_skipped
    (1.5, 1)
    """

    __slots__ = ("n_queries", "n_skipped", "name")
    name: str
    n_queries: int
    n_skipped: int

    def __new__(cls, value: float, name: str = "", n_queries: int = 0, n_skipped: int = 0) -> Self:
        """Attach the numbers of queries to a mean."""
        self = super().__new__(cls, value)
        self.name, self.n_queries, self.n_skipped = name, n_queries, n_skipped
        return self

    def __getnewargs__(self) -> tuple[float, str, int, int]:  # type: ignore[override]
        return float(self), self.name, self.n_queries, self.n_skipped

    def __repr__(self) -> str:
        n_counted = self.n_queries - self.n_skipped
        return f"{self.name} = {float(self):.6g} over {n_counted} of {self.n_queries} queries"

    def __str__(self) -> str:
        return float.__repr__(self)


@dataclass(frozen=True, repr=False)
class Metric:
    """A measure of the quality of a ranking.

    A metric is called with labels, scores (high is better) and query ids, in any row order::

        metric(y, scores, qid=qid)            # the mean over queries, as a MetricValue
        metric.per_query(y, scores, qid=qid)  # one number per query, ascending ids; NaN where skipped

    Parameters
    ----------
    convention
        Definitions that the name leaves open: ties, empty queries, gains (see `Convention`).
    """

    convention: Convention = field(default=PRESETS["concordant"], kw_only=True)

    name: ClassVar[str] = ""
    greater_is_better: ClassVar[bool] = True
    normalised: ClassVar[bool] = False  # divides by the best value: 0/0 on an empty query
    joint_targets: ClassVar[bool] = False  # a query's targets may be a stand-in because of other queries
    label_spaces: ClassVar[tuple[str, ...]] = ()  # names of `theory.spaces.SPACES`, the default first
    convention_fields: ClassVar[tuple[str, ...]] = ()  # fields of it that matter; (): unknown
    bounded: ClassVar[bool] = True  # no value is above 1
    compares_pairs: ClassVar[bool] = False  # undefined where no two items of the query differ

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
            One score per row, high is better; -inf marks a row that is not in the ranking. Rows are matched
            by position: pandas objects with one index in different orders are refused.
        qid
            Query ids in any order, or a `Queries`; None: all rows are one query.
        weights
            One weight >= 0 per query, in ascending order of the ids; the mean divides by their sum over the
            queries that count.
        docid
            Document ids, for the tie rule `id_descending`.
        """
        if has_rows(weights) and qid is not None:
            _refuse_misaligned_weights(weights, qid)
        return self.average(self.per_query(y, scores, qid=qid, docid=docid), weights)

    def per_query(
        self, y: ArrayLike, scores: ArrayLike, *, qid: ArrayLike = None, docid: ArrayLike = None
    ) -> FloatArray:
        """One value per query, in ascending order of the ids; NaN if the convention skips the query."""
        refuse_misaligned(y=y, scores=scores, qid=qid, docid=docid)
        with naming_query(qid):
            labels = self.read_labels(y)
            checked = check_scores(scores, len(labels))
            queries = Queries.for_rows(qid, len(labels))
            ids = None if docid is None else check_ids(docid, "docid")
            check_lengths("y", len(labels), docid=ids)
            values, defined = self.evaluate(labels, checked, queries, ids)
        return self.fill(values, defined)

    def read_labels(self, y: ArrayLike) -> Any:
        """Convert the labels to the type that this metric reads."""
        raise NotImplementedError

    def label_problem(self, y: ArrayLike) -> str:
        """Describe why no row, or every row, is relevant to this metric; empty if that is not so.

        >>> from concordant import metric
        >>> metric("ap").label_problem([0.0, 0.8, 0.2]).partition(";")[0]
        'no label reaches relevant_from=1, so nothing is relevant to ap'
        """
        if not self.by_relevance or type(y).__name__ in ("Preferences", "Permutations"):
            return ""  # a surrogate may read what the metric does not
        labels, threshold = self.read_labels(y), float(self.convention.relevant_from)
        lowest, highest = float(labels.values.min(initial=labels.highest)), labels.highest
        if not highest or lowest < threshold <= highest or lowest == highest >= threshold:
            return ""
        middle = float(f"{(lowest + highest) / 2:.2g}")
        middle = middle if lowest < middle <= highest else highest
        better = dataclasses.replace(self, convention=self.convention.replace(relevant_from=middle))
        low = highest < threshold
        reach, end, label = ("no", "largest", highest) if low else ("every", "smallest", lowest)
        count = "nothing" if low else "every row"
        problem = f"{reach} label reaches relevant_from={threshold:g}, so {count} is relevant to {self}"
        advice = f"Use {better}, or a metric of grades such as ndcg."
        return f"{problem}; the {end} label is {label:g}. {advice}"

    def warn_of_labels(self, y: ArrayLike) -> None:
        """Warn of labels of which no row, or every row, is relevant."""
        if problem := self.label_problem(y):
            warn_caller_once(problem, LabelWarning)

    def evaluate(
        self, labels: Any, scores: FloatArray, queries: Queries, docid: NDArray[Any] | None
    ) -> tuple[FloatArray, BoolArray]:
        """One value per query, and whether the metric is defined there."""
        raise NotImplementedError

    def targets(
        self, y: ArrayLike, *, qid: ArrayLike = None, assume: str | None = None, f: Family | None = None
    ) -> FloatArray:
        """Compute the standardization r(y), whose mean is an optimal score vector: `concordant.standardize`.

        One number >= 0 per row, in the caller's order; 0 on queries where the metric is undefined.
        """
        check_assumption(assume, f)
        refuse_misaligned(y=y, qid=qid)
        with naming_query(qid):
            labels = self.read_labels(y)
            queries = Queries.for_rows(qid, len(labels))
            return queries.scatter(self.standardize_under(assume, labels, queries, f))

    def standardize_under(
        self, assume: str | None, labels: Any, queries: Queries, f: Family | None = None
    ) -> FloatArray:
        """Compute r(y) by sorted row: for every distribution if possible, else under this condition."""
        try:
            targets = self.standardize(labels, queries)
        except NoStandardizationError as missing:
            if assume is None:
                raise
            standardizations = self.conditional(labels, f)
            if assume not in standardizations:
                problem = f"assume={assume!r} does not serve these labels"
                raise NoStandardizationError(str(self), problem, missing.alternatives) from missing
            return standardizations[assume](labels, queries)
        if f is not None:
            raise ParameterError.because(
                f"f was given, but {self} has a standardization without it. Leave f out."
            )
        return targets

    def standardize(self, labels: Any, queries: Queries) -> FloatArray:
        """Compute r(y) by sorted row, for every distribution of y; metrics without r raise."""
        del queries
        raise self.unstandardized(labels, "none is known", "name a metric of grades, such as ndcg.")

    def standardized_on(self, space: str) -> bool:
        """Return True if r(y) exists for every distribution of the labels of this space."""
        del space
        return False

    def linear_discounts(self, n_items: int, space: str) -> FloatArray | None:
        """Return c_1 >= ... >= c_n such that the value is a constant plus the sum of r_i(y) c(place of i).

        None if the metric is not linear in r(y) on labels of this space. For losses the sum is subtracted.
        """
        del n_items, space
        return None

    def conditional(self, labels: Any, f: Family | None = None) -> Mapping[str, Standardization]:
        """Standardizations that need a condition of `CONDITIONS`, the preferred first."""
        del labels, f
        return {}

    def stand_in(self, labels: Any, queries: Queries) -> FloatArray:
        """Compute targets by sorted row if no standardization exists; no theorem supports them."""
        return self.standardize(labels, queries)

    def order_loss(self, y: ArrayLike, sizes: IntArray) -> OrderLoss:
        """Loss of each order of the rows relative to the best order; rows of each query are adjacent."""
        del y, sizes
        raise ParameterError.because(
            f"metric {str(self)!r} has no listwise hinge loss. Use ap, auc, dcg, eru, ndcg, p@k, wpd, or pd "
            "on two grades."
        )

    def unstandardized(self, labels: Any, theorem: str, instead: str) -> NoStandardizationError:
        """Build the error that names the theorem, the conditions with a standardization, and alternatives."""
        offers = (f'assume="{name}" ({CONDITIONS[name]})' for name in self.conditional(labels))
        request = " or ".join(offers)
        hint = f"pass {request} if the labels satisfy it; else {instead}" if request else instead
        return NoStandardizationError(str(self), theorem, hint)

    def itemwise_targets(self, space: str) -> bool:
        """Return True if each item's target depends only on the item's label, on labels of this space.

        The metric is then a sum of gains, and the weight of an item multiplies its gain.
        """
        del space
        return False

    @property
    def by_relevance(self) -> bool:
        """True if grades are read as relevant or not."""
        return "relevant_from" in self.convention_fields

    @property
    def by_query(self) -> bool:
        """True if the value of a query depends on its rows alone, not on those of others."""
        return True

    @property
    def empty_rule(self) -> str | float:
        """Rule for a query without anything relevant."""
        return self.convention.empty

    def tie_key(
        self, rows: IntArray, docid: NDArray[Any] | None, grades: FloatArray | None = None
    ) -> FloatArray | IntArray:
        """Sort key of tied rows (in the caller's numbering), lowest first."""
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
        parameters = (f for f in dataclasses.fields(self) if f.name not in ("convention", "k"))
        return {f.name: getattr(self, f.name) for f in parameters if getattr(self, f.name) != f.default}

    def __str__(self) -> str:
        # Read back by `metric`: metric(str(m)) == m.
        values = ",".join(f"{name}={format_field(value)}" for name, value in self.arguments().items())
        cutoff = getattr(self, "k", None)
        base = self.name + (f"({values})" if values else "") + (f"@{cutoff}" if cutoff else "")
        return base if self.convention == PRESETS["concordant"] else f"{base}[{self.convention}]"

    def __repr__(self) -> str:
        return f"metric({str(self)!r})"


def _refuse_misaligned_weights(weights: Any, qid: ArrayLike) -> None:
    """Raise for pandas weights indexed by query ids that are not in ascending order."""
    ids = (qid if isinstance(qid, Queries) else Queries.from_ids(qid)).ids
    index = weights.index
    if len(index) == len(ids) and set(index) == set(ids.tolist()) and (index != ids).any():
        hint = "weights are read by position: pass weights.sort_index(), or .to_numpy()."
        raise LabelError("weights have the query ids as index, but not in ascending order", hint)


def check_weights(weights: ArrayLike, n_queries: int) -> FloatArray:
    """Check one weight >= 0 per query, not all 0."""
    values = check_nonnegative(weights, "weights", "query")
    if len(values) != n_queries:
        raise LengthMismatchError("weights", len(values), n_queries, "the data, counted in queries,")
    if not values.any():
        raise all_zero_error("weights", "query")
    return values
