"""Noise conditions: what a distribution of labels must satisfy for sorting or edge deletion to be optimal.

The predicates read expectations, not labels: a matrix, or a stack of them of shape (..., n, n); they give one
truth value per matrix. Differences below 1e-12 of a matrix's largest number are rounding and count as 0.

>>> from concordant.supervision.synthetic import LabelDistribution
>>> company = LabelDistribution(([1, 1, 0], [1, 0, 0], [0, 0, 1]), [[0.5, 0.2, 0.3]], queries=["q"] * 3)
>>> (u,) = pair_means(company)
>>> bool(reinforces(u))  # item 1 is relevant with item 0 only, which is first anyway
False
"""

from __future__ import annotations

import numpy as np

from concordant.exceptions import LabelError, NonFiniteError, NotNumericError, ParameterError, ShapeError
from concordant.metrics.conditions import Family
from concordant.metrics.graphs import Pairs
from concordant.metrics.metric import Metric
from concordant.metrics.parse import metric as read_metric
from concordant.supervision.columns import as_numpy
from concordant.supervision.labels import Preferences
from concordant.supervision.queries import Queries
from concordant.supervision.synthetic.distribution import Label, LabelDistribution
from concordant.types import ArrayLike, BoolArray, FloatArray

__all__ = ["acyclic", "family_means", "follows", "low_noise", "net_means", "pair_means", "reinforces"]

ROUNDING = 1e-12  # of the largest number: what an expectation may be off by


def pair_means(distribution: LabelDistribution, metric: Metric | str = "ap") -> list[FloatArray]:
    """Give u_ij = E[y_i y_j / sum(y)] of each query, ids ascending: what `PairRanker("ap")` learns.

    Parameters
    ----------
    distribution
        Of grades.
    metric
        AP, uncut, or its name: its convention says from which grade on an item is relevant, y_i = 1.

    Examples
    --------
    >>> intents = LabelDistribution(([1, 1, 0], [0, 0, 1]), [[0.5, 0.5]], queries=["q"] * 3)
    >>> pair_means(intents)[0].tolist()
    [[0.25, 0.25, 0.0], [0.25, 0.25, 0.0], [0.0, 0.0, 0.5]]
    """
    chosen, queries = read_metric(metric), distribution.queries
    if chosen.name != "ap" or getattr(chosen, "k", None) is not None:
        raise ParameterError("metric", str(chosen), "ap, uncut")
    means = [np.zeros((size, size)) for size in queries.sizes]
    for label, probs in zip(distribution.labels, distribution.probs.T, strict=True):
        shares = chosen.standardize_under("P_reinforce", chosen.read_labels(label), queries)
        owned = np.split(shares, queries.offsets[1:-1])
        means = [
            mean + prob * np.outer(own, own > 0.0)
            for mean, own, prob in zip(means, owned, probs, strict=True)
        ]
    return means


def net_means(distribution: LabelDistribution) -> list[FloatArray]:
    """Give d_ij = E[a_ij - a_ji] of each query, ids ascending: what `PairRanker("pd")` learns.

    Parameters
    ----------
    distribution
        Of preferences; or of grades, of which a_ij is 1(y_i > y_j).

    Examples
    --------
    >>> votes = LabelDistribution(([2, 1, 0], [0, 2, 1]), [[0.75, 0.25]], queries=["q"] * 3)
    >>> net_means(votes)[0].tolist()
    [[0.0, 0.5, 0.5], [-0.5, 0.0, 1.0], [-0.5, -1.0, 0.0]]
    """
    queries = distribution.queries
    means = [np.zeros((size, size)) for size in queries.sizes]
    for label, probs in zip(distribution.labels, distribution.probs.T, strict=True):
        owned = nets(label, queries)
        means = [mean + prob * net for mean, net, prob in zip(means, owned, probs, strict=True)]
    return means


def nets(label: Label, queries: Queries) -> list[FloatArray]:
    """a_ij - a_ji of each query."""
    labels = read_metric("pd").read_labels(label)
    if not isinstance(labels, Preferences):
        grades = np.split(queries.gather(labels.values), queries.offsets[1:-1])
        return [np.sign(np.subtract.outer(own, own)) for own in grades]
    better, worse, weights, offsets = Pairs.of(labels, queries)
    found = []
    for q, size in enumerate(queries.sizes):
        own, a = slice(offsets[q], offsets[q + 1]), np.zeros((size, size))
        a[better[own] - queries.offsets[q], worse[own] - queries.offsets[q]] = weights[own]
        found.append(a - a.T)
    return found


def family_means(distribution: LabelDistribution, f: Family | None = None) -> list[FloatArray]:
    """Give E[f_i] of each query, up to a constant of the query, ids ascending.

    Parameters
    ----------
    distribution
        Of preferences.
    f
        As for `standardize(..., assume="P_f")`; None: the net weights, Duchi's f.
    """
    queries, pd = distribution.queries, read_metric("pd")
    means = distribution.mean_per_row(lambda label: pd.targets(label, qid=queries, assume="P_f", f=f))
    return np.split(queries.gather(means), queries.offsets[1:-1])


def reinforces(u: ArrayLike) -> BoolArray:
    """Tell whether P_reinforce holds: u_ii >= u_jj implies u_ii >= u_jj + sum of the (u_jg - u_ig)_+.

    The sum is over the items g other than i and j. Then sorting by u_ii has the largest expected average
    precision (Ramaswamy, Agarwal and Tewari 2013, Theorem 4).

    Parameters
    ----------
    u
        Symmetric, u_ij = E[y_i y_j / sum(y)].

    Examples
    --------
    >>> reinforces([[[0.5, 0.2], [0.2, 0.3]], [[0.5, 0.0], [0.0, 0.5]]]).tolist()
    [True, True]
    """
    matrix = check_stack(u, "u", sign=1.0)
    slack, own = rounding(matrix, 2), np.diagonal(matrix, axis1=-2, axis2=-1)
    lead = own[..., :, None] - own[..., None, :]
    return everywhere((lead < -slack) | (lead >= missed(matrix) - slack))


def missed(u: FloatArray) -> FloatArray:
    """Sum of (u_jg - u_ig)_+ over the g other than i and j."""
    total = np.zeros(u.shape)
    for g in range(u.shape[-1]):
        short = np.maximum(u[..., None, :, g] - u[..., :, None, g], 0.0)
        short[..., g, :] = short[..., :, g] = 0.0
        total += short
    return total


def acyclic(d: ArrayLike) -> BoolArray:
    """Tell whether P_DAG holds: the majority edges, d_ij > 0, form no cycle.

    Then edge deletion violates the least expected preference (Theorem 7, as above).

    Parameters
    ----------
    d
        Antisymmetric, d_ij = E[a_ij - a_ji].

    Examples
    --------
    >>> acyclic([[0, 1, -1], [-1, 0, 1], [1, -1, 0]]).tolist()
    False
    """
    edges = majority(check_stack(d, "d", sign=-1.0))
    left = np.ones(edges.shape[:-1], dtype=bool)  # items not yet taken away
    for _ in range(edges.shape[-1]):
        left &= (edges & left[..., :, None]).any(axis=-2)
    return np.asarray(~left.any(axis=-1))


def follows(d: ArrayLike, means: ArrayLike) -> BoolArray:
    """Tell whether P_f holds: d_ij > 0 implies E[f_i] > E[f_j].

    Then sorting by E[f] violates the least expected preference (Theorem 6, as above).

    Parameters
    ----------
    d
        Antisymmetric, d_ij = E[a_ij - a_ji].
    means
        E[f_i]: one number per item, a row for each matrix of a stack.

    Examples
    --------
    >>> follows([[0, 1, 0], [-1, 0, 1], [0, -1, 0]], means=[2.0, 1.0, 0.0]).tolist()
    True
    """
    nets, values = check_stack(d, "d", sign=-1.0), check_numbers(means, "means")
    if values.shape != nets.shape[:-1]:
        raise ShapeError("means", values.shape, f"{nets.shape[:-1]}: a number for each row of d")
    lead = values[..., :, None] - values[..., None, :]
    return everywhere(~majority(nets) | (lead > rounding(values, 1)[..., None]))


def low_noise(d: ArrayLike) -> BoolArray:
    """Tell whether d_ik > 0 and d_kj > 0 imply d_ij >= d_ik + d_kj; then P_f holds for the net weights.

    Parameters
    ----------
    d
        Antisymmetric, d_ij = E[a_ij - a_ji].

    Examples
    --------
    Item 0 is above item 1, which is above item 2, and 0 above 2 by less; sorting is optimal all the same:

    >>> d = np.array([[0.0, 1.0, 0.5], [-1.0, 0.0, 1.0], [-0.5, -1.0, 0.0]])
    >>> bool(low_noise(d)), bool(follows(d, d.sum(axis=1)))
    (False, True)
    """
    nets = check_stack(d, "d", sign=-1.0)
    edges, slack = majority(nets), rounding(nets, 2)
    held = np.ones(nets.shape, dtype=bool)
    for k in range(nets.shape[-1]):
        path = edges[..., :, k, None] & edges[..., None, k, :]
        far = nets >= nets[..., :, k, None] + nets[..., None, k, :] - slack
        held &= ~path | far
    return everywhere(held)


def everywhere(held: BoolArray) -> BoolArray:
    """Tell, for each matrix, whether all its entries are true."""
    return np.asarray(held.all(axis=(-2, -1)))


def majority(d: FloatArray) -> BoolArray:
    """Which d_ij are above 0."""
    edges: BoolArray = d > rounding(d, 2)
    return edges


def rounding(numbers: FloatArray, axes: int) -> FloatArray:
    """What counts as 0, for each matrix or row of a stack; it has one entry along the last axes."""
    along = tuple(range(-axes, 0))
    return np.asarray(ROUNDING * np.abs(numbers).max(axis=along, keepdims=True, initial=0.0))


def check_numbers(values: ArrayLike, name: str) -> FloatArray:
    """Give finite doubles."""
    given = as_numpy(values, name)
    if given.dtype.kind not in "biuf":
        raise NotNumericError(name, f"its entries are of type {given.dtype}")
    numbers: FloatArray = given.astype(np.float64, copy=False)
    if (bad := ~np.isfinite(numbers)).any():
        place = ", ".join(map(str, np.argwhere(bad)[0]))
        hint = "expectations are finite: look at the labels they come from."
        raise NonFiniteError(name, float(numbers[bad][0]), f"[{place}]", int(bad.sum()), hint)
    return numbers


def check_stack(values: ArrayLike, name: str, sign: float) -> FloatArray:
    """Give square matrices, equal to their transposes times the sign, up to rounding."""
    matrix = check_numbers(values, name)
    if matrix.ndim < 2 or matrix.shape[-1] != matrix.shape[-2]:
        raise ShapeError(name, matrix.shape, "a square matrix, or a stack of them: (..., n, n)")
    apart = np.abs(matrix - sign * np.swapaxes(matrix, -1, -2))
    if (wrong := apart > ROUNDING * 1e3 * np.abs(matrix).max(initial=0.0)).any():
        *_, i, j = np.argwhere(wrong)[0]
        kind, instead = ("symmetric", "(u + u.T) / 2") if sign > 0 else ("antisymmetric", "a - a.T")
        raise LabelError(f"{name} is not {kind} at row {i}, column {j}", f"pass {instead}.")
    return matrix
