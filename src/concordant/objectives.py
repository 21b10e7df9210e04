"""Objectives and metrics for the native training functions of LightGBM and XGBoost, called in every round."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

import numpy as np

from concordant._base.segments import segment_sum
from concordant._base.validate import all_zero_error, check_lengths, check_nonnegative, refuse_misaligned
from concordant.data.check import weight_kind
from concordant.data.queries import Queries
from concordant.exceptions import LabelError, LengthMismatchError, ParameterError
from concordant.metrics.convention import Convention
from concordant.metrics.metric import Metric
from concordant.metrics.parse import metric as read_metric
from concordant.rankers.boosters.plan import BoostingPlan, Slopes, slopes
from concordant.surrogates import Loss, Surrogate
from concordant.types import ArrayLike, FloatArray

__all__ = [
    "LightGBMMetric",
    "LightGBMObjective",
    "XGBoostMetric",
    "XGBoostObjective",
    "lightgbm",
    "lightgbm_metric",
    "xgboost",
    "xgboost_metric",
]

# A loss on the labels of a dataset: bound once, and evaluated in every round.

MOST = 8  # datasets in the cache


@dataclass(frozen=True, eq=False)
class DatasetColumns:
    """Labels, weights and query sizes of a booster's dataset."""

    labels: ArrayLike  # one grade per row
    weight: ArrayLike  # one per row or one per query; None or empty: 1
    sizes: ArrayLike  # rows of each query, which are adjacent

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DatasetColumns):
            return NotImplemented
        pairs = ((getattr(self, name), getattr(other, name)) for name in ("labels", "weight", "sizes"))
        return all(_is_same_column(*pair) for pair in pairs)

    __hash__ = None  # type: ignore[assignment]

    def copied(self) -> DatasetColumns:
        """Return a deep copy, which the caller cannot change."""
        columns = vars(self).values()
        return DatasetColumns(*(None if column is None else np.array(column) for column in columns))

    def queries(self, source: str) -> Queries:
        """Build the queries; raise if the dataset has no groups."""
        if self.sizes is None or not len(self.sizes):
            hint = "give the number of rows of each query, in order: group=... (or qid, of XGBoost)."
            raise LabelError(f"{source} has no groups: which rows are ranked together is not known", hint)
        queries = Queries.from_sizes(self.sizes)
        check_lengths("the groups", queries.n_rows, labels=self.labels)
        return queries

    def weights(self, queries: Queries) -> tuple[FloatArray | None, FloatArray | None]:
        """Return the weight of each row and of each query; positive query weights average 1."""
        if self.weight is None or not len(self.weight):
            return None, None
        rows = check_nonnegative(self.weight, "weight", "row")
        if len(rows) == queries.n_queries:
            rows = np.repeat(rows, queries.sizes)
        if len(rows) != queries.n_rows:
            raise LengthMismatchError("weight", len(rows), queries.n_rows, "the dataset")
        means = segment_sum(rows, queries.offsets) / np.maximum(queries.sizes, 1)
        if not means.any():
            raise all_zero_error("weight", "row")
        unit = means[means > 0.0].mean()
        return rows / unit, means / unit


def _is_same_column(column: ArrayLike, other: ArrayLike) -> bool:
    """True if two columns have the same contents, or are both missing."""
    if column is None or other is None:
        return column is other
    return column is other or np.array_equal(column, other)


class BoundDatasets:
    """Cache of what was computed from the last few datasets.

    Datasets are compared by content (with copies, so that a change is noticed), which takes a fraction of the
    time of a gradient. Copies and pickles start empty.
    """

    def __init__(self) -> None:
        self.entries: list[tuple[DatasetColumns, Any]] = []

    def get(self, columns: DatasetColumns, make: Callable[[DatasetColumns], Any]) -> Any:
        """Return the cached result for these columns, or compute it."""
        for cached_columns, result in self.entries:
            if cached_columns == columns:
                return result
        new_result = make(columns)
        self.entries = [(columns.copied(), new_result), *self.entries[: MOST - 1]]
        return new_result

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return type(self)()

    def __reduce__(self) -> tuple[type[Self], tuple[()]]:
        return type(self), ()


def _bind_loss(plan: BoostingPlan, columns: DatasetColumns, source: str) -> Loss:
    """Bind the loss to a dataset's labels, summed over its queries; warn if its guarantee does not hold."""
    queries = columns.queries(source)
    labels, guarantee = plan.labels(columns.labels, queries)
    row_weights = columns.weights(queries)[0]
    labels, weights = plan.weigh_and_lift(labels, row_weights, queries)
    guarantee.under_weights(weight_kind(row_weights, queries.offsets)).warn()
    return plan.surrogate.bind(labels, queries.offsets, weights)


def _bind_metric(metric: Metric, columns: DatasetColumns, source: str) -> Callable[[ArrayLike], float]:
    """Return a function that evaluates the metric of score vectors on a dataset."""
    queries = columns.queries(source)
    labels, weights = metric.read_labels(columns.labels), columns.weights(queries)[1]
    return lambda scores: float(metric(labels, scores, qid=queries, weights=weights))


# Objective and metric for LightGBM: for `lightgbm.train` and for `LGBMRanker`.

DATASET = "the LightGBM Dataset"


def _read_arguments(
    first: Any, second: Any, weight: ArrayLike = None, group: ArrayLike = None
) -> tuple[ArrayLike, DatasetColumns]:
    """Read scores and columns from (scores, Dataset), or from (labels, scores, weight, group)."""
    if hasattr(second, "get_field"):  # lightgbm.train; else LGBMRanker, which counts the parameters
        _check_whole_queries(second)
        return first, DatasetColumns(second.get_label(), second.get_weight(), second.get_group())
    refuse_misaligned(labels=first, scores=second, weight=weight)
    return second, DatasetColumns(first, weight, group)


def _check_whole_queries(data: Any) -> None:
    """Raise if part of a Dataset has some rows of a query, but not all: `lightgbm.cv` draws rows."""
    used, whole = getattr(data, "used_indices", None), getattr(data, "reference", None)
    sizes = None if used is None or whole is None else whole.get_group()
    if sizes is None:
        return
    counts = np.bincount(np.repeat(np.arange(len(sizes)), sizes)[np.asarray(used)], minlength=len(sizes))
    if (cut := (counts > 0) & (counts < sizes)).any():
        q = int(np.argmax(cut))
        problem = f"query number {q} is cut: {counts[q]} of its {sizes[q]} rows are in this part of {DATASET}"
        raise LabelError(problem, "pass whole queries to lightgbm.cv: folds=GroupKFold(5).split(X, y, qid).")


@dataclass(frozen=True)
class LightGBMMetric:
    """A metric as LightGBM's `feval` and `eval_metric`: returns (name, value, True if higher is better).

    Weights of a Dataset are averaged over the rows of a query, and then weigh the query.
    """

    measured: Metric
    datasets: BoundDatasets = field(default_factory=BoundDatasets, compare=False, repr=False)

    def __call__(
        self, y_true: Any, y_pred: Any, weight: ArrayLike = None, group: ArrayLike = None
    ) -> tuple[str, float, bool]:
        """Evaluate on (scores, Dataset), or on (labels, scores, weight, group)."""
        scores, columns = _read_arguments(y_true, y_pred, weight, group)
        value = self.datasets.get(columns, partial(_bind_metric, self.measured, source=DATASET))
        return str(self.measured), value(scores), self.measured.greater_is_better


@dataclass(frozen=True)
class LightGBMObjective:
    """A surrogate as LightGBM's objective: returns gradient and curvature of the loss, summed over queries.

    Attributes
    ----------
    plan
        Metric, surrogate and curvature.
    metric
        The same metric, for `feval` or `eval_metric`.
    """

    plan: BoostingPlan
    datasets: BoundDatasets = field(default_factory=BoundDatasets, compare=False, repr=False)

    @property
    def metric(self) -> LightGBMMetric:
        """The training metric, for `feval` or `eval_metric`."""
        return LightGBMMetric(self.plan.metric)

    def __call__(self, y_true: Any, y_pred: Any, weight: ArrayLike = None, group: ArrayLike = None) -> Slopes:
        """Evaluate on (scores, Dataset), or on (labels, scores, weight, group)."""
        scores, columns = _read_arguments(y_true, y_pred, weight, group)
        loss = self.datasets.get(columns, partial(_bind_loss, self.plan, source=DATASET))
        return slopes(loss, scores, self.plan.curvature)[1]


def lightgbm(
    metric: str | Metric = "ndcg@10",
    surrogate: str | Surrogate = "auto",
    curvature: str = "auto",
    assume: str | None = None,
    *,
    lift: float | str = "auto",
) -> LightGBMObjective:
    """Build an objective for LightGBM: the loss that goes with a metric, on its standardized labels.

    Use it in `lightgbm.train({"objective": ...}, dataset)`, with groups in the Dataset, or in
    `LGBMRanker(objective=..., metric="None")`; its `metric` is for `feval` and `eval_metric`. It can be
    pickled. `lightgbm.cv` cuts queries, which raises, unless `folds` has whole queries.

    Parameters
    ----------
    metric
        The metric to train for, or its name.
    surrogate
        The loss that is minimised: "auto", a name, or a `Surrogate`, as in `BoostedRanker`.
    curvature
        "exact": the second derivative. "majorising": larger, such that a round of trees at a learning rate of
        at most 1 (1/2 with monotone constraints) never raises the training loss, where leaves count all their
        rows: no bagging, no GOSS, no quantised gradients. "auto": exact where the loss has it, else
        majorising.
    assume
        Condition on the labels under which the metric has a standardization (see `concordant.standardize`);
        without it a metric that needs one causes a `GuaranteeWarning`.
    lift
        Share of the highest target of a query that is added to all its targets, as in `BoostedRanker`.

    Notes
    -----
    Losses of the queries are added, as in LightGBM's built-in objectives, so that `min_sum_hessian_in_leaf`
    and `lambda_l2` keep their meaning. Weights of the Dataset weigh the rows' labels, as `sample_weight` of
    `LinearRanker` does, and thus a query where they are the same for all its rows; they are divided by the
    mean weight of a query.

    Labels are read once for each Dataset, and again when they change.

    Examples
    --------
    >>> import lightgbm as lgb
    >>> import concordant as cc
    >>> toy = cc.synthetic.grades(n_queries=200, n_items=10, seed=0)
    >>> data = lgb.Dataset(toy.X, label=toy.y, group=[10] * 200)
    >>> objective = cc.objectives.lightgbm("ndcg@5")
    >>> settings = {"objective": objective, "verbosity": -1, "num_threads": 1}
    >>> booster = lgb.train(settings, data, num_boost_round=10)
    >>> name, value, higher_is_better = objective.metric(booster.predict(toy.X), data)
    >>> name, value > 0.5, higher_is_better
    ('ndcg@5', True, True)
    """
    return LightGBMObjective(BoostingPlan.from_names(metric, surrogate, curvature, lift, assume))


def lightgbm_metric(
    metric: str | Metric = "ndcg@10", *, convention: str | Convention | None = None
) -> LightGBMMetric:
    """Build a metric for LightGBM: `lightgbm.train(feval=...)`, `LGBMRanker.fit(eval_metric=...)`.

    Parameters
    ----------
    metric
        A metric of grades, or its name.
    convention
        Rules for ties, empty queries and gains, if the name leaves them open (see `concordant.metric`).

    Examples
    --------
    >>> lightgbm_metric("ndcg@2")([2, 0, 1], [0.1, 0.3, 0.2], group=[3])
    ('ndcg@2', 0.1737..., True)
    """
    return LightGBMMetric(read_metric(metric, convention=convention))


# Objective and metric for XGBoost: for `xgboost.train`.

DMATRIX = "the XGBoost DMatrix"


def _dmatrix_columns(data: Any) -> DatasetColumns:
    if not hasattr(data, "get_uint_info"):
        raise ParameterError.because(
            "The objective needs a DMatrix with groups, as passed by xgboost.train, got "
            f"{type(data).__name__}. XGBRanker does not accept custom objectives."
        )
    return DatasetColumns(data.get_label(), data.get_weight(), np.diff(data.get_uint_info("group_ptr")))


@dataclass(frozen=True)
class XGBoostMetric:
    """A metric as XGBoost's `custom_metric`: returns (name, value).

    Weights of a DMatrix with groups are those of the queries.
    """

    measured: Metric
    datasets: BoundDatasets = field(default_factory=BoundDatasets, compare=False, repr=False)

    @property
    def maximize(self) -> bool:
        """True if higher is better, which XGBoost cannot see from the name: `xgboost.train(maximize=)`."""
        return self.measured.greater_is_better

    def __call__(self, scores: ArrayLike, data: Any) -> tuple[str, float]:
        """Evaluate on raw scores and a DMatrix."""
        columns = _dmatrix_columns(data)
        value = self.datasets.get(columns, partial(_bind_metric, self.measured, source=DMATRIX))
        return str(self.measured), value(scores)


@dataclass(frozen=True)
class XGBoostObjective:
    """A surrogate as XGBoost's `obj`: returns gradient and curvature of the loss, summed over queries.

    Attributes
    ----------
    plan
        Metric, surrogate and curvature.
    metric
        The same metric, for `custom_metric`.
    """

    plan: BoostingPlan
    datasets: BoundDatasets = field(default_factory=BoundDatasets, compare=False, repr=False)

    @property
    def metric(self) -> XGBoostMetric:
        """The training metric, for `custom_metric`."""
        return XGBoostMetric(self.plan.metric)

    def __call__(self, scores: ArrayLike, data: Any) -> Slopes:
        """Evaluate on raw scores and a DMatrix."""
        loss = self.datasets.get(_dmatrix_columns(data), partial(_bind_loss, self.plan, source=DMATRIX))
        return slopes(loss, scores, self.plan.curvature)[1]


def xgboost(
    metric: str | Metric = "ndcg@10",
    surrogate: str | Surrogate = "auto",
    curvature: str = "auto",
    assume: str | None = None,
    *,
    lift: float | str = "auto",
) -> XGBoostObjective:
    """Build an objective for XGBoost: the loss that goes with a metric, on its standardized labels.

    Use it in `xgboost.train(..., obj=...)` with a DMatrix that has groups (`qid` or `set_group`); its
    `metric` is for `custom_metric`, with `maximize=objective.metric.maximize` if training stops early.
    `XGBRanker` accepts only built-in objectives: use `xgboost.train` or `BoostedRanker`.

    Parameters
    ----------
    metric, surrogate, curvature, assume, lift
        As in `lightgbm`.

    Notes
    -----
    Losses of the queries are added, so that `min_child_weight` and `lambda` keep their meaning. Weights of a
    DMatrix with groups weigh the queries; they are divided by their mean. Scores begin at `base_score`, which
    changes no order: set it to 0.

    Examples
    --------
    >>> import xgboost as xgb
    >>> import concordant as cc
    >>> toy = cc.synthetic.grades(n_queries=200, n_items=10, seed=0)
    >>> data = xgb.DMatrix(toy.X, label=toy.y, qid=toy.qid)
    >>> objective = cc.objectives.xgboost("ndcg@5")
    >>> booster = xgb.train({"base_score": 0.0, "max_depth": 3, "nthread": 1}, data, 10, obj=objective)
    >>> name, value = objective.metric(booster.predict(data, output_margin=True), data)
    >>> name, value > 0.5
    ('ndcg@5', True)
    """
    return XGBoostObjective(BoostingPlan.from_names(metric, surrogate, curvature, lift, assume))


def xgboost_metric(
    metric: str | Metric = "ndcg@10", *, convention: str | Convention | None = None
) -> XGBoostMetric:
    """Build a metric for XGBoost: `xgboost.train(custom_metric=...)`.

    Parameters
    ----------
    metric, convention
        As in `lightgbm_metric`.

    Examples
    --------
    >>> xgboost_metric("pd").maximize
    False
    """
    return XGBoostMetric(read_metric(metric, convention=convention))
