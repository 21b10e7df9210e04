"""What weights of bounded length do to the losses of lists: how fast they change, how large they become."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np

from concordant._segments import run_chunks, segment_reduce, segment_sum
from concordant.supervision.columns import frozen
from concordant.supervision.queries import Queries
from concordant.surrogates import Duchi, Pairwise, PlackettLuce, Preorder, Softmax, Squared, Surrogate, margin
from concordant.surrogates.pairwise import PairLoss, level_codes
from concordant.surrogates.pointwise import PENALTIES
from concordant.surrogates.surrogate import Loss
from concordant.theory.bounds.fitted import shape, stored
from concordant.theory.theorem import is_named
from concordant.types import FloatArray

__all__ = ["Most", "Part", "Swing", "swing", "why_unbounded"]

KNOWN = (Softmax, PlackettLuce, Pairwise, Preorder, Squared, Duchi)


class Part(NamedTuple):
    """A sum over lists that bounds how far the mean loss is from its expectation, for the worst weights.

    That is, on average over samples, at most factor * (B/n) * sqrt(sum_q amount_q^2), summed over the parts.
    """

    factor: float
    amounts: FloatArray
    symbol: str
    words: str


class Most(NamedTuple):
    """Least and largest loss of any list, and the largest amount of each part."""

    low: float
    high: float
    amounts: tuple[float, ...]


class Swing(NamedTuple):
    """What weights no longer than B do to the losses of lists, at most.

    Attributes
    ----------
    slopes
        Lipschitz constant of each list's loss, as a function of the weights.
    lowest, highest
        Least and largest loss of each list.
    parts
        What bounds the mean loss's distance from its expectation.
    rest
        Loss of each list at weights 0.
    farthest
        Largest distance of a document from the mean of its list; from 0, where the loss sees the level of
        the scores.
    """

    slopes: FloatArray
    lowest: FloatArray
    highest: FloatArray
    parts: tuple[Part, ...]
    rest: FloatArray
    farthest: float

    @property
    def most(self) -> Most:
        """The extremes of these lists."""
        amounts = tuple(float(part.amounts.max(initial=0.0)) for part in self.parts)
        return Most(float(self.lowest.min(initial=0.0)), float(self.highest.max(initial=0.0)), amounts)


class Lists(NamedTuple):
    """The lists of a sample: labels, the loss on them, features, and what they are at scores 0."""

    labels: FloatArray
    told: Loss
    X: Any
    queries: Queries
    squares: FloatArray  # distance of each document from the mean of its list, squared
    spread: FloatArray  # their sum by list
    rest: FloatArray  # loss of each list at scores 0
    tilt: FloatArray  # length of its gradient there

    def sums(self, rows: FloatArray) -> FloatArray:
        """Sum by list."""
        return segment_sum(rows, self.queries.offsets)

    @property
    def apart(self) -> FloatArray:
        """No two documents of a list are farther apart."""
        farthest = segment_reduce(np.maximum, self.squares, self.queries.offsets)
        found: FloatArray = np.minimum(2.0 * np.sqrt(farthest), np.sqrt(2.0 * self.spread))
        return found


def why_unbounded(loss: Surrogate) -> str:
    """Say why no bound on the risk of this loss is known; empty where one is.

    What is proven of a class need not be true of a caller's own one that inherits from it, or of a margin of
    the caller's own.
    """
    if type(loss) is Duchi and loss.penalty != PENALTIES["square"]:
        return "a risk bound of duchi is known for the penalty 'square' only"
    phi = getattr(loss, "margin", None)
    known = type(loss) in KNOWN and (phi is None or is_named(phi))
    return "" if known else "no risk bound is known for this loss"


def swing(loss: Surrogate, told: Loss, labels: FloatArray, X: Any, queries: Queries, B: float) -> Swing:
    """Give what weights no longer than B do to the losses of lists; `told` is the loss on the labels."""
    centred = not isinstance(loss, Duchi) and getattr(loss, "centred", True)
    squares = row_squares(X, queries, centred=centred)
    rest, grad = told.value_and_grad(np.zeros(queries.n_rows))
    with np.errstate(over="ignore", invalid="ignore"):  # beyond the doubles: so is the bound
        spread, tilt = (segment_sum(rows, queries.offsets) for rows in (squares, grad**2))
        lists = Lists(labels, told, X, queries, squares, spread, rest, np.sqrt(tilt))
        if isinstance(loss, (Pairwise, Preorder)):
            return of_pairs(loss, lists, B)
        if isinstance(loss, (Squared, Duchi)):
            return of_squares(loss, lists, B)
        return of_scores(loss, lists, B)


def row_squares(X: Any, queries: Queries, *, centred: bool) -> FloatArray:
    """Squared distance of each row from the mean of its list, else from 0; X is never copied."""
    from concordant.theory.bounds.row_kernels import dense_rows, sparse_rows

    squares, offsets = np.zeros(queries.n_rows), frozen(queries.offsets)
    body: Callable[..., None]
    if hasattr(X, "indptr"):
        body = partial(sparse_rows, *stored(X), X.shape[1], offsets, centred)
    else:
        body = partial(dense_rows, frozen(np.ascontiguousarray(X)), offsets, centred)
    run_chunks(queries.offsets, lambda first, last: body(first, last, squares))
    return squares


def times(amounts: FloatArray, weights: FloatArray) -> FloatArray:
    """Give amounts * weights, 0 where the weight is: an amount may be infinite."""
    return np.multiply(amounts, weights, out=np.zeros_like(weights), where=weights > 0.0)


def of_scores(loss: Surrogate, lists: Lists, B: float) -> Swing:
    """Losses of whole score vectors: the gradient is at most that at 0 plus what curvature adds.

    It is a sum of differences of documents, as many as the mass of the loss.
    """
    steepest, mass = softmax_slopes(lists) if isinstance(loss, Softmax) else luce_slopes(lists)
    root = np.sqrt(lists.spread)
    bent = times(mass / 2.0, B * root)
    amounts = times(np.minimum(steepest, lists.tilt + bent), root)
    slopes = np.minimum(amounts, times(lists.apart, mass))
    rise = B * np.minimum(slopes, times(lists.tilt + bent / 2.0, root))
    words = "2 sqrt(2) (B/n) sqrt(sum_q L_q^2 S_q): vector contraction"
    part = Part(2.0 * math.sqrt(2.0), amounts, "L_q sqrt(S_q)", words)
    return swung(lists, slopes, rise, (part,))


def softmax_slopes(lists: Lists) -> tuple[FloatArray, FloatArray]:
    """Longest gradient of the softmax of each list, over all scores; and the sum of its targets."""
    mass, least = lists.sums(lists.labels), segment_reduce(np.minimum, lists.labels, lists.queries.offsets)
    whole = np.where(mass > 0.0, mass, 1.0)  # squares of shares of it: those of targets may leave the doubles
    shares = lists.labels / np.repeat(whole, lists.queries.sizes)
    corner = np.maximum(1.0 + lists.sums(shares**2) - 2.0 * least / whole, 0.0)
    return mass * np.sqrt(corner), mass


def luce_slopes(lists: Lists) -> tuple[FloatArray, FloatArray]:
    """Longest gradient of Plackett-Luce of each list, over all scores; and its number of choices."""
    choices = np.maximum(lists.queries.sizes - 1.0, 0.0)
    return np.sqrt(choices * (choices + 1.0)), choices


def of_pairs(loss: Pairwise | Preorder, lists: Lists, B: float) -> Swing:
    """Losses of differences: each pair's is as steep as its margin at the largest distance."""
    phi, apart = margin(loss.margin), lists.apart
    weight, inside = of_all(loss, lists) if isinstance(loss, Pairwise) else of_levels(loss, lists)
    inside = np.minimum(inside, times(apart**2, weight))
    slopes = times(np.abs(phi.slope(-B * apart)), np.sqrt(weight) * np.sqrt(inside))
    climb = times(phi.value(-B * apart) - phi.value(0.0), weight)
    words = "2 (B/n) sqrt(sum_q l_q^2 W_q E_q): contraction pair by pair"
    part = Part(2.0, slopes, "l_q sqrt(W_q E_q)", words)
    return swung(lists, slopes, np.minimum(climb, B * slopes), (part,))


def of_all(loss: Pairwise, lists: Lists) -> tuple[FloatArray, FloatArray]:
    """Sum of the weights of all pairs of different items, and of weight times squared distance.

    The squared distances of one of m documents from the others sum to m times its own from the mean, plus
    those of all.
    """
    sizes = lists.queries.sizes.astype(np.float64)
    share = 1.0 / np.maximum(sizes * (sizes - 1.0), 1.0) if loss.normalize else np.ones(len(sizes))
    mass = share * lists.sums(lists.labels)
    own = share * lists.sums(times(lists.squares, lists.labels))
    return mass * np.maximum(sizes - 1.0, 0.0), sizes * own + times(lists.spread, mass)


def of_levels(loss: Preorder, lists: Lists) -> tuple[FloatArray, FloatArray]:
    """Sum of the weights of the pairs of different grades, and the largest weight times squared distances."""
    told, offsets = cast("PairLoss", lists.told), lists.queries.offsets
    top, weight = (segment_reduce(np.maximum, rows, offsets) for rows in (told.levels, told.weights))
    gap = np.minimum(top - segment_reduce(np.minimum, told.levels, offsets), told.top)
    codes = level_codes(lists.labels, offsets) if loss.weighting == "gain" else told.levels.astype(np.int64)
    apart = shape(lists.X, lists.queries, codes).apart
    return lists.rest / margin(loss.margin).value(0.0), times(apart, weight * gap)


def of_squares(loss: Squared | Duchi, lists: Lists, B: float) -> Swing:
    """Losses v s.s + g.s + const: what is linear and what is square in the weights, one by one."""
    v = float(loss.nu) if isinstance(loss, Duchi) else 1.0
    linear, square = lists.tilt * np.sqrt(lists.spread), v * B * lists.spread
    parts = (
        Part(1.0, linear, "g_q sqrt(S_q)", "(B/n) sqrt(sum_q g_q^2 S_q): what is linear in the weights"),
        Part(1.0, square, "v B S_q", "v (B^2/n) sqrt(sum_q S_q^2): what is square"),
    )
    low = lists.rest - lists.tilt**2 / (4.0 * v) if isinstance(loss, Duchi) else None
    return swung(lists, linear + 2.0 * square, B * (linear + square), parts, low)


def swung(
    lists: Lists,
    slopes: FloatArray,
    rise: FloatArray,
    parts: tuple[Part, ...],
    lowest: FloatArray | None = None,
) -> Swing:
    """Put a swing together; losses are >= 0 unless told otherwise."""
    low = np.zeros(len(rise)) if lowest is None else lowest
    far = math.sqrt(lists.squares.max(initial=0.0))
    return Swing(slopes, low, lists.rest + rise, parts, lists.rest, far)
