"""Loss matrices of ranking metrics, and the low-rank surrogates of Ramaswamy, Agarwal and Tewari (2013).

Rows are labels; columns are all orders of the items, as `itertools.permutations` gives them, best item first.

>>> surrogate = closed_form("ap", every_label(3))
>>> surrogate
LowRankSurrogate(8 labels, 6 predictions, dimension 6)
>>> float(np.abs(surrogate.loss_matrix() - loss_matrix("ap", every_label(3))).max()) < 1e-15
True
>>> surrogate.proof.smallest_dimension
4
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from concordant.exceptions import LabelError, ParameterError, ShapeError, UnknownNameError
from concordant.metrics.additive import Additive, Precision
from concordant.metrics.cascade import AP
from concordant.metrics.gains import gains
from concordant.metrics.metric import Metric
from concordant.metrics.pairwise import PD
from concordant.metrics.parse import metric as by_name
from concordant.supervision.columns import as_numpy, check_nonnegative
from concordant.supervision.labels import Grades, Preferences
from concordant.supervision.queries import Queries
from concordant.supervision.synthetic.distribution import Label, tile
from concordant.supervision.synthetic.items import check_counts
from concordant.surrogates.lowrank import LowRankSurrogate
from concordant.types import ArrayLike, FloatArray, IntArray

__all__ = [
    "Dimensions",
    "closed_form",
    "dimensions",
    "every_label",
    "every_order",
    "every_preference",
    "loss_matrix",
]

MAX_ITEMS = 6  # 720 orders
MAX_LABELS = 100_000
FORMS = ("full", "half")


def every_order(n_items: int) -> IntArray:
    """Give all orders of up to 6 items, best first, one a row.

    >>> every_order(2).tolist()
    [[0, 1], [1, 0]]
    """
    check_items(n_items)
    return np.array(list(itertools.permutations(range(n_items))), dtype=np.int64)


def every_label(n_items: int, n_grades: int = 2) -> FloatArray:
    """Give all ways to grade the items from 0 to n_grades - 1, one a row.

    >>> every_label(2).tolist()
    [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    """
    check_items(n_items)
    check_counts(n_grades=n_grades)
    if n_grades**n_items > MAX_LABELS:
        raise ParameterError("n_grades", n_grades, f"so few that labels are at most {MAX_LABELS:,}")
    return np.array(list(itertools.product(range(n_grades), repeat=n_items)), dtype=np.float64)


def every_preference(n_items: int) -> FloatArray:
    """Give the graphs of one preference, as matrices a[i, j]: all others are sums of them.

    >>> every_preference(2).tolist()
    [[[0.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [1.0, 0.0]]]
    """
    check_items(n_items)
    pairs = np.argwhere(~np.eye(n_items, dtype=bool))
    if not len(pairs):
        raise ParameterError("n_items", n_items, "at least 2 to prefer one")
    graphs = np.zeros((len(pairs), n_items, n_items))
    graphs[np.arange(len(pairs)), pairs[:, 0], pairs[:, 1]] = 1.0
    return graphs


def check_items(n_items: int) -> None:
    """Refuse more items than whose orders can be listed."""
    check_counts(n_items=n_items)
    if n_items > MAX_ITEMS:
        raise ParameterError("n_items", n_items, f"at most {MAX_ITEMS}: every order is a column")


def read_labels(labels: ArrayLike) -> FloatArray:
    """Give numbers >= 0: grades, one label a row; or one square matrix of preferences a label."""
    table = as_numpy(labels, "labels")
    if table.ndim not in (2, 3) or 0 in table.shape or (table.ndim == 3 and table.shape[1] != table.shape[2]):
        raise ShapeError("labels", table.shape, "(n_labels, n_items) grades or (n_labels, n_items, n_items)")
    check_items(table.shape[1])
    numbers = check_nonnegative(table.ravel(), "labels", "number").reshape(table.shape)
    if table.ndim == 3 and np.diagonal(numbers, axis1=1, axis2=2).any():
        raise LabelError("labels prefer an item to itself", "set the diagonal of each matrix to 0.")
    return numbers


def read_metric(metric: Metric | str) -> Metric:
    """Give the metric, undefined (not worth a number) where nothing is relevant."""
    chosen = by_name(metric)
    return by_name(chosen, convention=chosen.convention.replace(empty="skip", empty_ap=None))


def loss_matrix(metric: Metric | str, labels: ArrayLike) -> FloatArray:
    """Give what each order loses under each label, (n_labels, n_items!).

    A loss such as pd is taken as it is. Of a gain it is the constant by which no order gains more, less the
    gain: 1, or the largest value in the matrix where that is more. A label under which the metric is
    undefined gains 0 whatever the order.

    Parameters
    ----------
    metric
        A metric of grades or preferences, or its name.
    labels
        Grades, one label a row; for pd and wpd also matrices a[i, j], the weight of "i preferred to j". At
        most 6 items.

    Examples
    --------
    >>> loss_matrix("p@1", [[1, 0], [1, 1]]).tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """
    chosen, table = read_metric(metric), read_labels(labels)
    values = np.array([order_values(chosen, label) for label in table])
    return largest_gain(values) - values if chosen.greater_is_better else values


def order_values(metric: Metric, label: FloatArray) -> FloatArray:
    """Value of every order under one label; 0 where undefined."""
    orders, n_items = every_order(len(label)), len(label)
    scores = n_items - np.argsort(orders, axis=1)  # of the items: the place of each, best highest
    known: Label = label if label.ndim == 1 else Preferences.from_matrices([label])
    copies = tile(known, np.arange(n_items), len(orders))
    values = metric.per_query(copies, scores.ravel(), qid=Queries.from_sizes(np.full(len(orders), n_items)))
    return np.where(np.isnan(values), 0.0, values)


def largest_gain(values: FloatArray) -> float:
    """The constant from which gains are subtracted."""
    return max(1.0, float(values.max()))


def closed_form(metric: Metric | str, labels: ArrayLike, *, dimension: str = "full") -> LowRankSurrogate:
    """Give the surrogate of the paper, whose targets are formulas: no matrix is factorised.

    With n items, and y_i = 1 for relevant ones,

    - p@q, wta, eru, dcg, ndcg: n numbers, the standardized labels r_i(y); sorting decodes them;
    - ap: n(n+1)/2 numbers y_i y_j / sum(y), i >= j;
    - pd, wpd: n(n-1) numbers a[i, j], i != j; or, with `dimension="half"`, n(n-1)/2 differences
      a[i, j] - a[j, i], i < j.

    Parameters
    ----------
    metric, labels
        As for `loss_matrix`, which it makes up.
    dimension
        "full", or "half" for pd and wpd.

    Examples
    --------
    >>> closed_form("wta", [[1, 0, 1]]).targets.tolist()
    [[1.0, 0.0, 1.0]]
    >>> closed_form("pd", [[2, 1, 0]], dimension="half").targets.tolist()
    [[1.0, 1.0, 1.0]]
    """
    chosen, table = read_metric(metric), read_labels(labels)
    if dimension not in FORMS:
        raise UnknownNameError("dimension", dimension, FORMS)
    places = np.argsort(every_order(table.shape[1]), axis=1) + 1
    if isinstance(chosen, PD):
        return of_pairs(preferences(chosen, table), places, half=dimension == "half")
    if table.ndim == 3:
        raise LabelError(f"{chosen} reads grades, not preferences", "pass one row of grades per label.")
    if dimension == "half":
        raise ParameterError("dimension", dimension, f"full for {chosen}: only pd and wpd have a half")
    if isinstance(chosen, AP):
        return of_products(chosen, table, places)
    if isinstance(chosen, Additive):
        return of_places(chosen, table, places)
    known = "p@q, wta, eru, dcg, ndcg, ap, pd or wpd; others by LowRankSurrogate.from_loss_matrix"
    raise ParameterError("metric", str(chosen), known)


def of_gains(targets: FloatArray, worths: FloatArray) -> LowRankSurrogate:
    """A gain of <targets, worths> as a loss."""
    top = largest_gain(targets @ worths.T)
    return LowRankSurrogate(targets, -worths, levels=np.full(len(targets), top))


def of_places(metric: Additive, grades: FloatArray, places: IntArray) -> LowRankSurrogate:
    """Sum of gain times discount: one number per item."""
    n_labels, n_items = grades.shape
    linear = metric.order_loss(grades.ravel(), np.full(n_labels, n_items))
    targets, worths = linear.gains.reshape(grades.shape), linear.discounts[places - 1]
    if isinstance(metric, Precision):  # the relevance itself is the target, as in the paper
        shown = metric.places(np.array([n_items]))[0]
        targets, worths = targets * shown, worths / shown
    return of_gains(targets, worths)


def of_products(metric: AP, grades: FloatArray, places: IntArray) -> LowRankSurrogate:
    """Average precision: sum over i >= j of y_i y_j / (sum(y) max(place_i, place_j)), up to the cutoff."""
    cut = metric.k if metric.convention.ap_denominator != "uncut" else None
    if cut is not None and metric.convention.ap_denominator == "found":
        raise ParameterError(
            "metric", str(metric), "without a cutoff, where it divides by what an order finds"
        )
    n_labels, n_items = grades.shape
    labels, queries = Grades(grades.ravel()), Queries.from_sizes(np.full(n_labels, n_items))
    relevant, shares = (
        values.reshape(grades.shape)
        for values in (metric.relevance(labels, queries), metric.shares(labels, queries))
    )
    i, j = np.tril_indices(n_items)
    lower = np.maximum(places[:, i], places[:, j])
    return of_gains(relevant[:, i] * shares[:, j], (lower <= (cut or n_items)) / lower)


def preferences(metric: PD, labels: FloatArray) -> FloatArray:
    """Give a[i, j] of each label: as given, or from its grades."""
    if labels.ndim == 3:
        return labels
    usable = metric.usable(Grades(labels.ravel())).values
    values = gains(*metric.gain(), usable).reshape(labels.shape)
    above = np.maximum(values[:, :, None] - values[:, None, :], 0.0)
    return above if metric.weighted else (above > 0).astype(np.float64)


def of_pairs(weights: FloatArray, places: IntArray, *, half: bool) -> LowRankSurrogate:
    """Weight of the preferences that an order violates: one number per ordered pair, or per pair."""
    n_items = weights.shape[1]
    i, j = np.triu_indices(n_items, 1) if half else np.nonzero(~np.eye(n_items, dtype=bool))
    violated = (places[:, i] > places[:, j]).astype(np.float64)
    if not half:
        return LowRankSurrogate(weights[:, i, j], violated)
    opposite = weights[:, j, i]
    return LowRankSurrogate(weights[:, i, j] - opposite, violated, levels=opposite.sum(axis=1))


@dataclass(frozen=True)
class Dimensions:
    """How many numbers surrogates of one metric need.

    Attributes
    ----------
    metric, n_items, n_labels, n_predictions
        What is predicted.
    smallest
        Least dimension of a low-rank surrogate: `LowRankSurrogate.from_loss_matrix`.
    closed_form
        Dimension of the formula (the half one of pd); None where there is none.
    matrix_rank
        Rank of the loss matrix.
    general
        n_labels - 1, which serves any losses.
    """

    metric: str
    n_items: int
    n_labels: int
    n_predictions: int
    smallest: int
    closed_form: int | None
    matrix_rank: int
    general: int


def dimensions(metric: Metric | str, n_items: int, labels: ArrayLike = None) -> Dimensions:
    """Count the numbers that surrogates of a metric need.

    Parameters
    ----------
    metric
        A metric, or its name.
    n_items
        How many items are ordered, at most 6.
    labels
        As for `loss_matrix`; default: every binary label.

    Examples
    --------
    >>> dimensions("ap", 4)
    Dimensions(metric='ap', n_items=4, n_labels=16, n_predictions=24,
               smallest=8, closed_form=10, matrix_rank=9, general=15)
    """
    table = every_label(n_items) if labels is None else read_labels(labels)
    if table.shape[1] != n_items:
        raise ShapeError("labels", table.shape, f"labels of {n_items} items")
    losses = loss_matrix(metric, table)
    proof = LowRankSurrogate.from_loss_matrix(losses).proof
    try:
        form = "half" if isinstance(read_metric(metric), PD) else "full"
        explicit = closed_form(metric, table, dimension=form).dimension
    except ParameterError:  # no formula
        explicit = None
    n_labels, n_predictions = losses.shape
    counts = (n_items, n_labels, n_predictions, proof.dimension, explicit, proof.matrix_rank, n_labels - 1)
    return Dimensions(str(by_name(metric)), *counts)
