"""Noise conditions as predicates on expectations: a matrix, or a stack of them of shape (..., n, n).

Each gives one truth value per matrix. Differences below 1e-12 of a matrix's largest number are rounding and
count as 0. With a margin above 0 a condition is weaker: it forgives what is less than the margin.
"""

from __future__ import annotations

import math

import numpy as np

from concordant._numbers import as_double
from concordant.exceptions import LabelError, NonFiniteError, NotNumericError, ParameterError, ShapeError
from concordant.supervision.columns import as_numpy
from concordant.types import ArrayLike, BoolArray, FloatArray

__all__ = ["acyclic", "follows", "low_noise", "reinforces"]

ROUNDING = 1e-12  # of the largest number: what an expectation may be off by


def reinforces(u: ArrayLike, margin: float = 0.0) -> BoolArray:
    """Tell whether P_reinforce holds: u_ii >= u_jj implies u_ii >= u_jj + sum of the (u_jg - u_ig)_+.

    The sum is over the items g other than i and j. Then sorting by u_ii has the largest expected average
    precision (Ramaswamy, Agarwal and Tewari 2013, Theorem 4).

    Parameters
    ----------
    u
        Symmetric, u_ij = E[y_i y_j / sum(y)].
    margin
        By how much u_ii may fall short.

    Examples
    --------
    >>> reinforces([[[0.5, 0.2], [0.2, 0.3]], [[0.5, 0.0], [0.0, 0.5]]]).tolist()
    [True, True]
    """
    matrix, allowed = check_stack(u, "u", sign=1.0), check_margin(margin)
    slack, own = rounding(matrix, 2), np.diagonal(matrix, axis1=-2, axis2=-1)
    lead = own[..., :, None] - own[..., None, :]
    return everywhere((lead < -slack) | (lead >= missed(matrix) - allowed - slack))


def missed(u: FloatArray) -> FloatArray:
    """Sum of (u_jg - u_ig)_+ over the g other than i and j."""
    total = np.zeros(u.shape)
    for g in range(u.shape[-1]):
        short = np.maximum(u[..., None, :, g] - u[..., :, None, g], 0.0)
        short[..., g, :] = short[..., :, g] = 0.0
        total += short
    return total


def acyclic(d: ArrayLike, margin: float = 0.0) -> BoolArray:
    """Tell whether P_DAG holds: the majority edges, d_ij > 0, form no cycle.

    Then edge deletion violates the least expected preference (Theorem 7, as above). With a margin, it deletes
    no edge above the margin: it loses at most the margin for each pair that it puts wrong.

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
    return no_cycle(majority(check_stack(d, "d", sign=-1.0), check_margin(margin)))


def no_cycle(edges: BoolArray) -> BoolArray:
    """Tell, for each graph of a stack, whether it has no cycle: an item that no edge enters is taken away."""
    n = edges.shape[-1]
    graphs = edges.reshape(math.prod(edges.shape[:-2]), n, n)
    entering, each = graphs.sum(axis=1), np.arange(len(graphs))
    found = np.ones(len(graphs), dtype=bool)
    for _ in range(n):
        item = entering.argmin(axis=1)
        found &= entering[each, item] == 0
        entering -= graphs[each, item]
        entering[each, item] = 2 * n  # taken: at most n are subtracted later
    return found.reshape(edges.shape[:-2])


def follows(d: ArrayLike, means: ArrayLike, margin: float = 0.0) -> BoolArray:
    """Tell whether P_f holds: d_ij > 0 implies E[f_i] > E[f_j].

    Then sorting by E[f] violates the least expected preference (Theorem 6, as above). With a margin, it loses
    at most the margin for each pair that it puts wrong.

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
    nets, values = check_stack(d, "d", sign=-1.0), check_numbers(means, "means")
    if values.shape != nets.shape[:-1]:
        raise ShapeError("means", values.shape, f"{nets.shape[:-1]}: a number for each row of d")
    lead = values[..., :, None] - values[..., None, :]
    return everywhere(~majority(nets, check_margin(margin)) | (lead > rounding(values, 1)[..., None]))


def low_noise(d: ArrayLike, margin: float = 0.0) -> BoolArray:
    """Tell whether d_ik > 0 and d_kj > 0 imply d_ij >= d_ik + d_kj; then P_f holds for the net weights.

    Parameters
    ----------
    d
        Antisymmetric, d_ij = E[a_ij - a_ji].
    margin
        Edges are above it, and d_ij may fall short by it.

    Examples
    --------
    Item 0 is above item 1, which is above item 2, and 0 above 2 by less; sorting is optimal all the same:

    >>> d = np.array([[0.0, 1.0, 0.5], [-1.0, 0.0, 1.0], [-0.5, -1.0, 0.0]])
    >>> bool(low_noise(d)), bool(follows(d, d.sum(axis=1)))
    (False, True)
    """
    nets, allowed = check_stack(d, "d", sign=-1.0), check_margin(margin)
    edges, slack = majority(nets, allowed), rounding(nets, 2) + allowed
    held = np.ones(nets.shape, dtype=bool)
    for k in range(nets.shape[-1]):
        path = edges[..., :, k, None] & edges[..., None, k, :]
        far = nets >= nets[..., :, k, None] + nets[..., None, k, :] - slack
        held &= ~path | far
    return everywhere(held)


def everywhere(held: BoolArray) -> BoolArray:
    """Tell, for each matrix, whether all its entries are true."""
    return np.asarray(held.all(axis=(-2, -1)))


def majority(d: FloatArray, margin: float = 0.0) -> BoolArray:
    """Which d_ij are above the margin."""
    edges: BoolArray = d > margin + rounding(d, 2)
    return edges


def rounding(numbers: FloatArray, axes: int) -> FloatArray:
    """What counts as 0, for each matrix or row of a stack; it has one entry along the last axes."""
    along = tuple(range(-axes, 0))
    return np.asarray(ROUNDING * np.abs(numbers).max(axis=along, keepdims=True, initial=0.0))


def check_margin(margin: float) -> float:
    """Give a finite number >= 0."""
    if isinstance(margin, bool) or not 0.0 <= as_double(margin) < math.inf:
        raise ParameterError("margin", margin, "a finite number >= 0")
    return float(margin)


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
