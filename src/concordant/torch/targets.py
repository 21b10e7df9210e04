"""Standardization on the device: the targets that a loss is given instead of the grades.

What a metric's own `targets` gives, by torch operations where these are cheap; for the rest the grades travel
to the CPU and back.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from concordant.metrics.additive import NDCG, Additive
from concordant.metrics.cascade import AP
from concordant.metrics.gains import ABOVE, BINARY, EXP2
from concordant.metrics.graded import GradedMetric
from concordant.metrics.metric import Metric
from concordant.metrics.pairwise import AUC, WPD
from concordant.metrics.standardization import usable_targets
from concordant.supervision.queries import Queries
from concordant.torch.lists import Lists
from concordant.torch.sweep import ranked

__all__ = ["check_grades", "standardized"]


def standardized(metric: Metric, grades: Tensor, lists: Lists, assume: str | None = None) -> Tensor:
    """Give one target >= 0 per row, in double precision: `usable_targets` of the metric.

    >>> from concordant.metrics.parse import metric
    >>> standardized(metric("ap"), torch.tensor([2, 1, 0, 0]), Lists.of([0, 2, 4])).tolist()
    [0.5, 0.5, 0.0, 0.0]
    """
    if lists.n_rows == 0:
        return grades.double()
    known = on_device(metric)
    if known is not None:
        return known(metric, grades, lists)
    return on_host(metric, grades, lists, assume)


def check_grades(metric: Metric, grades: Tensor) -> None:
    """Raise the package's errors for negative or missing grades, and for those whose gain overflows."""
    if not grades.numel():
        return
    plain = grades.double() if grades.is_floating_point() else grades  # numpy has no bfloat16
    labels = metric.read_labels(plain.detach().cpu().numpy())
    if isinstance(metric, GradedMetric):
        metric.usable(labels)


def on_host(metric: Metric, grades: Tensor, lists: Lists, assume: str | None) -> Tensor:
    """Ask the metric itself; the grades travel to the CPU."""
    labels = metric.read_labels(grades.detach().double().cpu().numpy())
    queries = Queries.from_sizes(lists.sizes.cpu().numpy())
    targets, _ = usable_targets(metric, labels, queries, assume)
    return torch.from_numpy(np.ascontiguousarray(targets)).to(grades.device)


def on_device(metric: Metric) -> Callable[..., Tensor] | None:
    """How the metric's targets are made by torch; None: by the metric itself."""
    if isinstance(metric, GradedMetric) and callable(metric.convention.gain):
        return None
    if type(metric) is AP:
        found = metric.convention.ap_denominator == "found" and metric.k not in (None, 1)
        return None if found else shares
    if type(metric) is NDCG:
        return normalised
    if isinstance(metric, Additive):
        return gained
    if type(metric) is AUC:
        return per_pair
    return mixed if type(metric) is WPD else None


def gained(metric: Additive | WPD, grades: Tensor, lists: Lists) -> Tensor:
    """Gains."""
    del lists
    (kind, parameter), read = metric.gain(), grades.double()
    if kind == BINARY:
        return (read >= parameter).double()
    if kind == ABOVE:
        return (read - parameter).clamp(min=0.0)
    return torch.exp2(read) - 1.0 if kind == EXP2 else read


def normalised(metric: NDCG, grades: Tensor, lists: Lists) -> Tensor:
    """Gain over the best DCG of the query; 0 where that is 0."""
    values = gained(metric, grades, lists)
    k = min(metric.k or lists.longest, lists.longest)
    if lists.n_rows == lists.n_queries * lists.longest:  # all of one size
        best = values.reshape(lists.n_queries, -1).topk(k).values
        return divided(values, best @ discount_table(metric, k, grades.device)[:k], lists)
    # Gains rise with the grades, which are sorted faster; whole numbers are, where none can be as large
    # as 2^32: its gain would have no bounds.
    small = grades.dtype != torch.int64 or metric.gain()[0] == EXP2
    ideal = values[ranked(grades if small else values, lists)]
    places = torch.arange(lists.n_rows, device=grades.device) - lists.starts
    discounts = discount_table(metric, k, grades.device)[places.clamp(max=k)]
    return divided(values, lists.sums(ideal * discounts), lists)


def discount_table(metric: NDCG, places: int, device: torch.device) -> Tensor:
    """Discounts of the first places, and 0 behind them; kept on the device."""
    try:
        return kept_table(metric, places, device)
    except TypeError:  # discounts that cannot be looked up, such as a list
        return made_table(metric, places, device)


@torch.inference_mode(mode=False)  # it is kept for calls that may want gradients
def made_table(metric: NDCG, places: int, device: torch.device) -> Tensor:
    """`discount_table`, made anew."""
    return torch.from_numpy(np.append(metric.discounts(places), 0.0)).to(device)


kept_table = lru_cache(maxsize=256)(made_table)


def shares(metric: AP, grades: Tensor, lists: Lists) -> Tensor:
    """Relevance over what AP divides by; 0 where that is 0."""
    relevant = (grades.double() >= metric.convention.relevant_from).double()
    divisors = lists.sums(relevant)
    if metric.k is not None and metric.convention.ap_denominator in ("min", "found"):
        divisors = divisors.clamp(max=float(metric.k))
    return divided(relevant, divisors, lists)


def per_pair(metric: AUC, grades: Tensor, lists: Lists) -> Tensor:
    """Relevance over the number of pairs of the query."""
    relevant = (grades.double() >= metric.convention.relevant_from).double()
    positive = lists.sums(relevant)
    return divided(relevant, positive * (lists.sizes - positive), lists)


def mixed(metric: WPD, grades: Tensor, lists: Lists) -> Tensor:
    """Gains of queries that have two or more different ones; 0 elsewhere."""
    values = gained(metric, grades, lists)
    # The same power of one grade may differ in its last digit from row to row.
    graded = lists.lowest(grades) < lists.highest(grades)
    apart = graded & (lists.lowest(values) < lists.highest(values))
    return torch.where(lists.spread(apart), values, 0.0)


def divided(values: Tensor, divisors: Tensor, lists: Lists) -> Tensor:
    """Divide the rows of each query by its own number; 0 where that is 0."""
    scale = torch.where(divisors > 0, 1.0 / divisors, 0.0)
    return values * lists.spread(scale)
