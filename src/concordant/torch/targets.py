"""Standardization on the device: the targets that a loss uses instead of the grades.

Equal to the metric's `targets`, by torch operations if these are cheap; otherwise the grades travel to the
CPU and back.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from concordant.data.queries import Queries
from concordant.metrics.additive import NDCG, Additive
from concordant.metrics.cascade import AP
from concordant.metrics.convention import ABOVE, BINARY, EXP2
from concordant.metrics.graded import GradedMetric
from concordant.metrics.metric import Metric
from concordant.metrics.pair_metrics import AUC, WPD
from concordant.metrics.standardization import usable_targets
from concordant.torch.lists import Lists
from concordant.torch.torch_sweep import sort_rows


def standardize_grades(metric: Metric, grades: Tensor, lists: Lists, assume: str | None = None) -> Tensor:
    """Return one target >= 0 per row, in double precision: `usable_targets` of the metric.

    >>> from concordant.metrics.parse import metric
    >>> standardize_grades(metric("ap"), torch.tensor([2, 1, 0, 0]), Lists.from_offsets([0, 2, 4])).tolist()
    [0.5, 0.5, 0.0, 0.0]
    """
    if lists.n_rows == 0:
        return grades.double()
    standardize = _on_device(metric)
    if standardize is not None:
        return standardize(metric, grades, lists)
    return _on_host(metric, grades, lists, assume)


def check_grades(metric: Metric, grades: Tensor) -> None:
    """Raise on negative or missing grades, and on grades whose gain overflows."""
    if not grades.numel():
        return
    plain = grades.double() if grades.is_floating_point() else grades  # numpy has no bfloat16
    labels = metric.read_labels(plain.detach().cpu().numpy())
    if isinstance(metric, GradedMetric):
        metric.usable(labels)


def _on_host(metric: Metric, grades: Tensor, lists: Lists, assume: str | None) -> Tensor:
    """Standardize by the metric itself; the grades travel to the CPU."""
    labels = metric.read_labels(grades.detach().double().cpu().numpy())
    queries = Queries.from_sizes(lists.sizes.cpu().numpy())
    targets, _ = usable_targets(metric, labels, queries, assume)
    return torch.from_numpy(np.ascontiguousarray(targets)).to(grades.device)


def _on_device(metric: Metric) -> Callable[..., Tensor] | None:
    """Return the function that computes the metric's targets in torch; None if the metric must do it."""
    if isinstance(metric, GradedMetric) and callable(metric.convention.gain):
        return None
    if type(metric) is AP:
        divides_by_found = metric.convention.ap_denominator == "found" and metric.k not in (None, 1)
        return None if divides_by_found else _relevance_shares
    if type(metric) is NDCG:
        return _normalised_gains
    if isinstance(metric, Additive):
        return _gains
    if type(metric) is AUC:
        return _relevance_per_pair
    return _mixed_gains if type(metric) is WPD else None


def gains(kind: int, parameter: float, grades: Tensor) -> Tensor:
    """Return the gain of each grade in double precision, like `metrics.convention.gains`."""
    if kind == BINARY:
        return (grades >= parameter).double()
    if kind == ABOVE:
        return (grades - parameter).clamp(min=0.0)
    return grades.exp2() - 1.0 if kind == EXP2 else grades


def _gains(metric: Additive | WPD, grades: Tensor, lists: Lists) -> Tensor:
    del lists
    return gains(*metric.gain(), grades.double())


def _normalised_gains(metric: NDCG, grades: Tensor, lists: Lists) -> Tensor:
    """Divide the gain by the best DCG of the query; 0 where that is 0."""
    values = _gains(metric, grades, lists)
    k = min(metric.k or lists.longest, lists.longest)
    if lists.n_rows == lists.n_queries * lists.longest:  # all lists have the same size
        best = values.reshape(lists.n_queries, -1).topk(k).values
        return divide_by_query(values, best @ discount_tables(metric, k, grades.device)[0][:k], lists)
    # Gains rise with the grades, which sort faster. `sort_rows` needs whole numbers below 2^32: smaller types
    # ensure that, and so does 2^grade, which would otherwise overflow.
    small = grades.dtype != torch.int64 or metric.gain()[0] == EXP2
    ideal = values[sort_rows(grades if small else values, lists)]
    places = torch.arange(lists.n_rows, device=grades.device) - lists.starts
    discounts = discount_tables(metric, k, grades.device)[0][places.clamp(max=k)]
    return divide_by_query(values, lists.sums(ideal * discounts), lists)


def discount_tables(metric: Additive, places: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return the discounts of the first positions followed by 0, and the sums before each position.

    They are cached, since copies make a device wait.
    """
    try:
        tables: tuple[Tensor, Tensor] = _cached_tables(metric, places, device)
    except TypeError:  # unhashable discounts, such as a list
        tables = build_discount_tables(metric, places, device)
    return tables


@torch.inference_mode(mode=False)  # they are cached for calls that may need gradients
def build_discount_tables(metric: Additive, places: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Build the discount tables."""
    discounts = metric.discounts(places)
    tables = np.append(discounts, 0.0), np.append(0.0, discounts.cumsum())
    return torch.from_numpy(tables[0]).to(device), torch.from_numpy(tables[1]).to(device)


_cached_tables = lru_cache(maxsize=256)(build_discount_tables)


def _relevance_shares(metric: AP, grades: Tensor, lists: Lists) -> Tensor:
    """Divide relevance by the divisor of AP; 0 where that is 0."""
    relevant = (grades.double() >= metric.convention.relevant_from).double()
    divisors = lists.sums(relevant)
    if metric.k is not None and metric.convention.ap_denominator in ("min", "found"):
        divisors = divisors.clamp(max=float(metric.k))
    return divide_by_query(relevant, divisors, lists)


def _relevance_per_pair(metric: AUC, grades: Tensor, lists: Lists) -> Tensor:
    """Divide relevance by the number of pairs of the query."""
    relevant = (grades.double() >= metric.convention.relevant_from).double()
    positive = lists.sums(relevant)
    return divide_by_query(relevant, positive * (lists.sizes - positive), lists)


def _mixed_gains(metric: WPD, grades: Tensor, lists: Lists) -> Tensor:
    """Return the gains of queries with two or more different ones; 0 elsewhere."""
    values = _gains(metric, grades, lists)
    # Equal grades may have gains that differ in the last digit from row to row.
    graded = lists.lowest(grades) < lists.highest(grades)
    apart = graded & (lists.lowest(values) < lists.highest(values))
    return torch.where(lists.spread(apart), values, 0.0)


def divide_by_query(values: Tensor, divisors: Tensor, lists: Lists) -> Tensor:
    """Divide the rows of each query by its divisor; 0 where that is 0."""
    scale = torch.where(divisors > 0, 1.0 / divisors, 0.0)
    return values * lists.spread(scale)
