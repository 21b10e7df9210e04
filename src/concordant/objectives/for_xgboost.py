"""Objective and metric for XGBoost: for `xgboost.train`."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from concordant.exceptions import ParameterError
from concordant.metrics.convention import Convention
from concordant.metrics.metric import Metric
from concordant.metrics.parse import metric as read_metric
from concordant.objectives.binding import Columns, Kept, bound_loss, bound_metric
from concordant.rankers.boosters.plan import Plan, Slopes, slopes
from concordant.surrogates import Surrogate
from concordant.types import ArrayLike

__all__ = ["XGBoostMetric", "XGBoostObjective", "xgboost", "xgboost_metric"]

SOURCE = "the XGBoost DMatrix"


def columns_of(data: Any) -> Columns:
    """Give the columns of a DMatrix."""
    if not hasattr(data, "get_uint_info"):
        wanted = (
            "a DMatrix with groups: `xgboost.train` passes it (XGBRanker takes no objective of one's own)"
        )
        raise ParameterError("data", type(data).__name__, wanted)
    return Columns(data.get_label(), data.get_weight(), np.diff(data.get_uint_info("group_ptr")))


@dataclass(frozen=True)
class XGBoostMetric:
    """A metric as XGBoost's `custom_metric`: gives (name, value).

    Weights of a DMatrix with groups are those of the queries.
    """

    measured: Metric
    kept: Kept = field(default_factory=Kept, compare=False, repr=False)

    @property
    def maximize(self) -> bool:
        """Whether higher is better, which XGBoost cannot tell by the name: for `xgboost.train(maximize=)`."""
        return self.measured.greater_is_better

    def __call__(self, scores: ArrayLike, data: Any) -> tuple[str, float]:
        """Of raw scores and a DMatrix."""
        value = self.kept.get(columns_of(data), partial(bound_metric, self.measured, source=SOURCE))
        return str(self.measured), value(scores)


@dataclass(frozen=True)
class XGBoostObjective:
    """A surrogate as XGBoost's `obj`: gives gradient and curvature of the loss, summed over queries.

    Attributes
    ----------
    plan
        Metric, surrogate and curvature.
    metric
        The same metric, for `custom_metric`.
    """

    plan: Plan
    kept: Kept = field(default_factory=Kept, compare=False, repr=False)

    @property
    def metric(self) -> XGBoostMetric:
        """The metric that is trained for."""
        return XGBoostMetric(self.plan.metric)

    def __call__(self, scores: ArrayLike, data: Any) -> Slopes:
        """Of raw scores and a DMatrix."""
        loss = self.kept.get(columns_of(data), partial(bound_loss, self.plan, source=SOURCE))
        return slopes(loss, scores, self.plan.curvature)[1]


def xgboost(
    metric: str | Metric = "ndcg@10",
    surrogate: str | Surrogate = "auto",
    curvature: str = "auto",
    assume: str | None = None,
    *,
    lift: float | str = "auto",
) -> XGBoostObjective:
    """Give an objective for XGBoost: the loss that goes with a metric, on its standardized labels.

    It serves `xgboost.train(..., obj=...)` with a DMatrix that has groups (`qid` or `set_group`); its
    `metric` serves `custom_metric`, with `maximize=objective.metric.maximize` where training stops early.
    `XGBRanker` refuses every objective that is not its own: use `xgboost.train` or `BoostedRanker`.

    Parameters
    ----------
    metric, surrogate, curvature, assume, lift
        As for `lightgbm`.

    Notes
    -----
    Losses of the queries are added, so that `min_child_weight` and `lambda` keep their meaning. Weights of a
    DMatrix with groups weigh the queries; they are divided by their mean. Scores begin at `base_score`, which
    changes no order: 0 is best given to it.

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
    return XGBoostObjective(Plan.of(metric, surrogate, curvature, lift, assume))


def xgboost_metric(
    metric: str | Metric = "ndcg@10", *, convention: str | Convention | None = None
) -> XGBoostMetric:
    """Give a metric for XGBoost: `xgboost.train(custom_metric=...)`.

    Parameters
    ----------
    metric, convention
        As for `lightgbm_metric`.

    Examples
    --------
    >>> xgboost_metric("pd").maximize
    False
    """
    return XGBoostMetric(read_metric(metric, convention=convention))
