"""Loss matrices of ranking metrics, and the low-rank surrogates of Ramaswamy, Agarwal and Tewari (2013).

Rows are labels; columns are all orders of the items, best item first, as listed by `itertools.permutations`.

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

from concordant._base.validate import as_numpy, check_counts, check_nonnegative
from concordant.data.labels import Grades, Preferences
from concordant.data.queries import Queries
from concordant.data.synthetic.distribution import Label
from concordant.exceptions import LabelError, ParameterError, ShapeError, UnknownNameError
from concordant.metrics.additive import Additive, Precision
from concordant.metrics.cascade import AP
from concordant.metrics.convention import gains
from concordant.metrics.metric import Metric
from concordant.metrics.pair_metrics import PD
from concordant.metrics.parse import metric as by_name
from concordant.surrogates.lowrank_surrogate import LowRankSurrogate
from concordant.theory.regret import values_of_scores
from concordant.types import ArrayLike, FloatArray, IntArray

MAX_ITEMS = 6  # 720 orders
MAX_LABELS = 100_000
FORMS = ("full", "half")


def every_order(n_items: int) -> IntArray:
    """List all orders of up to 6 items as rows, best item first.

    >>> every_order(2).tolist()
    [[0, 1], [1, 0]]
    """
    _check_items(n_items)
    return np.array(list(itertools.permutations(range(n_items))), dtype=np.int64)


def every_label(n_items: int, n_grades: int = 2) -> FloatArray:
    """List all ways to grade the items from 0 to n_grades - 1 as rows.

    >>> every_label(2).tolist()
    [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    """
    _check_items(n_items)
    check_counts(n_grades=n_grades)
    if n_grades**n_items > MAX_LABELS:
        raise ParameterError("n_grades", n_grades, f"small enough for at most {MAX_LABELS:,} labels")
    return np.array(list(itertools.product(range(n_grades), repeat=n_items)), dtype=np.float64)


def every_preference(n_items: int) -> FloatArray:
    """List the graphs of a single preference as matrices a[i, j]: all others are sums of them.

    >>> every_preference(2).tolist()
    [[[0.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [1.0, 0.0]]]
    """
    _check_items(n_items)
    pairs = np.argwhere(~np.eye(n_items, dtype=bool))
    if not len(pairs):
        raise ParameterError("n_items", n_items, "at least 2")
    graphs = np.zeros((len(pairs), n_items, n_items))
    graphs[np.arange(len(pairs)), pairs[:, 0], pairs[:, 1]] = 1.0
    return graphs


def _check_items(n_items: int) -> None:
    check_counts(n_items=n_items)
    if n_items > MAX_ITEMS:
        raise ParameterError("n_items", n_items, f"at most {MAX_ITEMS}")


def _read_labels(labels: ArrayLike) -> FloatArray:
    """Check the labels: rows of grades >= 0, or one square matrix of preferences per label."""
    table = as_numpy(labels, "labels")
    if table.ndim not in (2, 3) or 0 in table.shape or (table.ndim == 3 and table.shape[1] != table.shape[2]):
        raise ShapeError("labels", table.shape, "(n_labels, n_items) grades or (n_labels, n_items, n_items)")
    _check_items(table.shape[1])
    numbers = check_nonnegative(table.ravel(), "labels", "number").reshape(table.shape)
    if table.ndim == 3 and np.diagonal(numbers, axis1=1, axis2=2).any():
        raise LabelError("labels prefer an item to itself", "set the diagonal of each matrix to 0.")
    return numbers


def _read_metric(metric: Metric | str) -> Metric:
    """Read the metric, with NaN (not a filled-in value) where nothing is relevant."""
    parsed = by_name(metric)
    return by_name(parsed, convention=parsed.convention.replace(empty="skip", empty_ap=None))


def loss_matrix(metric: Metric | str, labels: ArrayLike) -> FloatArray:
    """Compute the loss of each order under each label, shape (n_labels, n_items!).

    A loss such as pd is taken unchanged. A gain is subtracted from a constant that no order exceeds: 1, or
    the largest value in the matrix if that is more. Where a label leaves the metric undefined, all orders
    gain 0.

    Parameters
    ----------
    metric
        A metric of grades or preferences, or its name.
    labels
        Grades, a row per label; for pd and wpd also matrices a[i, j], the weight of "i preferred to j". At
        most 6 items.

    Examples
    --------
    >>> loss_matrix("p@1", [[1, 0], [1, 1]]).tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """
    parsed, table = _read_metric(metric), _read_labels(labels)
    values = np.array([_order_values(parsed, label) for label in table])
    return _largest_gain(values) - values if parsed.greater_is_better else values


def _order_values(metric: Metric, label: FloatArray) -> FloatArray:
    """Compute the metric of every order under one label; 0 where undefined."""
    scores = -np.argsort(every_order(len(label)), axis=1).astype(np.float64)  # highest for the best item
    query_label: Label = label if label.ndim == 1 else Preferences.from_matrices([label])
    return values_of_scores(metric, query_label, np.arange(len(label)), scores)


def _largest_gain(values: FloatArray) -> float:
    """Return the constant that gains are subtracted from."""
    return max(1.0, float(values.max()))


def closed_form(metric: Metric | str, labels: ArrayLike, *, dimension: str = "full") -> LowRankSurrogate:
    """Build the surrogate of the paper, whose targets are formulas: no matrix is factorised.

    With n items, and y_i = 1 for relevant ones,

    - p@q, wta, eru, dcg, ndcg: n numbers, the standardized labels r_i(y); sorting decodes them;
    - ap: n(n+1)/2 numbers y_i y_j / sum(y), i >= j;
    - pd, wpd: n(n-1) numbers a[i, j], i != j; or, with `dimension="half"`, n(n-1)/2 differences
      a[i, j] - a[j, i], i < j.

    Parameters
    ----------
    metric, labels
        As for `loss_matrix`, which the surrogate factorises.
    dimension
        "full", or "half" for pd and wpd.

    Examples
    --------
    >>> closed_form("wta", [[1, 0, 1]]).targets.tolist()
    [[1.0, 0.0, 1.0]]
    >>> closed_form("pd", [[2, 1, 0]], dimension="half").targets.tolist()
    [[1.0, 1.0, 1.0]]
    """
    parsed, table = _read_metric(metric), _read_labels(labels)
    if dimension not in FORMS:
        raise UnknownNameError("dimension", dimension, FORMS)
    places = np.argsort(every_order(table.shape[1]), axis=1) + 1
    if isinstance(parsed, PD):
        return _preference_surrogate(preferences(parsed, table), places, half=dimension == "half")
    if table.ndim == 3:
        raise LabelError(f"{parsed} reads grades, not preferences", "pass one row of grades per label.")
    if dimension == "half":
        raise ParameterError(
            "dimension", dimension, f"'full' for {parsed}", hint="Only pd and wpd have 'half'."
        )
    if isinstance(parsed, AP):
        return _average_precision_surrogate(parsed, table, places)
    if isinstance(parsed, Additive):
        return _additive_surrogate(parsed, table, places)
    hint = "Use LowRankSurrogate.from_loss_matrix for other metrics."
    raise ParameterError("metric", str(parsed), "p@q, wta, eru, dcg, ndcg, ap, pd or wpd", hint=hint)


def _gain_surrogate(targets: FloatArray, worths: FloatArray) -> LowRankSurrogate:
    """Build the surrogate of a gain <targets, worths>."""
    top = _largest_gain(targets @ worths.T)
    return LowRankSurrogate(targets, -worths, levels=np.full(len(targets), top))


def _additive_surrogate(metric: Additive, grades: FloatArray, places: IntArray) -> LowRankSurrogate:
    """Build the surrogate of a sum of gain times discount: one number per item."""
    n_labels, n_items = grades.shape
    linear = metric.order_loss(grades.ravel(), np.full(n_labels, n_items))
    targets, worths = linear.gains.reshape(grades.shape), linear.discounts[places - 1]
    if isinstance(metric, Precision):  # the relevance itself is the target, as in the paper
        shown = metric.places(np.array([n_items]))[0]
        targets, worths = targets * shown, worths / shown
    return _gain_surrogate(targets, worths)


def _average_precision_surrogate(metric: AP, grades: FloatArray, places: IntArray) -> LowRankSurrogate:
    """Build that of AP: the sum over i >= j of y_i y_j / (sum(y) max(place_i, place_j)), up to the cutoff."""
    cut = metric.k if metric.convention.ap_denominator != "uncut" else None
    if cut is not None and metric.convention.ap_denominator == "found":
        raise ParameterError("metric", str(metric), "without a cutoff if ap_denominator='found'")
    n_labels, n_items = grades.shape
    labels, queries = Grades(grades.ravel()), Queries.from_sizes(np.full(n_labels, n_items))
    relevant, shares = (
        values.reshape(grades.shape)
        for values in (metric.relevance(labels, queries), metric.shares(labels, queries))
    )
    i, j = np.tril_indices(n_items)
    lower = np.maximum(places[:, i], places[:, j])
    return _gain_surrogate(relevant[:, i] * shares[:, j], (lower <= (cut or n_items)) / lower)


def preferences(metric: PD, labels: FloatArray) -> FloatArray:
    """Return a[i, j] of each label, which for labels of grades is computed from the grades."""
    if labels.ndim == 3:
        return labels
    usable = metric.usable(Grades(labels.ravel())).values
    values = gains(*metric.gain(), usable).reshape(labels.shape)
    above = np.maximum(values[:, :, None] - values[:, None, :], 0.0)
    return above if metric.weighted else (above > 0).astype(np.float64)


def _preference_surrogate(weights: FloatArray, places: IntArray, *, half: bool) -> LowRankSurrogate:
    """Build that of the weight of violated preferences: one number per ordered pair, or per pair."""
    n_items = weights.shape[1]
    i, j = np.triu_indices(n_items, 1) if half else np.nonzero(~np.eye(n_items, dtype=bool))
    violated = (places[:, i] > places[:, j]).astype(np.float64)
    if not half:
        return LowRankSurrogate(weights[:, i, j], violated)
    opposite = weights[:, j, i]
    return LowRankSurrogate(weights[:, i, j] - opposite, violated, levels=opposite.sum(axis=1))


@dataclass(frozen=True)
class Dimensions:
    """Dimensions of the surrogates of a metric.

    Attributes
    ----------
    metric, n_items, n_labels, n_predictions
        The prediction problem.
    smallest
        Least dimension of a low-rank surrogate: `LowRankSurrogate.from_loss_matrix`.
    closed_form
        Dimension of the formula (its half form for pd); None where there is no formula.
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
    """Compute the dimensions of the surrogates of a metric.

    Parameters
    ----------
    metric
        A metric, or its name.
    n_items
        Number of items to order, at most 6.
    labels
        As for `loss_matrix`; default: every binary label.

    Examples
    --------
    >>> dimensions("ap", 4)
    Dimensions(metric='ap', n_items=4, n_labels=16, n_predictions=24,
               smallest=8, closed_form=10, matrix_rank=9, general=15)
    """
    table = every_label(n_items) if labels is None else _read_labels(labels)
    if table.shape[1] != n_items:
        raise ShapeError("labels", table.shape, f"labels of {n_items} items")
    losses = loss_matrix(metric, table)
    proof = LowRankSurrogate.from_loss_matrix(losses).proof
    try:
        form = "half" if isinstance(_read_metric(metric), PD) else "full"
        explicit = closed_form(metric, table, dimension=form).dimension
    except ParameterError:  # no formula
        explicit = None
    n_labels, n_predictions = losses.shape
    counts = (n_items, n_labels, n_predictions, proof.dimension, explicit, proof.matrix_rank, n_labels - 1)
    return Dimensions(str(by_name(metric)), *counts)
