"""Order-preserving permutation spaces: where the most probable order is found by sorting mean places."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from concordant.exceptions import LabelError, NonFiniteError, ShapeError
from concordant.supervision.columns import as_numpy
from concordant.theory.noise.predicates import check_numbers, rounding
from concordant.types import ArrayLike, BoolArray, FloatArray, IntArray

__all__ = ["chained", "preserves_order", "swapped"]


def preserves_order(positions: ArrayLike, probs: ArrayLike) -> BoolArray:
    """Tell whether the orders form an order-preserving space along a chain of all items.

    Along a chain: for each neighbour j after i in it, every order that places i before j is more probable
    than the same order with i and j exchanged, or both have probability 0 (Buffoni et al. 2011, Definition
    5). Then sorting by the mean place gives the most probable order, the best by `zero_one` (section 5.4).

    No chains are tried: if i is before j in that sense, E[place of j] - E[place of i] is a sum, over the
    orders with i first, of the difference of the two probabilities times a number above 0. So the only chain
    that can do is the one sorted by the mean place, and none can where two means are equal.

    Parameters
    ----------
    positions
        Orders, one a row: the place of each item, 1 the best.
    probs
        Probability of each order; one row a distribution for a stack, (..., n_orders). Orders that are not
        listed have probability 0.

    Examples
    --------
    >>> orders = [[1, 2, 3], [2, 1, 3], [1, 3, 2]]
    >>> preserves_order(orders, [[0.5, 0.3, 0.2], [0.3, 0.5, 0.2]]).tolist()
    [True, False]
    """
    places, chances = merged(check_places(positions), check_chances(probs))
    shape = chances.shape[:-1]
    rows = chances.reshape(math.prod(shape), len(places))
    return chained(places, rows, lambda i, j: swapped(places, i, j)).reshape(shape)


def chained(places: IntArray, probs: FloatArray, partners: Callable[[int, int], IntArray]) -> BoolArray:
    """Tell, for each row of probabilities, whether it preserves the order along a chain.

    `partners(i, j)` gives what `swapped` gives.
    """
    n, means = places.shape[1], probs @ places
    chains = means.argsort(axis=1, kind="stable")
    gaps = np.diff(np.take_along_axis(means, chains, axis=1), axis=1)
    held = np.asarray((gaps > rounding(means, 1)).all(axis=1))
    neighbours = chains[:, :-1] * n + chains[:, 1:]  # two items as one number
    for pair in np.unique(neighbours[held]):
        i, j = divmod(int(pair), n)
        users = held & (neighbours == pair).any(axis=1)
        held[users] = kept(places[:, i] < places[:, j], probs[users], partners(i, j))
    return held


def kept(first: BoolArray, probs: FloatArray, partner: IntArray) -> BoolArray:
    """Tell, for each row of probabilities, whether orders with i first are above those with j first."""
    slack = rounding(probs, 1)
    other = np.where(partner >= 0, probs[:, partner], 0.0)
    gain = np.where(first, probs - other, other - probs)
    nothing = np.maximum(probs, other) <= slack
    return np.asarray(((gain > slack) | nothing).all(axis=1))


def swapped(places: IntArray, i: int, j: int) -> IntArray:
    """Give the row of each order with items i and j exchanged; -1 where it is not listed.

    >>> swapped(np.array([[1, 2, 3], [2, 1, 3], [1, 3, 2]]), 0, 1).tolist()
    [1, 0, -1]
    """
    number = {order.tobytes(): row for row, order in enumerate(np.ascontiguousarray(places))}
    exchanged = places.copy()
    exchanged[:, [i, j]] = places[:, [j, i]]
    return np.array([number.get(order.tobytes(), -1) for order in exchanged], dtype=np.int64)


def merged(places: IntArray, probs: FloatArray) -> tuple[IntArray, FloatArray]:
    """Give each order once; the probabilities of equal ones are added."""
    if probs.shape[-1:] != (len(places),):
        raise ShapeError("probs", probs.shape, f"(..., {len(places)}): a probability for each order")
    distinct, codes = np.unique(places, axis=0, return_inverse=True)
    if len(distinct) == len(places):
        return places, probs
    return distinct, probs @ np.eye(len(distinct))[codes.ravel()]


def check_places(positions: ArrayLike) -> IntArray:
    """Give rows that each hold 1..n."""
    places = as_numpy(positions, "positions")
    if places.ndim != 2:
        raise ShapeError("positions", places.shape, "(n_orders, n_items): the place of each item")
    wrong = (np.sort(places, axis=1) != np.arange(1, places.shape[1] + 1)).any(axis=1)
    if places.dtype.kind not in "iuf" or wrong.any():
        row = int(np.argmax(wrong))
        problem = f"positions[{row}] = {places[row][:10].tolist()} are not 1..{places.shape[1]}"
        raise LabelError(problem, "give the place of every item in each order, without ties.")
    return places.astype(np.int64)


def check_chances(probs: ArrayLike) -> FloatArray:
    """Give finite numbers >= 0."""
    chances = check_numbers(probs, "probs")
    if (bad := chances < 0).any():
        place = ", ".join(map(str, np.argwhere(bad)[0]))
        hint = "probabilities are finite and >= 0."
        raise NonFiniteError("probs", float(chances[bad][0]), f"[{place}]", int(bad.sum()), hint)
    return chances
