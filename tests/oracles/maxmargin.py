"""Max-margin losses of one query: definitions, typed naively."""

import functools
import itertools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from tests.oracles.metrics import discount, gain


class Kinked(NamedTuple):
    """As `Local`, of a loss with corners: every gradient within `room` of `grad` is between the slopes."""

    value: float
    grad: np.ndarray
    hessian: np.ndarray
    size: float
    sizes: np.ndarray
    bulk: np.ndarray
    room: np.ndarray


def straight(value, grad, size, sizes, room):
    """Without curvature."""
    nothing = np.broadcast_to(np.longdouble(0), (len(grad), len(grad)))
    return Kinked(value, grad, nothing, size, sizes, nothing, room)


def rank_labels(grades):
    """1 for the best grade of the query, 2 for the next one, and so on."""
    levels = {grade: y for y, grade in enumerate(sorted(set(grades), reverse=True), 1)}
    return [levels[grade] for grade in grades]


def position_margins(y, i):
    """Of pairs whose better item is i: m/y_i - m/y_j."""
    return y.max() / y[i] - y.max() / y


def position_hinge(scores, grades, weights, reduction="sum", margins=position_margins):
    """Sum over pairs with y_i < y_j of weights_i * (margin_ij - (s_i - s_j))_+."""
    s, y = (np.array(x, dtype=np.longdouble) for x in (scores, rank_labels(list(grades))))
    n, value, size, n_pairs = len(s), np.longdouble(0), np.longdouble(0), 0
    grad, sizes, room = np.zeros((3, n), dtype=np.longdouble)
    for i in range(n):
        worse = y[i] < y
        margin, ahead = margins(y, i), s[i] - s
        gap = np.where(worse, margin - ahead, 0)
        corner = worse & (abs(gap) <= 1e-13 * (margin + abs(s[i]) + abs(s)))
        slope = weights[i] * np.where(corner, 0.5, gap > 0)
        counts = weights[i] * (corner | (gap > 0))
        value, n_pairs = value + weights[i] * np.maximum(gap, 0).sum(), n_pairs + worse.sum()
        size += (counts * (margin + abs(ahead))).sum()
        for sums, part, sign in ((grad, slope, -1), (sizes, counts, 1), (room, weights[i] * corner / 2, 1)):
            sums[i] += sign * part.sum()
            sums[:] += part
    parts = {"sum": 1, "pairs": max(n_pairs, 1), "all_pairs": max(n * (n - 1) / 2, 1)}[reduction]
    return straight(value / parts, grad / parts, size / parts, sizes / parts, room / parts)


class ListMetric(NamedTuple):
    """A metric of whole lists."""

    name: str
    k: float = math.inf
    gain: Callable = gain
    discount: str = "log2"
    relevant_from: float = 1.0
    denominator: str = "k"
    v: float = 0.0
    w: float = 5.0


def item_labels(metric, grades):
    """What the metric reads of each grade; items of equal labels are tied."""
    if metric.name in ("ap", "p", "auc"):
        return [float(grade >= metric.relevant_from) for grade in grades]
    if metric.name == "eru":
        return [max(grade - metric.v, 0.0) for grade in grades]
    return [float(grade) if metric.name == "pd" else float(metric.gain(grade)) for grade in grades]


# Orders are arrays of the place, from 1, of each item: one order (n), or one in each column (n, many).


@functools.cache
def all_places(n):
    """Every order of n items."""
    return np.array(list(itertools.permutations(range(1, n + 1))), dtype=int).T


def sorted_places(*keys):
    """Place of each item, high first by the first key, then by the next; then as they come."""
    n = len(keys[0])
    order = sorted(range(n), key=lambda i: [-key[i] for key in keys])
    return np.array([order.index(i) + 1 for i in range(n)], dtype=int)


def class_interleavings(scores, labels):
    """Orders of two labels, each sorted by score: one for every set of places of the higher label."""
    items, places = sorted(range(len(scores)), key=lambda i: -scores[i]), range(1, len(labels) + 1)
    high = [i for i in items if labels[i] == max(labels)]
    low = [i for i in items if labels[i] != max(labels)]
    columns = []
    for taken in itertools.combinations(places, len(high)):
        free = [position for position in places if position not in taken]
        columns.append(dict(zip([*high, *low], [*taken, *free], strict=True)))
    return np.array([[column[i] for column in columns] for i in range(len(labels))], dtype=int).reshape(
        len(labels), len(columns)
    )


def is_consistent(labels, places):
    """True if every item stands above all items of lower labels."""
    pairs = [(i, j) for i, j in itertools.permutations(range(len(labels)), 2) if labels[i] > labels[j]]
    return np.all([places[i] < places[j] for i, j in pairs] or [np.ones(places.shape[1:], bool)], axis=0)


def place_discounts(metric, n):
    """What an item is worth at each place."""
    if metric.name == "eru":
        values = [2 ** ((1 - position) / (metric.w - 1)) for position in range(1, n + 1)]
    elif metric.name == "p":
        values = [1 / (metric.k if metric.denominator == "k" else min(metric.k, n))] * n
    else:
        values = [discount(position, metric.discount) for position in range(1, n + 1)]
    return np.array([value * (position <= metric.k) for position, value in enumerate(values, 1)])


def pair_cost(metric, labels):
    """What a pair of labels that differ by 1 costs where it stands wrong (wpd: in proportion)."""
    high = sum(label == max(labels) for label in labels)
    return 1 / (high * (len(labels) - high)) if metric.name == "auc" else 1.0


def list_value(metric, labels, places):
    """Value of the metric in each order, by its definition; negative where it is a loss."""
    n = len(labels)
    if metric.name == "ap":
        relevant = [i for i in range(n) if labels[i]]
        hits = [sum(places[j] <= places[i] for j in relevant) for i in relevant]
        return sum(hit / places[i] for hit, i in zip(hits, relevant, strict=True)) / len(relevant)
    if metric.name in ("pd", "wpd", "auc"):
        weighted, cost = metric.name == "wpd", pair_cost(metric, labels)
        pairs = [(i, j) for i, j in itertools.permutations(range(n), 2) if labels[i] > labels[j]]
        return -cost * sum(
            (labels[i] - labels[j] if weighted else 1.0) * (places[i] > places[j]) for i, j in pairs
        )
    discounts = place_discounts(metric, n)
    value = sum(labels[i] * discounts[places[i] - 1] for i in range(n))
    ideal = sum(np.sort(labels)[::-1] * discounts)
    return value / ideal if metric.name == "ndcg" else value


def order_loss(metric, grades, places):
    """L: how far the metric is below its best value in each order; 0 where all labels are equal."""
    labels = item_labels(metric, grades)
    if len(set(labels)) < 2:
        return np.zeros(places.shape[1:])
    return list_value(metric, labels, sorted_places(labels)) - list_value(metric, labels, places)


def order_score(scores, labels, places):
    """F: over pairs of different labels, sum of (score of the upper item - of the lower) * 2/(n(n-1))."""
    s, n = np.array(scores, dtype=np.longdouble), len(scores)
    total = np.zeros(places.shape[1:], np.longdouble)
    for i in range(n):
        others = [j for j in range(i) if labels[j] != labels[i]]
        ahead = (s[i] - s[others]).reshape(-1, *[1] * total.ndim)
        total += np.where(places[i] < places[others], ahead, -ahead).sum(axis=0)
    return total * 2 / max(n * (n - 1), 1)


def order_slopes(labels, places):
    """Derivatives of F by the scores."""
    n, total = len(labels), np.zeros(places.shape, np.longdouble)
    for i in range(n):
        others = [j for j in range(n) if labels[j] != labels[i]]
        total[i] = np.where(places[i] < places[others], 1, -1).sum(axis=0)
    return total * 2 / max(n * (n - 1), 1)


def spread(scores, labels):
    """Largest F: sum of |s_i - s_j| over pairs of different labels, times 2/(n(n-1))."""
    return order_score(scores, labels, sorted_places(scores))


class Violations(NamedTuple):
    """L - dF of orders that are not consistent with the labels, and its slopes, lowest and highest.

    `size` is that of the terms L and dF.
    """

    slack: np.ndarray
    low: np.ndarray
    high: np.ndarray
    size: float


def violations(scores, grades, metric, *, by_class=False):
    labels = item_labels(metric, grades)
    gold = sorted_places(labels)
    places = class_interleavings(scores, labels) if by_class else all_places(len(labels))
    places = places[:, ~is_consistent(labels, places)]
    loss = order_loss(metric, grades, places)
    slack = loss - (order_score(scores, labels, gold) - order_score(scores, labels, places))
    slopes = order_slopes(labels, places) - order_slopes(labels, gold)[:, None]
    low, high = slopes.copy(), slopes.copy()
    if by_class:  # items of one class with the same score may stand in any order
        for i in range(len(labels)):
            twins = [j for j in range(len(labels)) if (labels[j], scores[j]) == (labels[i], scores[i])]
            low[i], high[i] = slopes[twins].min(axis=0), slopes[twins].max(axis=0)
    return Violations(slack, low, high, abs(loss).max(initial=0) + 2 * spread(scores, labels))


def largest(pieces):
    """0 or the largest violation, whichever is more."""
    top = pieces.slack.max(initial=0)
    near = pieces.slack >= top - 1e-12 * pieces.size
    low = pieces.low[:, near].min(axis=1, initial=np.inf)
    high = pieces.high[:, near].max(axis=1, initial=-np.inf)
    if top <= 1e-12 * pieces.size:  # the gold order is a maximiser, too
        low, high = np.minimum(low, 0), np.maximum(high, 0)
    sizes = abs(pieces.high).max(axis=1, initial=0) + abs(pieces.low).max(axis=1, initial=0)
    return straight(top, (low + high) / 2, pieces.size, sizes, (high - low) / 2)


def summed(pieces):
    """Sum of the positive violations."""
    sure, near = pieces.slack > 1e-12 * pieces.size, abs(pieces.slack) <= 1e-12 * pieces.size
    low = np.where(near, np.minimum(pieces.low, 0), pieces.low * sure).sum(axis=1)
    high = np.where(near, np.maximum(pieces.high, 0), pieces.high * sure).sum(axis=1)
    count, sizes = (sure | near).sum(), (abs(pieces.low) + abs(pieces.high))[:, sure | near].sum(axis=1)
    value = np.maximum(pieces.slack, 0).sum()
    return straight(value, (low + high) / 2, count * pieces.size, sizes, (high - low) / 2)


def softened(pieces, temperature):
    """T log(1 + sum of exp(violation / T)); its weights have the digits that violation / T has."""
    t = np.longdouble(temperature)
    top = pieces.slack.max(initial=0)
    shares = np.exp((pieces.slack - top) / t)
    total = np.exp(-top / t) + shares.sum()
    p, slopes = shares / total, pieces.low
    grad, worst = (p * slopes).sum(axis=1), 1 + pieces.size / t
    hessian = ((p * slopes) @ slopes.T - np.outer(grad, grad)) / t
    bulk = worst * ((p * abs(slopes)) @ abs(slopes).T + np.outer(abs(grad), abs(grad))) / t
    sizes = worst * (p * abs(slopes)).sum(axis=1)
    value = top + t * np.log(total)
    return Kinked(value, grad, hessian, pieces.size + value, sizes, bulk, 0 * grad)


def listwise_hinge(scores, grades, weights, metric, mode="max", temperature=1.0):
    """Over orders that are not consistent with the labels, of L - dF; the list counts by its mean weight."""
    pieces = violations(scores, grades, metric, by_class=mode == "sum_interleavings")
    local = {"max": largest, "softmax": lambda part: softened(part, temperature)}.get(mode, summed)(pieces)
    return Kinked(*((np.longdouble(sum(weights)) / max(len(weights), 1)) * part for part in local))


def same_label_spread(scores, labels):
    """W: sum of |s_i - s_j| over pairs of equal labels, times 2/(n(n-1))."""
    return spread(scores, range(len(scores))) - spread(scores, labels)


def linear_rewards(metric, labels):
    """Of a metric that is linear in places: L is a constant and a sum of these, by item and place."""
    n, labels = len(labels), np.array(labels)
    if metric.name in ("pd", "wpd", "auc"):
        worth = labels if metric.name == "wpd" else labels / (np.ptp(labels) or 1)
        gains = np.outer(worth, n + 1 - 2 * np.arange(1, n + 1)) * pair_cost(metric, labels) / 2
    else:
        gains = np.outer(labels, place_discounts(metric, n))
    gold = gains[np.arange(n), sorted_places(labels) - 1].sum()
    scale = 1 / gold if metric.name == "ndcg" else 1.0
    return -gains * scale, gold * scale


def largest_by_assignment(scores, grades, metric):
    """Largest L - dF of a metric that is linear in places: items are assigned to places."""
    labels, n = item_labels(metric, grades), len(scores)
    if len(set(labels)) < 2:
        return 0.0
    rewards, constant = linear_rewards(metric, labels)
    centred = np.array(scores) - np.median(scores)
    rewards = rewards + np.outer(centred, n + 1 - 2 * np.arange(1, n + 1)) * 2 / (n * (n - 1))
    best = rewards[linear_sum_assignment(rewards, maximize=True)].sum() + constant
    return float(
        best - same_label_spread(scores, labels) - order_score(scores, labels, sorted_places(labels))
    )


def largest_by_interleaving(scores, grades, metric):
    """Largest L - dF of average precision: relevant item after item, by how many others are above it.

    Either class is sorted by score; that number never falls from one relevant item to the next.
    """
    n, relevant = len(scores), np.array(item_labels(metric, grades)) > 0
    high, low = (-np.sort(-np.array(scores)[group]) for group in (relevant, ~relevant))
    if not len(high) or not len(low):
        return 0.0
    above = np.arange(len(low) + 1)
    best = np.zeros(len(low) + 1)
    for i, score in enumerate(high, 1):
        lost = 2 * np.r_[0.0, np.cumsum(score - low)] * 2 / (n * (n - 1))  # F(gold) - F: items above, twice
        best = np.maximum.accumulate(best) + (1 - i / (i + above)) / len(high) - lost
    return float(best.max())
