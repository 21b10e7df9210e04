"""Noise conditions as predicates on expectations of labels: a matrix, or a stack of shape (..., n, n)."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from concordant._base.validate import as_numpy, check_number
from concordant.data.labels import Permutations, Preferences
from concordant.data.queries import Queries
from concordant.data.synthetic.distribution import Label, LabelDistribution
from concordant.exceptions import LabelError, NonFiniteError, NotNumericError, ParameterError, ShapeError
from concordant.metrics.graphs import GraphPairs
from concordant.metrics.metric import Family, Metric
from concordant.metrics.parse import metric as read_metric
from concordant.types import ArrayLike, BoolArray, FloatArray, IntArray

ROUNDING = 1e-12  # error of an expectation, as a share of the largest number


def reinforces(u: ArrayLike, margin: float = 0.0) -> BoolArray:
    """True if P_reinforce holds: u_ii >= u_jj implies u_ii >= u_jj + sum of the (u_jg - u_ig)_+.

    The sum is over the items g other than i and j. Then sorting by u_ii has the largest expected average
    precision (Ramaswamy, Agarwal and Tewari 2013, Theorem 4).

    Parameters
    ----------
    u
        Symmetric, u_ij = E[y_i y_j / sum(y)].
    margin
        Tolerance by which u_ii may fall short.

    Examples
    --------
    >>> reinforces([[[0.5, 0.2], [0.2, 0.3]], [[0.5, 0.0], [0.0, 0.5]]]).tolist()
    [True, True]
    """
    matrix, allowed = _check_stack(u, "u", sign=1.0), check_margin(margin)
    slack, diagonal = rounding(matrix, 2), np.diagonal(matrix, axis1=-2, axis2=-1)
    lead = diagonal[..., :, None] - diagonal[..., None, :]
    return _everywhere((lead < -slack) | (lead >= _missed(matrix) - allowed - slack))


def _missed(u: FloatArray) -> FloatArray:
    """Sum of (u_jg - u_ig)_+ over the g other than i and j."""
    total = np.zeros(u.shape)
    for g in range(u.shape[-1]):
        short = np.maximum(u[..., None, :, g] - u[..., :, None, g], 0.0)
        short[..., g, :] = short[..., :, g] = 0.0
        total += short
    return total


def acyclic(d: ArrayLike, margin: float = 0.0) -> BoolArray:
    """True if P_DAG holds: the majority edges, d_ij > 0, form no cycle.

    Then edge deletion violates the least expected preference (Theorem 7, as above). With a margin, it deletes
    no edge above the margin: it loses at most the margin for each misordered pair.

    Parameters
    ----------
    d
        Antisymmetric, d_ij = E[a_ij - a_ji].
    margin
        Edges are d_ij > margin.

    Examples
    --------
    >>> acyclic([[0, 1, -1], [-1, 0, 1], [1, -1, 0]]).tolist()
    False
    """
    return no_cycle(majority(_check_stack(d, "d", sign=-1.0), check_margin(margin)))


def no_cycle(edges: BoolArray) -> BoolArray:
    """True, for each graph of a stack, if it has no cycle: items that no edge enters are removed in turn."""
    n = edges.shape[-1]
    graphs = edges.reshape(math.prod(edges.shape[:-2]), n, n)
    entering, each = graphs.sum(axis=1), np.arange(len(graphs))
    is_acyclic = np.ones(len(graphs), dtype=bool)
    for _ in range(n):
        item = entering.argmin(axis=1)
        is_acyclic &= entering[each, item] == 0
        entering -= graphs[each, item]
        entering[each, item] = 2 * n  # removed: at most n are subtracted later
    return is_acyclic.reshape(edges.shape[:-2])


def follows(d: ArrayLike, means: ArrayLike, margin: float = 0.0) -> BoolArray:
    """True if P_f holds: d_ij > 0 implies E[f_i] > E[f_j].

    Then sorting by E[f] violates the least expected preference (Theorem 6, as above). With a margin, it loses
    at most the margin for each misordered pair.

    Parameters
    ----------
    d
        Antisymmetric, d_ij = E[a_ij - a_ji].
    means
        E[f_i]: one number per item, a row for each matrix of a stack.
    margin
        Only d_ij > margin has to be followed.

    Examples
    --------
    >>> follows([[0, 1, 0], [-1, 0, 1], [0, -1, 0]], means=[2.0, 1.0, 0.0]).tolist()
    True
    """
    nets, values = _check_stack(d, "d", sign=-1.0), _check_numbers(means, "means")
    if values.shape != nets.shape[:-1]:
        raise ShapeError("means", values.shape, f"{nets.shape[:-1]}: a number for each row of d")
    lead = values[..., :, None] - values[..., None, :]
    return _everywhere(~majority(nets, check_margin(margin)) | (lead > rounding(values, 1)[..., None]))


def low_noise(d: ArrayLike, margin: float = 0.0) -> BoolArray:
    """True if d_ik > 0 and d_kj > 0 imply d_ij >= d_ik + d_kj; then P_f holds for the net weights.

    Parameters
    ----------
    d
        Antisymmetric, d_ij = E[a_ij - a_ji].
    margin
        Edges are d_ij > margin, and d_ij may fall short by the margin.

    Examples
    --------
    Item 0 is above item 1, which is above item 2, and 0 above 2 by less; sorting is optimal nevertheless:

    >>> d = np.array([[0.0, 1.0, 0.5], [-1.0, 0.0, 1.0], [-0.5, -1.0, 0.0]])
    >>> bool(low_noise(d)), bool(follows(d, d.sum(axis=1)))
    (False, True)
    """
    nets, allowed = _check_stack(d, "d", sign=-1.0), check_margin(margin)
    edges, slack = majority(nets, allowed), rounding(nets, 2) + allowed
    entries = np.ones(nets.shape, dtype=bool)
    for k in range(nets.shape[-1]):
        path = edges[..., :, k, None] & edges[..., None, k, :]
        far = nets >= nets[..., :, k, None] + nets[..., None, k, :] - slack
        entries &= ~path | far
    return _everywhere(entries)


def _everywhere(entries: BoolArray) -> BoolArray:
    return np.asarray(entries.all(axis=(-2, -1)))


def majority(d: FloatArray, margin: float = 0.0) -> BoolArray:
    """Mask of the d_ij above the margin."""
    edges: BoolArray = d > margin + rounding(d, 2)
    return edges


def rounding(numbers: FloatArray, axes: int) -> FloatArray:
    """Threshold below which numbers count as 0, per matrix or row of a stack; its last axes have size 1."""
    along = tuple(range(-axes, 0))
    return np.asarray(ROUNDING * np.abs(numbers).max(axis=along, keepdims=True, initial=0.0))


def check_margin(margin: float) -> float:
    """Check that the margin is a finite number >= 0."""
    return check_number("margin", margin, least=0.0)


def _check_numbers(values: ArrayLike, name: str) -> FloatArray:
    array = as_numpy(values, name)
    if array.dtype.kind not in "biuf":
        raise NotNumericError(name, f"its entries are of type {array.dtype}")
    numbers: FloatArray = array.astype(np.float64, copy=False)
    refuse_entries(
        ~np.isfinite(numbers), numbers, name, "expectations are finite: look at the labels they come from."
    )
    return numbers


def refuse_entries(bad: BoolArray, numbers: FloatArray, name: str, hint: str) -> None:
    """Raise if any entry is bad; the error names the first."""
    if bad.any():
        position = ", ".join(map(str, np.argwhere(bad)[0]))
        raise NonFiniteError(name, float(numbers[bad][0]), f"[{position}]", int(bad.sum()), hint)


def _check_stack(values: ArrayLike, name: str, sign: float) -> FloatArray:
    """Return square matrices, equal to their transposes times the sign, up to rounding."""
    matrix = _check_numbers(values, name)
    if matrix.ndim < 2 or matrix.shape[-1] != matrix.shape[-2]:
        raise ShapeError(name, matrix.shape, "a square matrix, or a stack of them: (..., n, n)")
    apart = np.abs(matrix - sign * np.swapaxes(matrix, -1, -2))
    if (wrong := apart > ROUNDING * 1e3 * np.abs(matrix).max(initial=0.0)).any():
        *_, i, j = np.argwhere(wrong)[0]
        kind, instead = ("symmetric", "(u + u.T) / 2") if sign > 0 else ("antisymmetric", "a - a.T")
        raise LabelError(f"{name} is not {kind} at row {i}, column {j}", f"pass {instead}.")
    return matrix


# Order-preserving permutation spaces: sorting by mean rank finds the most probable order.


def preserves_order(positions: ArrayLike, probs: ArrayLike) -> BoolArray:
    """True if the orders form an order-preserving space along a chain of all items.

    Along a chain: for each neighbour j after i in it, every order that ranks i before j is more probable than
    the same order with i and j exchanged, or both have probability 0 (Buffoni et al. 2011, Definition 5).
    Then sorting by the mean rank yields the most probable order, the best by `zero_one` (section 5.4).

    No chains are tried: if i is before j in that sense, E[rank of j] - E[rank of i] is a sum, over the orders
    with i first, of the difference of the two probabilities times a number above 0. So the only possible
    chain is the items sorted by mean rank, and there is none if two means are equal.

    Parameters
    ----------
    positions
        Orders, one per row: the rank of each item, 1 the best.
    probs
        Probability of each order; for a stack one row per distribution, (..., n_orders). Orders that are not
        listed have probability 0.

    Examples
    --------
    >>> orders = [[1, 2, 3], [2, 1, 3], [1, 3, 2]]
    >>> preserves_order(orders, [[0.5, 0.3, 0.2], [0.3, 0.5, 0.2]]).tolist()
    [True, False]
    """
    places, chances = _merge_orders(_check_places(positions), _check_chances(probs))
    shape = chances.shape[:-1]
    rows = chances.reshape(math.prod(shape), len(places))
    return preserves_chain(places, rows, lambda i, j: exchange_items(places, i, j)).reshape(shape)


def preserves_chain(
    places: IntArray, probs: FloatArray, partners: Callable[[int, int], IntArray]
) -> BoolArray:
    """True, for each row of probabilities, if it preserves the order along a chain.

    `partners(i, j)` returns the same as `exchange_items`.
    """
    n, means = places.shape[1], probs @ places
    chains = means.argsort(axis=1, kind="stable")
    gaps = np.diff(np.take_along_axis(means, chains, axis=1), axis=1)
    is_preserved = np.asarray((gaps > rounding(means, 1)).all(axis=1))
    neighbours = chains[:, :-1] * n + chains[:, 1:]  # two items as one number
    for pair in np.unique(neighbours[is_preserved]):
        i, j = divmod(int(pair), n)
        users = is_preserved & (neighbours == pair).any(axis=1)
        is_preserved[users] = _exceeds_exchange(places[:, i] < places[:, j], probs[users], partners(i, j))
    return is_preserved


def _exceeds_exchange(first: BoolArray, probs: FloatArray, partner: IntArray) -> BoolArray:
    """True, for each row of probabilities, if orders with i first are above those with j first."""
    slack = rounding(probs, 1)
    other = np.where(partner >= 0, probs[:, partner], 0.0)
    gain = np.where(first, probs - other, other - probs)
    nothing = np.maximum(probs, other) <= slack
    return np.asarray(((gain > slack) | nothing).all(axis=1))


def exchange_items(places: IntArray, i: int, j: int) -> IntArray:
    """Return the row of each order with items i and j exchanged; -1 if it is not listed.

    >>> exchange_items(np.array([[1, 2, 3], [2, 1, 3], [1, 3, 2]]), 0, 1).tolist()
    [1, 0, -1]
    """
    number = {order.tobytes(): row for row, order in enumerate(np.ascontiguousarray(places))}
    exchanged = places.copy()
    exchanged[:, [i, j]] = places[:, [j, i]]
    return np.array([number.get(order.tobytes(), -1) for order in exchanged], dtype=np.int64)


def _merge_orders(places: IntArray, probs: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return each order once; the probabilities of equal orders are added."""
    if probs.shape[-1:] != (len(places),):
        raise ShapeError("probs", probs.shape, f"(..., {len(places)}): a probability for each order")
    distinct, codes = np.unique(places, axis=0, return_inverse=True)
    if len(distinct) == len(places):
        return places, probs
    return distinct, probs @ np.eye(len(distinct))[codes.ravel()]


def _check_places(positions: ArrayLike) -> IntArray:
    places = as_numpy(positions, "positions")
    if places.ndim != 2:
        raise ShapeError("positions", places.shape, "(n_orders, n_items): the place of each item")
    wrong = (np.sort(places, axis=1) != np.arange(1, places.shape[1] + 1)).any(axis=1)
    if places.dtype.kind not in "iuf" or wrong.any():
        row = int(np.argmax(wrong))
        problem = f"positions[{row}] = {places[row][:10].tolist()} are not 1..{places.shape[1]}"
        raise LabelError(problem, "give the place of every item in each order, without ties.")
    return places.astype(np.int64)


def _check_chances(probs: ArrayLike) -> FloatArray:
    chances = _check_numbers(probs, "probs")
    refuse_entries(chances < 0, chances, "probs", "probabilities are finite and >= 0.")
    return chances


# Expectations of labels that the noise conditions read: one matrix or row per query.


def pair_means(distribution: LabelDistribution, metric: Metric | str = "ap") -> list[FloatArray]:
    """Return u_ij = E[y_i y_j / sum(y)] per query, ids ascending: the targets of `PairRanker("ap")`.

    Parameters
    ----------
    distribution
        Distribution of grades.
    metric
        AP or its name: its convention defines from which grade on an item is relevant, y_i = 1, and the
        divisor of AP@k that replaces sum(y).

    Examples
    --------
    >>> intents = LabelDistribution(([1, 1, 0], [0, 0, 1]), [[0.5, 0.5]], queries=["q"] * 3)
    >>> pair_means(intents)[0].tolist()
    [[0.25, 0.25, 0.0], [0.25, 0.25, 0.0], [0.0, 0.0, 0.5]]
    """
    average_precision_metric, queries = average_precision(metric), distribution.queries
    means = [np.zeros((size, size)) for size in queries.sizes]
    for label, probs in zip(distribution.labels, distribution.probs.T, strict=True):
        shares = average_precision_metric.standardize_under(
            "P_reinforce", average_precision_metric.read_labels(label), queries
        )
        owned = np.split(shares, queries.offsets[1:-1])
        means = [
            mean + prob * np.outer(query_shares, query_shares > 0.0)
            for mean, query_shares, prob in zip(means, owned, probs, strict=True)
        ]
    return means


def average_precision(metric: Metric | str) -> Metric:
    """Parse the metric; raise unless it is AP."""
    parsed_metric = read_metric(metric)
    if parsed_metric.name != "ap":
        raise ParameterError("metric", str(parsed_metric), "ap")
    return parsed_metric


def net_means(distribution: LabelDistribution) -> list[FloatArray]:
    """Return d_ij = E[a_ij - a_ji] per query, ids ascending: the targets of `PairRanker("pd")`.

    Numbers below 1e-12 of the largest E[abs(a_ij - a_ji)] are rounding, and become 0.

    Parameters
    ----------
    distribution
        Distribution of preferences; or of grades, with a_ij = 1(y_i > y_j).

    Examples
    --------
    >>> votes = LabelDistribution(([2, 1, 0], [0, 2, 1]), [[0.75, 0.25]], queries=["q"] * 3)
    >>> net_means(votes)[0].tolist()
    [[0.0, 0.5, 0.5], [-0.5, 0.0, 1.0], [-0.5, -1.0, 0.0]]
    """
    queries = distribution.queries
    means, sizes = ([np.zeros((size, size)) for size in queries.sizes] for _ in range(2))
    for label, probs in zip(distribution.labels, distribution.probs.T, strict=True):
        for mean, size, net, prob in zip(means, sizes, _nets(label, queries), probs, strict=True):
            np.add(mean, prob * net, out=mean)
            np.add(size, prob * np.abs(net), out=size)
    return [
        clear_rounding(mean, float(size.max(initial=0.0))) for mean, size in zip(means, sizes, strict=True)
    ]


def clear_rounding(numbers: FloatArray, scale: float) -> FloatArray:
    """Replace numbers that are rounding errors of sums of this size by 0."""
    return np.where(np.abs(numbers) <= ROUNDING * scale, 0.0, numbers)


def _nets(label: Label, queries: Queries) -> list[FloatArray]:
    """Return a_ij - a_ji per query."""
    labels = read_metric("pd").read_labels(label)
    if not isinstance(labels, Preferences):
        grades = np.split(queries.gather(labels.values), queries.offsets[1:-1])
        return [np.sign(np.subtract.outer(query_grades, query_grades)) for query_grades in grades]
    return [a - a.T for a in preference_matrices(labels, queries)]


def preference_matrices(labels: Preferences, queries: Queries) -> list[FloatArray]:
    """Return the weights a_ij per query."""
    better, worse, weights, offsets = GraphPairs.from_preferences(labels, queries)
    matrices = []
    for q, (start, size) in enumerate(zip(queries.offsets[:-1], queries.sizes, strict=True)):
        edges, a = slice(offsets[q], offsets[q + 1]), np.zeros((size, size))
        a[better[edges] - start, worse[edges] - start] = weights[edges]
        matrices.append(a)
    return matrices


def family_means(distribution: LabelDistribution, f: Family | None = None) -> list[FloatArray]:
    """Return E[f_i] per query, up to a constant of the query, ids ascending.

    Parameters
    ----------
    distribution
        Distribution of preferences.
    f
        As in `standardize(..., assume="P_f")`; None: the net weights, Duchi's f.
    """
    queries, pd = distribution.queries, read_metric("pd")
    means = distribution.mean_per_row(lambda label: pd.targets(label, qid=queries, assume="P_f", f=f))
    return np.split(queries.gather(means), queries.offsets[1:-1])


def as_graphs(distribution: LabelDistribution) -> LabelDistribution:
    """Convert the labels of a distribution to preferences: grades and orders decide each pair one way.

    >>> votes = LabelDistribution(([2, 1, 1],), [[1.0]], queries=["q"] * 3)
    >>> as_graphs(votes).labels[0].better.tolist(), as_graphs(votes).labels[0].worse.tolist()
    ([0, 0], [1, 2])
    """
    labels, queries = distribution.labels, distribution.queries
    if isinstance(labels[0], Preferences):
        return distribution
    return LabelDistribution(
        tuple(_as_graph(label, queries) for label in labels), distribution.probs, queries
    )


def _as_graph(label: Label, queries: Queries) -> Preferences:
    """Prefer each item to all items of its query that have a lower grade, or a later rank."""
    grades = label.grades(queries) if isinstance(label, Permutations) else queries.gather(np.asarray(label))
    better, worse = [], []
    for first, last in zip(queries.offsets[:-1], queries.offsets[1:], strict=True):
        query_grades = grades[first:last]
        above, below = np.nonzero(query_grades[:, None] > query_grades[None, :])
        better.append(queries.order[first + above])
        worse.append(queries.order[first + below])
    return Preferences(np.concatenate(better), np.concatenate(worse), queries.n_rows)
