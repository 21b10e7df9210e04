"""Linear metrics: a target of 1 is worth c_k at place k, and what items are worth adds up."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from concordant.exceptions import UnknownNameError
from concordant.metrics.additive import NDCG, Additive, Precision
from concordant.metrics.cascade import AP, ERR, RR
from concordant.metrics.metric import Metric
from concordant.metrics.parse import METRICS
from concordant.metrics.parse import metric as read_metric
from concordant.supervision.synthetic.items import check_counts
from concordant.theory.spaces import SPACES, spaces_of
from concordant.types import FloatArray

__all__ = ["items_below", "linear_discounts"]

PAIRS: Mapping[str, tuple[str, ...]] = {  # where a pair costs a difference of the targets
    "auc": ("binary", "grades"),
    "pd": ("binary",),
    "wpd": ("binary", "grades"),
}


def linear_discounts(metric: Metric | str, n_items: int, labels: str = "auto") -> FloatArray | None:
    """Give c_1 >= ... >= c_n such that the metric is linear; None where that is not known.

    Its value is a constant of the label, plus (where greater is better, else minus) the sum over items of
    r_i(y) c(place of i), with the standardization r.

    Parameters
    ----------
    metric
        A metric, or its name.
    n_items
        Items of the query.
    labels
        What the labels may be: a name of `concordant.theory.spaces.SPACES`; "auto": the metric's own.

    Examples
    --------
    >>> linear_discounts("p@2", 4).tolist(), linear_discounts("auc", 3).tolist()
    ([0.5, 0.5, 0.0, 0.0], [2.0, 1.0, 0.0])
    >>> linear_discounts("pd", 3, "grades") is None  # 1(y_i > y_j) is no difference of two numbers
    True
    """
    check_counts(n_items=n_items)
    if labels != "auto" and labels not in SPACES:
        raise UnknownNameError("label space", labels, SPACES)
    chosen = read_metric(metric)
    spaces = spaces_of(chosen)
    space = spaces[0] if labels == "auto" and spaces else labels
    if space not in spaces or type(chosen) not in METRICS.values():  # what inherits may be another metric
        return None
    if isinstance(chosen, Additive):
        return additive_discounts(chosen, n_items)
    if space in PAIRS.get(chosen.name, ()):
        return items_below(n_items)
    return np.eye(1, n_items)[0] if reads_first(chosen) else None


def additive_discounts(metric: Additive, n_items: int) -> FloatArray:
    """Discounts up to the cutoff, over what precision divides by; 0 where lists are too short to count."""
    discounts, k = np.zeros(n_items), min(metric.k or n_items, n_items)
    if isinstance(metric, NDCG) and metric.convention.short_list == "zero" and n_items < (metric.k or 0):
        return discounts
    discounts[:k] = metric.discounts(k)
    return discounts / metric.places(np.array([n_items]))[0] if isinstance(metric, Precision) else discounts


def items_below(n_items: int) -> FloatArray:
    """Give n - k, the discounts of metrics that pay r_i - r_j for each pair in which i stands below j.

    Add up r_i times the number of items above i: of each pair, the r of the lower item. That is the smaller
    r of the two, whatever the order, and the difference besides, if the item of the larger one is below.
    """
    return np.arange(n_items - 1.0, -1.0, -1.0)


def reads_first(metric: Metric) -> bool:
    """Whether only the first place counts."""
    if isinstance(metric, AP) and metric.convention.ap_denominator == "uncut":  # which ignores the cutoff
        return False
    return isinstance(metric, (AP, ERR, RR)) and metric.k == 1
