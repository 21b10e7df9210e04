"""Objective and metric for LightGBM: for `lightgbm.train` and for `LGBMRanker`."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from concordant.exceptions import LabelError
from concordant.metrics.convention import Convention
from concordant.metrics.metric import Metric
from concordant.metrics.parse import metric as read_metric
from concordant.objectives.binding import Columns, Kept, bound_loss, bound_metric
from concordant.rankers.boosters.plan import Plan, Slopes, slopes
from concordant.surrogates import Surrogate
from concordant.types import ArrayLike

__all__ = ["LightGBMMetric", "LightGBMObjective", "lightgbm", "lightgbm_metric"]

SOURCE = "the LightGBM Dataset"


def read(
    first: Any, second: Any, weight: ArrayLike = None, group: ArrayLike = None
) -> tuple[ArrayLike, Columns]:
    """Give scores and columns of (scores, Dataset), or of (labels, scores, weight, group)."""
    if hasattr(second, "get_field"):  # lightgbm.train; else LGBMRanker, which counts the parameters
        refuse_cut_queries(second)
        return first, Columns(second.get_label(), second.get_weight(), second.get_group())
    return second, Columns(first, weight, group)


def refuse_cut_queries(data: Any) -> None:
    """Refuse a part of a Dataset that has some rows of a query, but not all: `lightgbm.cv` draws rows."""
    used, whole = getattr(data, "used_indices", None), getattr(data, "reference", None)
    sizes = None if used is None or whole is None else whole.get_group()
    if sizes is None:
        return
    counts = np.bincount(np.repeat(np.arange(len(sizes)), sizes)[np.asarray(used)], minlength=len(sizes))
    if (cut := (counts > 0) & (counts < sizes)).any():
        q = int(np.argmax(cut))
        problem = f"query number {q} is cut: {counts[q]} of its {sizes[q]} rows are in this part of {SOURCE}"
        raise LabelError(problem, "pass whole queries to lightgbm.cv: folds=GroupKFold(5).split(X, y, qid).")


@dataclass(frozen=True)
class LightGBMMetric:
    """A metric as LightGBM's `feval` and `eval_metric`: gives (name, value, whether higher is better).

    Weights of a Dataset are averaged over the rows of a query, and then weigh the query.
    """

    measured: Metric
    kept: Kept = field(default_factory=Kept, compare=False, repr=False)

    def __call__(
        self, y_true: Any, y_pred: Any, weight: ArrayLike = None, group: ArrayLike = None
    ) -> tuple[str, float, bool]:
        """Of (scores, Dataset), or of (labels, scores, weight, group)."""
        scores, columns = read(y_true, y_pred, weight, group)
        value = self.kept.get(columns, partial(bound_metric, self.measured, source=SOURCE))
        return str(self.measured), value(scores), self.measured.greater_is_better


@dataclass(frozen=True)
class LightGBMObjective:
    """A surrogate as LightGBM's objective: gives gradient and curvature of the loss, summed over queries.

    Attributes
    ----------
    plan
        Metric, surrogate and curvature.
    metric
        The same metric, for `feval` or `eval_metric`.
    """

    plan: Plan
    kept: Kept = field(default_factory=Kept, compare=False, repr=False)

    @property
    def metric(self) -> LightGBMMetric:
        """The metric that is trained for."""
        return LightGBMMetric(self.plan.metric)

    def __call__(self, y_true: Any, y_pred: Any, weight: ArrayLike = None, group: ArrayLike = None) -> Slopes:
        """Of (scores, Dataset), or of (labels, scores, weight, group)."""
        scores, columns = read(y_true, y_pred, weight, group)
        loss = self.kept.get(columns, partial(bound_loss, self.plan, source=SOURCE))
        return slopes(loss, scores, self.plan.curvature)[1]


def lightgbm(
    metric: str | Metric = "ndcg@10",
    surrogate: str | Surrogate = "auto",
    curvature: str = "auto",
    assume: str | None = None,
    *,
    lift: float | str = "auto",
) -> LightGBMObjective:
    """Give an objective for LightGBM: the loss that goes with a metric, on its standardized labels.

    It serves `lightgbm.train({"objective": ...}, dataset)`, whose Dataset has groups, and
    `LGBMRanker(objective=..., metric="None")`; its `metric` serves `feval` and `eval_metric`. It can be
    pickled. `lightgbm.cv` cuts queries, which is refused, unless `folds` has whole ones.

    Parameters
    ----------
    metric
        What a ranking is worth: a metric or its name.
    surrogate
        What is minimised: "auto", a name, or a `Surrogate`, as for `BoostedRanker`.
    curvature
        "exact": the second derivative. "majorising": larger, such that a round of trees at a learning rate of
        at most 1 (1/2 with monotone constraints) never raises the training loss, where leaves count all their
        rows: no bagging, no GOSS, no quantised gradients. "auto": exact where the loss has it, else
        majorising.
    assume
        Condition on the labels under which the metric has a standardization (see `concordant.standardize`);
        without it a metric that needs one gives a `GuaranteeWarning`.
    lift
        Share of the highest target of a query that is added to all its targets, as for `BoostedRanker`.

    Notes
    -----
    Losses of the queries are added, as LightGBM's own objectives do, so that `min_sum_hessian_in_leaf` and
    `lambda_l2` keep their meaning. Weights of the Dataset weigh the rows' labels, as `sample_weight` of
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
    return LightGBMObjective(Plan.of(metric, surrogate, curvature, lift, assume))


def lightgbm_metric(
    metric: str | Metric = "ndcg@10", *, convention: str | Convention | None = None
) -> LightGBMMetric:
    """Give a metric for LightGBM: `lightgbm.train(feval=...)`, `LGBMRanker.fit(eval_metric=...)`.

    Parameters
    ----------
    metric
        A metric of grades, or its name.
    convention
        What the name leaves open: ties, empty queries, gains (see `concordant.metric`).

    Examples
    --------
    >>> lightgbm_metric("ndcg@2")([2, 0, 1], [0.1, 0.3, 0.2], group=[3])
    ('ndcg@2', 0.1737..., True)
    """
    return LightGBMMetric(read_metric(metric, convention=convention))
