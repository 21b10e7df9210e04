"""A bound on the risk of a loss itself, for the losses that linear rankers minimise."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np

from concordant._base.segments import run_chunks, segment_reduce, segment_sum
from concordant._base.validate import check_share, freeze
from concordant.data.queries import Queries
from concordant.exceptions import ParameterError, show_value
from concordant.solvers.linear_scores import LinearScorer
from concordant.surrogates import Duchi, Pairwise, PlackettLuce, Preorder, Softmax, Squared, Surrogate, margin
from concordant.surrogates.pairwise import PairLoss, level_codes
from concordant.surrogates.pointwise import PENALTIES, multiply_weights
from concordant.surrogates.surrogate import Loss
from concordant.theory.bounds.bound import Term
from concordant.theory.bounds.empirical import (
    DELTA,
    EmpiricalBound,
    Radius,
    csr_arrays,
    given_radius,
    shape,
    union_radius,
    weight_length,
)
from concordant.theory.kinds import format_surrogate
from concordant.theory.theorem import is_named
from concordant.types import FloatArray

# The losses of lists for weights of bounded length: how fast they change, how large they become.

BOUNDED_LOSSES = (Softmax, PlackettLuce, Pairwise, Preorder, Squared, Duchi)


class DeviationTerm(NamedTuple):
    """A sum over lists that bounds how far the mean loss is from its expectation, for the worst weights.

    That is, on average over samples, at most factor * (B/n) * sqrt(sum_q amount_q^2), summed over the parts.
    """

    factor: float
    amounts: FloatArray
    symbol: str
    words: str


class LossExtremes(NamedTuple):
    """Least and largest loss of any list, and the largest amount of each part."""

    low: float
    high: float
    amounts: tuple[float, ...]


class Swing(NamedTuple):
    """How far weights no longer than B can move the losses of lists.

    Attributes
    ----------
    slopes
        Lipschitz constant of each list's loss, as a function of the weights.
    lowest, highest
        Least and largest loss of each list.
    parts
        Sums that bound the distance of the mean loss from its expectation.
    rest
        Loss of each list at weights 0.
    farthest
        Largest distance of a document from the mean of its list; from 0, if the loss depends on the level
        of the scores.
    """

    slopes: FloatArray
    lowest: FloatArray
    highest: FloatArray
    parts: tuple[DeviationTerm, ...]
    rest: FloatArray
    farthest: float

    @property
    def extremes(self) -> LossExtremes:
        """The extremes of these lists."""
        amounts = tuple(float(part.amounts.max(initial=0.0)) for part in self.parts)
        return LossExtremes(
            float(self.lowest.min(initial=0.0)), float(self.highest.max(initial=0.0)), amounts
        )


class SampleLists(NamedTuple):
    """The lists of a sample: labels, the loss on them, features, and the losses at scores 0."""

    labels: FloatArray
    label_loss: Loss
    X: Any
    queries: Queries
    squares: FloatArray  # squared distance of each document from the mean of its list
    spread: FloatArray  # sum of `squares` by list
    rest: FloatArray  # loss of each list at scores 0
    tilt: FloatArray  # length of the gradient of the loss at scores 0

    def sums(self, rows: FloatArray) -> FloatArray:
        """Sum by list."""
        return segment_sum(rows, self.queries.offsets)

    @property
    def apart(self) -> FloatArray:
        """Bound on the distance of any two documents of each list."""
        farthest = segment_reduce(np.maximum, self.squares, self.queries.offsets)
        diameters: FloatArray = np.minimum(2.0 * np.sqrt(farthest), np.sqrt(2.0 * self.spread))
        return diameters


def why_unbounded(loss: Surrogate) -> str:
    """Return why no bound on the risk of this loss is known; empty where a bound is known.

    What is proven of a class need not be true of a user's subclass of it, or of a user's margin.
    """
    if type(loss) is Duchi and loss.penalty != PENALTIES["square"]:
        return "a risk bound of duchi is known for the penalty 'square' only"
    phi = getattr(loss, "margin", None)
    is_bounded = type(loss) in BOUNDED_LOSSES and (phi is None or is_named(phi))
    return "" if is_bounded else "no risk bound is known for this loss"


def swing(loss: Surrogate, label_loss: Loss, labels: FloatArray, X: Any, queries: Queries, B: float) -> Swing:
    """Bound how far weights no longer than B move the losses of lists; `label_loss` is the bound loss."""
    centred = not isinstance(loss, Duchi) and getattr(loss, "centred", True)
    squares = row_squares(X, queries, centred=centred)
    rest, grad = label_loss.value_and_grad(np.zeros(queries.n_rows))
    with np.errstate(over="ignore", invalid="ignore"):  # beyond the doubles: so is the bound
        spread, tilt = (segment_sum(rows, queries.offsets) for rows in (squares, grad**2))
        lists = SampleLists(labels, label_loss, X, queries, squares, spread, rest, np.sqrt(tilt))
        if isinstance(loss, (Pairwise, Preorder)):
            return _pair_swing(loss, lists, B)
        if isinstance(loss, (Squared, Duchi)):
            return _square_swing(loss, lists, B)
        return _score_swing(loss, lists, B)


def row_squares(X: Any, queries: Queries, *, centred: bool) -> FloatArray:
    """Return the squared distance of each row from the mean of its list, or from 0; X is never copied."""
    from concordant.theory.bounds.row_kernels import dense_rows, sparse_rows

    squares, offsets = np.zeros(queries.n_rows), freeze(queries.offsets)
    body: Callable[..., None]
    if hasattr(X, "indptr"):
        body = partial(sparse_rows, csr_arrays(X), X.shape[1], centred)
    else:
        body = partial(dense_rows, freeze(np.ascontiguousarray(X)), centred)
    run_chunks(queries.offsets, lambda first, last: body((offsets, first, last), squares))
    return squares


def _score_swing(loss: Surrogate, lists: SampleLists, B: float) -> Swing:
    """Swing of softmax and Plackett-Luce: the gradient at 0, plus the most that curvature adds.

    The gradient is a sum of differences of documents, as many as the mass of the loss.
    """
    steepest, mass = _softmax_slopes(lists) if isinstance(loss, Softmax) else _luce_slopes(lists)
    root = np.sqrt(lists.spread)
    bent = multiply_weights(B * root, mass / 2.0)
    amounts = multiply_weights(root, np.minimum(steepest, lists.tilt + bent))
    slopes = np.minimum(amounts, multiply_weights(mass, lists.apart))
    rise = B * np.minimum(slopes, multiply_weights(root, lists.tilt + bent / 2.0))
    words = "2 sqrt(2) (B/n) sqrt(sum_q L_q^2 S_q): vector contraction"
    part = DeviationTerm(2.0 * math.sqrt(2.0), amounts, "L_q sqrt(S_q)", words)
    return _assemble_swing(lists, slopes, rise, (part,))


def _softmax_slopes(lists: SampleLists) -> tuple[FloatArray, FloatArray]:
    """Longest gradient of the softmax of each list, over all scores; and the sum of its targets."""
    mass, least = lists.sums(lists.labels), segment_reduce(np.minimum, lists.labels, lists.queries.offsets)
    whole = np.where(mass > 0.0, mass, 1.0)  # squares of shares of it: those of targets may leave the doubles
    shares = lists.labels / np.repeat(whole, lists.queries.sizes)
    corner = np.maximum(1.0 + lists.sums(shares**2) - 2.0 * least / whole, 0.0)
    return mass * np.sqrt(corner), mass


def _luce_slopes(lists: SampleLists) -> tuple[FloatArray, FloatArray]:
    """Longest gradient of Plackett-Luce of each list, over all scores; and its number of choices."""
    choices = np.maximum(lists.queries.sizes - 1.0, 0.0)
    return np.sqrt(choices * (choices + 1.0)), choices


def _pair_swing(loss: Pairwise | Preorder, lists: SampleLists, B: float) -> Swing:
    """Swing of pair losses: each is at most as steep as its margin at the largest distance."""
    phi, apart = margin(loss.margin), lists.apart
    weight, inside = (
        all_pair_weights(loss, lists) if isinstance(loss, Pairwise) else level_pair_weights(loss, lists)
    )
    inside = np.minimum(inside, multiply_weights(weight, apart**2))
    slopes = multiply_weights(np.sqrt(weight) * np.sqrt(inside), np.abs(phi.slope(-B * apart)))
    climb = multiply_weights(weight, phi.value(-B * apart) - phi.value(0.0))
    words = "2 (B/n) sqrt(sum_q l_q^2 W_q E_q): contraction pair by pair"
    part = DeviationTerm(2.0, slopes, "l_q sqrt(W_q E_q)", words)
    return _assemble_swing(lists, slopes, np.minimum(climb, B * slopes), (part,))


def all_pair_weights(loss: Pairwise, lists: SampleLists) -> tuple[FloatArray, FloatArray]:
    """Sum the weights of all pairs of different items, and the weights times squared distances.

    The squared distances of a document from the m documents of its list sum to m times its squared distance
    from the mean, plus the squared distances of all documents from the mean.
    """
    sizes = lists.queries.sizes.astype(np.float64)
    share = 1.0 / np.maximum(sizes * (sizes - 1.0), 1.0) if loss.normalize else np.ones(len(sizes))
    mass = share * lists.sums(lists.labels)
    weighted_squares = share * lists.sums(multiply_weights(lists.labels, lists.squares))
    return mass * np.maximum(sizes - 1.0, 0.0), sizes * weighted_squares + multiply_weights(
        mass, lists.spread
    )


def level_pair_weights(loss: Preorder, lists: SampleLists) -> tuple[FloatArray, FloatArray]:
    """Sum the weights of pairs of different grades; and the largest weight times squared distances."""
    pair_loss, offsets = cast("PairLoss", lists.label_loss), lists.queries.offsets
    top, weight = (
        segment_reduce(np.maximum, rows, offsets) for rows in (pair_loss.levels, pair_loss.weights)
    )
    gap = np.minimum(top - segment_reduce(np.minimum, pair_loss.levels, offsets), pair_loss.top)
    codes = (
        level_codes(lists.labels, offsets) if loss.weighting == "gain" else pair_loss.levels.astype(np.int64)
    )
    apart = shape(lists.X, lists.queries, codes).apart
    return lists.rest / margin(loss.margin).value(0.0), multiply_weights(weight * gap, apart)


def _square_swing(loss: Squared | Duchi, lists: SampleLists, B: float) -> Swing:
    """Swing of losses v s.s + g.s + const: the linear part and the square part in the weights."""
    v = float(loss.nu) if isinstance(loss, Duchi) else 1.0
    linear, square = lists.tilt * np.sqrt(lists.spread), v * B * lists.spread
    parts = (
        DeviationTerm(
            1.0, linear, "g_q sqrt(S_q)", "(B/n) sqrt(sum_q g_q^2 S_q): what is linear in the weights"
        ),
        DeviationTerm(1.0, square, "v B S_q", "v (B^2/n) sqrt(sum_q S_q^2): what is square"),
    )
    low = lists.rest - lists.tilt**2 / (4.0 * v) if isinstance(loss, Duchi) else None
    return _assemble_swing(lists, linear + 2.0 * square, B * (linear + square), parts, low)


def _assemble_swing(
    lists: SampleLists,
    slopes: FloatArray,
    rise: FloatArray,
    parts: tuple[DeviationTerm, ...],
    lowest: FloatArray | None = None,
) -> Swing:
    """Assemble a swing; losses are >= 0 unless `lowest` is given."""
    low = np.zeros(len(rise)) if lowest is None else lowest
    far = math.sqrt(lists.squares.max(initial=0.0))
    return Swing(slopes, low, lists.rest + rise, parts, lists.rest, far)


SMALL = 30  # halvings of B = 1, for weights 0


@dataclass(frozen=True, repr=False)
class LossBound(EmpiricalBound):
    """With probability 1 - delta: expected loss <= mean loss + excess, for the ranker at hand.

    Like `EmpiricalBound`, for a loss that only the length of the weights bounds:

    - `empirical` and `measured` both are the mean loss on these queries.
    - `largest` is the mean loss of weights 0 on these queries: a bound that is not below it does not
      distinguish the ranker from no ranking at all, and is called `vacuous`.
    - `worst` is the most that the mean loss on these queries can be for weights no longer than B.
    """

    @property
    def verdict(self) -> str:
        """Reason why the bound is vacuous, where it is."""
        return f"weights 0 lose {self.largest:.4g} on these queries"

    def _remarks(self) -> list[str]:
        return [f"  vacuous: {self.verdict}"]


def bound_of_loss(
    loss: Surrogate,
    labels: FloatArray,
    X: Any,
    queries: Queries,
    coef: FloatArray,
    *,
    delta: float = DELTA,
    B: float | None = None,
) -> LossBound:
    """Bound the expected loss on new queries of a linear ranker by its mean loss on n queries.

    For all w of length <= B at once, with probability 1 - delta over n independent queries:

    expected loss <= mean loss + complexity + estimate + c sqrt(ln(k/delta)/2n)

    The last term is McDiarmid's inequality on losses within a range of c; k counts the events that may fail.
    The complexity bounds the expected largest difference of expected and mean loss by a sum over lists, and
    the estimate what that sum falls short of its expectation. No loss has a largest value but the one that B
    leaves it: what is largest is taken from the lists at hand, an assumption about lists to come (`assumes`).
    The terms of each loss, with proofs: docs/theory.md, "Bounds of other losses".

    Parameters
    ----------
    loss, labels
        The loss that was minimised, and the labels it read, by row.
    X, queries
        Features as given, rows of each list adjacent, and the queries of the rows.
    coef
        The weights.
    delta
        Probability of failure.
    B
        Length of the weights, fixed before the queries were seen; None: the smallest power of 2 that is at
        least the length of `coef`, paid for by a union (`two_way_union_radius`).

    References
    ----------
    Maurer (2003), A bound on the deviation probability for sums of non-negative random variables. Maurer
    (2016). Mohri, Rostamizadeh and Talwalkar (2018), Theorem 3.3 and Lemma 5.7.

    Examples
    --------
    >>> from concordant import LinearRanker, standardize, synthetic
    >>> from concordant.surrogates import Softmax
    >>> toy = synthetic.grades(n_queries=2000, n_items=10, seed=0)
    >>> coef = LinearRanker("ndcg@5").fit(toy.X, toy.y, qid=toy.qid).coef_  # minimises the softmax loss
    >>> targets = standardize("ndcg@5", toy.y, qid=toy.qid)
    >>> bound = bound_of_loss(Softmax(), targets, toy.X, Queries.from_ids(toy.qid), coef)
    >>> bound.rule, bound.measured < bound.largest < bound.value, len(bound.assumes)
    ('union', True, 1)
    """
    if reason := why_unbounded(loss):
        raise ParameterError.because(f"loss={show_value(loss)} cannot be used here: {reason}.")
    check_share("delta", delta, 0.05)
    length, label_loss = weight_length(coef), loss.bind(labels, queries.offsets)
    radius = two_way_union_radius(length, delta) if B is None else given_radius(length, B, delta)
    loss_swing = swing(loss, label_loss, labels, X, queries, radius.B)
    mean = float(label_loss.value_and_grad(LinearScorer(X).all_scores(coef))[0].mean())
    return LossBound(
        bounds=f"{format_surrogate(loss)} loss",
        empirical=mean,
        parts=terms(loss_swing, loss_swing.extremes, radius),
        multiplier=1.0,
        largest=float(loss_swing.rest.mean()),
        measured=mean,
        worst=float(loss_swing.highest.mean()),
        B=radius.B,
        rule=radius.rule,
        length=length,
        M=loss_swing.farthest,
        version="sharp",
        n=queries.n_queries,
        delta=float(delta),
        assumes=(_extremes_assumption(loss_swing, radius.B),),
    )


def two_way_union_radius(length: float, delta: float) -> Radius:
    """Return the smallest power of 2 that is long enough (2^-30 for 0), and the share of delta for it.

    Half of delta pays for 1, 2, 4, ..., in shares of 1/((k + 1)(k + 2)), and half for 1/2, 1/4, ...

    >>> two_way_union_radius(3.0, 0.05).B, two_way_union_radius(0.2, 0.05).B
    (4.0, 0.25)
    >>> two_way_union_radius(0.2, 0.05).chance == 0.025 / 6
    True
    """
    share, k = math.frexp(length) if length > 0.0 else (1.0, -SMALL)  # exact, where a logarithm rounds
    k = k - 1 if share == 0.5 else k
    if k >= 0:
        return union_radius(math.ldexp(1.0, min(k, 1023)), 1.0, delta / 2.0)
    return Radius("union", math.ldexp(1.0, k), delta / 2.0 / (k * (k - 1)))


def _extremes_assumption(loss_swing: Swing, B: float) -> str:
    """Describe the assumption about lists outside the sample."""
    low, high, amounts = loss_swing.extremes
    loss_range = f"no list loses more than {high:.4g}" + f" or less than {low:.4g}" * (low < 0.0)
    part_amounts = zip(loss_swing.parts, amounts, strict=True)
    limits = " or ".join(f"{part.symbol} above {amount:.4g}" for part, amount in part_amounts)
    return f"{loss_range} at any weights no longer than {B:g}, nor has {limits}"


def terms(loss_swing: Swing, extremes: LossExtremes, radius: Radius) -> tuple[Term, ...]:
    """Return the complexity term of the linear rankers on these lists, the estimate's, and the confidence."""
    n, events = len(loss_swing.rest), 1 + len(loss_swing.parts)
    log, c = math.log(events / radius.chance), extremes.high - extremes.low
    complexity = sum(part.factor * math.sqrt(float((part.amounts**2).mean())) for part in loss_swing.parts)
    tops = zip(loss_swing.parts, extremes.amounts, strict=True)
    estimate = sum(part.factor * top for part, top in tops) * math.sqrt(2.0 * log / n)
    factor = f"{loss_swing.parts[0].factor:.3g} " if loss_swing.parts[0].factor != 1.0 else ""
    estimate_words = f"{factor}(B/n) max z sqrt(2 ln({events}/delta)): what lists to come may add to it"
    confidence_words = f"c sqrt(ln({events}/delta) / (2n)), c = {c:.4g}, delta = {radius.chance:.3g}"
    return (
        Term(
            "complexity", ", and ".join(part.words for part in loss_swing.parts), 1, radius.B * complexity, n
        ),
        Term("estimate", estimate_words, 1, radius.B * estimate, n),
        Term("confidence", confidence_words, 1, c * math.sqrt(log / 2.0), n),
    )
