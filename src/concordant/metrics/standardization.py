"""Standardization: training targets computed from the labels."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from concordant.data.queries import Queries
from concordant.exceptions import NoStandardizationError
from concordant.metrics.metric import Family, Metric, check_assumption
from concordant.metrics.parse import metric as read_metric
from concordant.types import ArrayLike, FloatArray

EVERY = "every distribution"
NOTHING = "nothing"


def standardize(
    metric: str | Metric,
    y: ArrayLike,
    *,
    qid: ArrayLike = None,
    assume: str | None = None,
    f: Family | None = None,
) -> FloatArray:
    """Compute the standardization r(y) of a metric: labels whose mean is an optimal score vector.

    A loss that preserves order, trained on r(y), is consistent with the metric. Most metrics have an r for
    every distribution of the labels; some have one only under a condition, which is yours to assume;
    some have none, and the error names the theorem and what to use instead.

    Parameters
    ----------
    metric
        A metric, or its name.
    y
        One grade per row; or `Preferences` (`pd`, `wpd`), `Permutations` (`zero_one`).
    qid
        Query ids in any order, or a `Queries`; None: all rows are one query.
    assume
        The condition that the labels are taken to satisfy; not needed, and without effect, where r holds
        for every distribution. With u_ij = E[y_i y_j / sum(y)] and d_ij = E[a_ij - a_ji]:

        - `"P_reinforce"` (`ap`): u_ii >= u_jj implies u_ii >= u_jj + sum over the other g of
          max(u_jg - u_ig, 0). r is y_i / sum(y); `sum(y)` is what the convention makes AP@k divide by.
        - `"low_noise"` (`pd`, `wpd` on preferences): d_ik > 0 and d_kj > 0 imply d_ij >= d_ik + d_kj.
          r is n C + sum_k (a_ik - a_ki) with C the largest weight of the query.
        - `"P_f"` (`pd`, `wpd` on preferences): d_ij > 0 implies E[f_i] > E[f_j]. r is f.
        - `"order_preserving"` (`zero_one`): for some order of the items and any two neighbours i, j in it,
          an order with i before j is more probable than with the two exchanged, or neither is possible.
          r is n + 1 - position.
    f
        For `"P_f"`: `f(better, worse, weights, n_items)` returns one number per item of a query. Its items
        are numbered from 0 in the order of their rows; each pair occurs once, with a weight > 0. Numbers
        below 0 raise those of the whole query by a constant. Default: the net weights sum_k (a_ik - a_ki).

    Returns
    -------
    array
        One number >= 0 per row, in the caller's order; 0 on queries where the metric is undefined, such as
        those without a relevant item or a preference (f is not called there).

    References
    ----------
    Buffoni, Calauzènes, Gallinari and Usunier (2011), Learning scoring functions with order-preserving
    losses and standardized supervision. Ramaswamy, Agarwal and Tewari (2013), Convex calibrated surrogates
    for low-rank loss matrices.

    Examples
    --------
    >>> standardize("ndcg", [2, 1, 0, 0], qid=["a", "a", "b", "b"]).round(4)
    array([0.8262, 0.2754, 0.    , 0.    ])
    >>> standardize("ap", [1, 1, 0], assume="P_reinforce")
    array([0.5, 0.5, 0. ])
    >>> from concordant import Permutations, Preferences
    >>> votes = Preferences(better=[0, 0, 1], worse=[1, 2, 2], weights=[1, 3, 1], n_rows=3)
    >>> standardize("pd", votes, assume="low_noise")
    array([13.,  9.,  5.])
    >>> import numpy as np
    >>> def wins(better, worse, weights, n_items):
    ...     return np.bincount(better, minlength=n_items)
    >>> standardize("pd", votes, assume="P_f", f=wins)
    array([2., 1., 0.])
    >>> standardize("zero_one", Permutations([1, 3, 2]), assume="order_preserving")
    array([3., 1., 2.])
    >>> standardize("err", [2, 1, 0])
    Traceback (most recent call last):
    concordant.exceptions.NoStandardizationError: err has no standardization: the labels (1,1,0,0) and ...
    """
    return read_metric(metric).targets(y, qid=qid, assume=assume, f=f)


def usable_targets(
    metric: Metric,
    labels: Any,
    queries: Queries,
    assume: str | None = None,
    f: Family | None = None,
    *,
    every: bool = True,
) -> tuple[FloatArray, str]:
    """Compute targets >= 0 by sorted row to train on, and the assumption that makes the training consistent.

    It is `"every distribution"`, the name of a condition (the assumed one, else the metric's first), or
    `"nothing"`: the metric has no standardization, and the targets are a stand-in.

    Parameters
    ----------
    metric, assume, f
        As for `standardize`.
    labels
        The result of `metric.read_labels(y)`.
    queries
        The queries of the rows.
    every
        False if labels in other parts of the data rule out a standardization for every distribution.

    Examples
    --------
    >>> queries = Queries.from_sizes([3])
    >>> ap, err = read_metric("ap"), read_metric("err")
    >>> usable_targets(ap, ap.read_labels([1, 0, 1]), queries)
    (array([0.5, 0. , 0.5]), 'P_reinforce')
    >>> usable_targets(err, err.read_labels([4, 0, 1]), queries)
    (array([0.9375, 0.    , 0.0625]), 'nothing')
    """
    check_assumption(assume, f)
    with suppress(NoStandardizationError):
        if every:
            return metric.standardize_under(None, labels, queries, f), EVERY
    condition = assume or next(iter(metric.conditional(labels)), None)
    if condition is None:
        return metric.stand_in(labels, queries), NOTHING
    return metric.standardize_under(condition, labels, queries, f), condition
