"""Definitions, typed naively: every fast kernel of the package is compared with one of these.

Nothing here imports the package.
"""

import decimal
import functools
import itertools
import math
import re
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment, linprog, minimize

# ---------------------------------------------------------------- metrics of one query


def compatible_orders(scores):
    """All orders of the retrieved items (score > -inf) in which no score rises."""
    values = sorted({s for s in scores if s > -math.inf}, reverse=True)
    groups = [[i for i, s in enumerate(scores) if s == value] for value in values]
    for pieces in itertools.product(*(itertools.permutations(group) for group in groups)):
        yield [item for piece in pieces for item in piece]


def expected(value_of_order, scores):
    """Mean of a function of the order over all orders compatible with the scores."""
    values = [value_of_order(order) for order in compatible_orders(scores)]
    return math.fsum(values) / len(values)


def gain(grade, kind="exp2"):
    return 2.0**grade - 1 if kind == "exp2" else grade


def discount(place, kind="log2"):
    if kind == "log2":
        return 1 / math.log2(1 + place)
    return 1.0 if place == 1 else 1 / math.log2(place)


def dcg(grades, order, k=None, kind="exp2", discount_kind="log2"):
    places = order[: k or len(order)]
    return sum(gain(grades[i], kind) * discount(p, discount_kind) for p, i in enumerate(places, 1))


def ndcg(grades, order, k=None, kind="exp2", discount_kind="log2"):
    best = max(range(len(grades)), key=lambda i: grades[i])
    if gain(grades[best], kind) == 0:
        return None
    ideal = sorted(range(len(grades)), key=lambda i: -grades[i])
    return dcg(grades, order, k, kind, discount_kind) / dcg(grades, ideal, k, kind, discount_kind)


def err(grades, order, k=None, max_grade=4):
    value, reach = 0.0, 1.0
    for place, i in enumerate(order[: k or len(order)], 1):
        stop = (2.0 ** grades[i] - 1) / 2.0**max_grade
        value += reach * stop / place
        reach *= 1 - stop
    return value


def precision(grades, order, k, relevant_from=1, denominator="k"):
    hits = sum(grades[i] >= relevant_from for i in order[:k])
    return hits / (k if denominator == "k" else min(k, len(grades)))


def ap(grades, order, k=None, relevant_from=1, denominator="relevant"):
    relevant = sum(g >= relevant_from for g in grades)
    if relevant == 0:
        return None
    cut = len(order) if k is None or denominator == "uncut" else k
    hits, total = 0, 0.0
    for place, i in enumerate(order[:cut], 1):
        if grades[i] >= relevant_from:
            hits += 1
            total += hits / place
    if denominator == "found":
        return total / hits if hits else 0.0
    if denominator == "min":
        return total / min(relevant, cut)
    return total / relevant


def rr(grades, order, k=None, relevant_from=1):
    for place, i in enumerate(order[: k or len(order)], 1):
        if grades[i] >= relevant_from:
            return 1 / place
    return 0.0


def eru(grades, order, v=0.0, w=5.0, k=None):
    places = enumerate(order[: k or len(order)], 1)
    return sum(max(grades[i] - v, 0) * 2 ** ((1 - p) / (w - 1)) for p, i in places)


def pd(weight, order):
    """`weight(i, j)`: what is paid when i, preferred, stands below j."""
    return sum(weight(i, j) for p, j in enumerate(order) for i in order[p + 1 :])


def auc(grades, order, relevant_from=1):
    relevant = [i for i in order if grades[i] >= relevant_from]
    rest = [i for i in order if grades[i] < relevant_from]
    if not relevant or not rest:
        return None
    return sum(order.index(i) < order.index(j) for i in relevant for j in rest) / (len(relevant) * len(rest))


def zero_one(positions, order):
    return float([positions[i] for i in order] != sorted(positions))


# ---------------------------------------------------------------- comparisons with ties


def comparison_error(outcomes, decisions, tau):
    def predict(d):
        return 0 if abs(d) <= tau else (1 if d > 0 else -1)

    return sum(predict(d) != y for y, d in zip(outcomes, decisions, strict=True)) / len(outcomes)


def comparison_area(outcomes, decisions, *, ignore_inversions=False):
    """Points at every threshold from infinity down to 0, joined by straight lines, then flat to rate 1."""
    points = [(0.0, 0.0)]
    ties = [d for y, d in zip(outcomes, decisions, strict=True) if y == 0]
    rest = [(y, d) for y, d in zip(outcomes, decisions, strict=True) if y != 0]
    for tau in sorted({abs(d) for d in decisions} - {0.0}, reverse=True):
        false = sum(abs(d) >= tau for d in ties) / len(ties)
        true = sum(abs(d) >= tau and (ignore_inversions or y * d > 0) for y, d in rest) / len(rest)
        points.append((false, true))
    points.append((1.0, points[-1][1]))
    return sum((x1 - x0) * (y0 + y1) / 2 for (x0, y0), (x1, y1) in itertools.pairwise(points))


# ---------------------------------------------------------------- exact regret on a known distribution


def expected_over_labels(value, labels, probs, order):
    """Mean over labels of `value(label, order)`; a label that leaves it undefined (None) adds nothing."""
    return math.fsum(p * (value(label, order) or 0.0) for label, p in zip(labels, probs, strict=True))


def best_expected(value, labels, probs, n, *, greater=True):
    """Best mean over labels that any order of n items attains."""
    orders = itertools.permutations(range(n))
    values = [expected_over_labels(value, labels, probs, list(order)) for order in orders]
    return max(values) if greater else min(values)


def plackett_luce(scores, order):
    """Probability of drawing this order, one item after another, proportionally to exp(score)."""
    value, rest = 1.0, list(order)
    while rest:
        value *= math.exp(scores[rest[0]]) / math.fsum(math.exp(scores[i]) for i in rest)
        rest.pop(0)
    return value


def mallows_weight(scores, order, theta):
    """exp(-theta * number of pairs that stand against the scores)."""
    wrong = sum(scores[a] < scores[b] for a, b in itertools.combinations(order, 2))
    return math.exp(-theta * wrong)


# ---------------------------------------------------------------- standardizations of one query


def r_dcg(grades):
    return [2.0**g - 1 for g in grades]


def r_ndcg(grades, k=None):
    best = max(dcg(grades, list(order), k) for order in itertools.permutations(range(len(grades))))
    return [(2.0**g - 1) / best if best else 0.0 for g in grades]


def r_precision(grades, relevant_from=1):
    return [float(g >= relevant_from) for g in grades]


def r_eru(grades, v=0.0):
    return [max(g - v, 0.0) for g in grades]


def r_auc(grades, relevant_from=1):
    relevant = [float(g >= relevant_from) for g in grades]
    pairs = sum(relevant) * (len(relevant) - sum(relevant))
    return [y / pairs if pairs else 0.0 for y in relevant]


def r_pd(grades):
    """Of at most two different grades."""
    return [float(any(g > other for other in grades)) for g in grades]


def r_wpd(grades):
    return [2.0**g - 1 if len(set(grades)) > 1 else 0.0 for g in grades]


def r_ap(grades, relevant_from=1, most=math.inf):
    relevant = [float(g >= relevant_from) for g in grades]
    return [y / min(sum(relevant), most) if any(relevant) else 0.0 for y in relevant]


def net_weights(a):
    """Of a graph as a square list of lists, a[i][j] = weight of "i preferred to j"."""
    return [sum(a[i][k] - a[k][i] for k in range(len(a))) for i in range(len(a))]


def r_low_noise(a):
    largest = max((weight for row in a for weight in row), default=0.0)
    return [len(a) * largest + net for net in net_weights(a)]


def r_family(f, a):
    """f of the graph, raised by what makes its lowest number 0 if that is negative; 0 without preferences."""
    if not any(weight for row in a for weight in row):
        return [0.0] * len(a)
    values = f(a)
    return [value + max(-min(values), 0) for value in values]


def r_zero_one(positions):
    return [len(positions) + 1.0 - position for position in positions]


# ---------------------------------------------------------------- conditions on a distribution of labels


def mean_over(labels, probs, number_of):
    return sum(p * number_of(label) for label, p in zip(labels, probs, strict=True))


def reinforces(labels, probs, most=math.inf):
    """P_reinforce: u_ii >= u_jj implies u_ii >= u_jj + sum over the other g of (u_jg - u_ig)_+."""
    n = len(labels[0])

    def u(i, j):
        return mean_over(labels, probs, lambda y: y[i] * y[j] / (min(sum(y), most) or 1))

    return all(
        u(i, i) >= u(j, j) + sum(max(u(j, g) - u(i, g), 0) for g in range(n) if g not in (i, j))
        for i, j in itertools.permutations(range(n), 2)
        if u(i, i) >= u(j, j)
    )


def mean_nets(graphs, probs):
    """d[i, j] = E[a_ij - a_ji]."""
    pairs = itertools.permutations(range(len(graphs[0])), 2)
    return {(i, j): mean_over(graphs, probs, lambda a: a[i][j] - a[j][i]) for i, j in pairs}  # noqa: B023


def has_low_noise(graphs, probs):
    """d_ik > 0 and d_kj > 0 imply d_ij >= d_ik + d_kj."""
    d = mean_nets(graphs, probs)
    triples = itertools.permutations(range(len(graphs[0])), 3)
    paths = [(i, k, j) for i, k, j in triples if d[i, k] > 0 and d[k, j] > 0]
    return all(d[i, j] >= d[i, k] + d[k, j] for i, k, j in paths)


def follows(f, graphs, probs):
    """P_f: d_ij > 0 implies E f_i > E f_j."""
    d = mean_nets(graphs, probs)
    values = [mean_over(graphs, probs, lambda a: f(a)[i]) for i in range(len(graphs[0]))]  # noqa: B023
    return all(values[i] > values[j] for (i, j), net in d.items() if net > 0)


def preserves_order(labels, probs):
    """For some order of the items, each two neighbours i, j in it are as in Definition 5 of paper 1."""
    n = len(labels[0])
    chance = dict.fromkeys(itertools.permutations(range(1, n + 1)), 0)
    for label, p in zip(labels, probs, strict=True):
        chance[tuple(label)] += p

    def kept(i, j):
        for positions, p in chance.items():
            swapped = list(positions)
            swapped[i], swapped[j] = positions[j], positions[i]
            other = chance[tuple(swapped)]
            if positions[i] < positions[j] and not (p > other or p == other == 0):
                return False
        return True

    chains = itertools.permutations(range(n))
    return any(all(kept(i, j) for i, j in itertools.pairwise(chain)) for chain in chains)


def mixtures_of(n_labels, rng):
    """Every label alone, every two in several shares, and three at a time."""
    rows = list(np.eye(n_labels))
    for (a, b), share in itertools.product(itertools.permutations(range(n_labels), 2), (1, 2, 5, 20)):
        rows.append(np.eye(n_labels)[a] + share * np.eye(n_labels)[b])
    for _ in range(1500):
        row = np.zeros(n_labels)
        row[rng.choice(n_labels, 3, replace=False)] = rng.integers(1, 13, 3)
        rows.append(row)
    return np.array(rows) / np.sum(rows, axis=1, keepdims=True)


def may_be_standardized(value, labels, mixtures, *, greater=True):
    """Whether item scores r(label) exist whose means, under these mixtures, contradict no best order.

    If every best order of a mixture places i before j, then E r_i > E r_j. These are linear inequalities in
    the numbers r(label); where they have no solution, no standardization exists.
    """
    n, shape = len(labels[0]), (len(labels), len(labels[0]))
    orders = list(itertools.permutations(range(n)))
    values = np.array([[value(label, list(order)) or 0.0 for order in orders] for label in labels])
    before = np.array([[[o.index(i) < o.index(j) for j in range(n)] for i in range(n)] for o in orders])
    means = mixtures @ (values if greater else -values)
    rows = []
    for probs, mean in zip(mixtures, means, strict=True):
        always = before[mean >= mean.max() - 1e-9].all(axis=0)
        for i, j in np.argwhere(always):
            difference = np.zeros(shape)
            difference[:, i], difference[:, j] = probs, -probs
            rows.append(difference.ravel())
    found = linprog(np.zeros(math.prod(shape)), -np.array(rows), -np.ones(len(rows)), bounds=(None, None))
    return {0: True, 2: False}[found.status]


# ---------------------------------------------------------------- surrogates of one query


class Local(NamedTuple):
    """A loss at one point, in extended precision.

    `size`, `sizes` and `bulk` are sums of |terms|, in place of the sums of terms that value, gradient and
    Hessian are: rounding errors are small relative to them, not to what is left after terms cancel.
    """

    value: float
    grad: np.ndarray
    hessian: np.ndarray
    size: float
    sizes: np.ndarray
    bulk: np.ndarray


def phi(name, t, h=0.5):
    """Value, slope and curvature of a margin at t, elementwise; where they jump, as to the right of t."""
    t = np.asarray(t, dtype=np.longdouble)
    if name == "squared_hinge":
        return np.maximum(1 - t, 0) ** 2, -2 * np.maximum(1 - t, 0), 2.0 * (t < 1)
    if name == "hinge":
        return np.maximum(1 - t, 0), -1.0 * (t < 1), 0.0 * t
    if name == "huber_hinge":
        h = np.longdouble(h)
        pieces = [t >= 1 + h, t >= 1 - h, t < 1 - h]
        value = np.select(pieces, [0 * t, (1 + h - t) ** 2 / (4 * h), 1 - t])
        slope = np.select(pieces, [0 * t, -(1 + h - t) / (2 * h), 0 * t - 1])
        return value, slope, np.select(pieces, [0 * t, 0 * t + 1 / (2 * h), 0 * t])
    with np.errstate(over="ignore"):
        power = np.exp(-t)
        if name == "exponential":
            return power, -power, power
        return np.logaddexp(0, -t), -1 / (1 + np.exp(t)), 1 / ((1 + power) * (1 + np.exp(t)))


def pair_loss(scores, weights, name, h=0.5):
    """Sum over i, j of weights[i][j] * phi(s_i - s_j)."""
    s = np.array(scores, dtype=np.longdouble)
    t = s[:, None] - s[None, :]
    counts = np.where(weights > 0, weights, 0)
    # The term of a pair that does not count is left out: it may be infinite.
    value, slope, curvature = (counts * np.where(counts > 0, x, 0) for x in phi(name, t, h))
    bent = curvature + curvature.T
    hessian = np.diag(bent.sum(axis=1)) - bent
    # An item against itself is a constant, but its slope may be added and subtracted; and so may, where a
    # window slides over sorted scores, the largest curvature of every pair.
    most = {"squared_hinge": 2, "huber_hinge": 1 / (2 * h)}.get(name)
    passing = bent if most is None else most * (counts + counts.T)
    sizes, bulk = -slope.sum(axis=1) - slope.sum(axis=0), np.diag(passing.sum(axis=1)) + passing
    return Local(value.sum(), slope.sum(axis=1) - slope.sum(axis=0), hessian, value.sum(), sizes, bulk)


def pairwise_loss(scores, targets, weights, name, h=0.5, *, normalize=False):
    n = len(scores)
    per_item = np.array(targets, dtype=np.longdouble) * weights / (max(n * (n - 1), 1) if normalize else 1)
    return pair_loss(scores, np.outer(per_item, np.ones(n)), name, h)


def preorder_loss(scores, grades, weights, weighting, name, h=0.5):
    y = np.array(grades, dtype=np.longdouble)
    above = y[:, None] > y[None, :]
    per_pair = {
        "unit": 1.0,
        "pairs": 1 / max(above.sum(), 1),
        "gain": (2 ** y[:, None] - 2 ** y[None, :]) / max(above.sum(), 1),
    }[weighting]
    return pair_loss(scores, np.array(weights)[:, None] * np.where(above, per_pair, 0), name, h)


def choice(scores, weight):
    """Weight times -log of the probability that the first item is chosen, proportionally to exp(score)."""
    s = np.array(scores, dtype=np.longdouble)
    p = np.exp(s - s.max()) / np.exp(s - s.max()).sum()
    first = np.arange(len(s)) == 0
    value = weight * np.logaddexp(0, np.logaddexp.reduce(s[1:] - s[0]))
    hessian = weight * (np.diag(p) - np.outer(p, p))
    bulk = weight * (np.diag(p) + p[:, None])  # a mean is subtracted that has the digits of the largest entry
    return Local(value, weight * (p - first), hessian, value, weight * (p + first), bulk)


def chosen(scores, sets, weights):
    """Sum over sets of items, each with its first chosen."""
    n = len(scores)
    total = Local(*(np.zeros(shape, np.longdouble) for shape in ((), n, (n, n)) * 2))
    for items, weight in zip(sets, weights, strict=True):
        part = choice([scores[i] for i in items], weight)
        for whole, piece in zip(total, part, strict=True):
            whole[np.ix_(*[items] * whole.ndim)] += piece
    return total


def softmax_loss(scores, targets, weights):
    n = len(scores)
    sets = [[i, *(j for j in range(n) if j != i)] for i in range(n)]
    return chosen(scores, sets, [a * w for a, w in zip(targets, weights, strict=True)])


def plackett_luce_loss(scores, positions, weights):
    order = sorted(range(len(scores)), key=lambda i: positions[i])
    return chosen(scores, [order[k:] for k in range(len(order))], [weights[i] for i in order])


def squared_loss(scores, targets, weights, *, centred=True):
    """Sum of weights * (d - mean d)^2, the mean by the same weights; plain: of weights * d^2."""
    w = np.array(weights, dtype=np.longdouble)
    d = np.array(scores, dtype=np.longdouble) - targets
    share = w / w.sum() if centred and w.sum() > 0 else 0 * w
    off, hessian = d - (share * d).sum(), 2 * (np.diag(w) - np.outer(w, share))
    size = abs(np.array(scores)) + abs(np.array(targets)) if not centred else abs(d) + (share * abs(d)).sum()
    bulk = 2 * (np.diag(w) + np.outer(w, share))
    return Local((w * off**2).sum(), 2 * w * off, hessian, (w * size**2).sum(), 2 * w * size, bulk)


def penalty(name, z):
    """Value, slope and curvature."""
    z = np.array(z, dtype=np.longdouble)
    if name == "square":
        return z**2, 2 * z, 0 * z + 2
    if name == "cosh":
        return np.cosh(z), np.sinh(z), np.cosh(z)
    return z**2 + z**4, 2 * z + 4 * z**3, 2 + 12 * z**2


def duchi_loss(scores, targets, weights, name, nu=1.0):
    """Sum of weights * (nu * penalty(s) - target * s)."""
    value, slope, curvature = penalty(name, scores)
    linear, w = np.array(targets, dtype=np.longdouble) * scores, np.array(weights, dtype=np.longdouble)
    sizes = w * (nu * abs(slope) + abs(np.array(targets)))
    hessian = np.diag(w * nu * curvature)
    size = (w * (nu * value + abs(linear))).sum()
    return Local((w * (nu * value - linear)).sum(), w * (nu * slope - targets), hessian, size, sizes, hessian)


# ---------------------------------------------------------------- objective of a linear ranker


def linear_objective(w, X, queries, loss, alpha, scale=1.0):
    """Value, gradient and Hessian of: sum of loss(X w / scale, targets, weights) + alpha/2 |w|^2.

    `queries` holds (rows, targets, weights) of each query; the loss is a `Local` one.
    """
    features = np.asarray(X, dtype=np.longdouble) / scale
    value, grad, hessian = alpha / 2 * (w @ w), alpha * w, alpha * np.eye(len(w))
    for rows, targets, weights in queries:
        if len(rows):
            own = features[rows]
            part = loss(own @ w, targets, weights)
            value, grad = value + part.value, grad + own.T @ part.grad
            hessian = hessian + own.T @ part.hessian @ own
    return np.float64(value), np.float64(grad), np.float64(hessian)


def hinge_dual(X, queries, alpha):
    """Largest value of the dual of the pairwise hinge: no w is below it.

    Of sum over i, j of target_i weight_i max(0, 1 - (s_i - s_j)) + alpha/2 |w|^2, the dual is the largest
    sum of a_ij - |sum of a_ij (x_i - x_j)|^2 / 2 alpha, with 0 <= a_ij <= target_i weight_i.
    """
    differences, most = [], []
    for rows, targets, weights in queries:
        for i, j in itertools.product(range(len(rows)), repeat=2):
            differences.append(X[rows[i]] - X[rows[j]])
            most.append(targets[i] * weights[i])
    differences = np.array(differences)

    def value(a):
        w = differences.T @ a / alpha
        return alpha / 2 * (w @ w) - a.sum(), differences @ w - 1

    options = {"maxiter": 5000, "maxfun": 100_000, "ftol": 0.0, "gtol": 1e-10}
    found = minimize(
        value,
        np.zeros(len(most)),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, x) for x in most],
        options=options,
    )
    return -found.fun


# ---------------------------------------------------------------- LETOR text

LETOR_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
LETOR_BLANKS = " \t\r"


class LetorFault(Exception):  # noqa: N818
    """`args` is the number of the line, from 1, that breaks the format."""


def letor_number(token):
    """Python's float, of plain decimal numbers only."""
    if not LETOR_NUMBER.fullmatch(token) or not math.isfinite(float(token)):
        raise ValueError(token)
    return float(token)


def letor_whole(token):
    if not re.fullmatch("[0-9]+", token) or len(token.lstrip("0")) > 19 or int(token) > 2**63 - 1:
        raise ValueError(token)
    return int(token)


def letor_docid(comment):
    match = re.search(r"docid[ \t\r]*=[ \t\r]*([^ \t\r\n]+)", comment)
    return match[1] if match else comment.strip(LETOR_BLANKS)


def letor_line(body, base, n_features):
    """Grade, query id or None, and {column: value} of the text before the comment."""
    tokens = [token for token in re.split(f"[{LETOR_BLANKS}]", body) if token]
    grade, qid, features, previous = letor_number(tokens[0]), None, {}, -1
    if grade < 0:
        raise ValueError(grade)
    rest = tokens[1:]
    if rest and rest[0].startswith("qid:"):
        qid = letor_whole(rest.pop(0)[4:])
    for token in rest:
        index, _, value = token.partition(":")
        column = letor_whole(index) - base
        if column <= previous or column > 2**63 - 2 or (n_features is not None and column >= n_features):
            raise ValueError(token)
        features[column] = letor_number(value)
        previous = column
    return grade, qid, features


def letor_rows(text, *, base=1, n_features=None):
    """Rows (grade, qid, features, docid) of a file's bytes; LetorFault at the first bad line."""
    text = text.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")
    rows = []
    for number, line in enumerate(text.split("\n"), start=1):
        body, _, comment = line.partition("#")
        if not body.strip(LETOR_BLANKS):
            continue
        try:
            grade, qid, features = letor_line(body, base, n_features)
        except ValueError as error:
            raise LetorFault(number) from error
        if rows and (qid is None) != (rows[0][1] is None):
            raise LetorFault(number)
        docid = letor_docid(comment).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        rows.append((grade, qid, features, docid))
    return rows


# ---------------------------------------------------------------- max-margin losses of one query


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
        free = [place for place in places if place not in taken]
        columns.append(dict(zip([*high, *low], [*taken, *free], strict=True)))
    return np.array([[column[i] for column in columns] for i in range(len(labels))], dtype=int).reshape(
        len(labels), len(columns)
    )


def is_consistent(labels, places):
    """Whether every item stands above all items of lower labels."""
    pairs = [(i, j) for i, j in itertools.permutations(range(len(labels)), 2) if labels[i] > labels[j]]
    return np.all([places[i] < places[j] for i, j in pairs] or [np.ones(places.shape[1:], bool)], axis=0)


def place_discounts(metric, n):
    """What an item is worth at each place."""
    if metric.name == "eru":
        values = [2 ** ((1 - place) / (metric.w - 1)) for place in range(1, n + 1)]
    elif metric.name == "p":
        values = [1 / (metric.k if metric.denominator == "k" else min(metric.k, n))] * n
    else:
        values = [discount(place, metric.discount) for place in range(1, n + 1)]
    return np.array([value * (place <= metric.k) for place, value in enumerate(values, 1)])


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


def largest(found):
    """0 or the largest violation, whichever is more."""
    top = found.slack.max(initial=0)
    near = found.slack >= top - 1e-12 * found.size
    low = found.low[:, near].min(axis=1, initial=np.inf)
    high = found.high[:, near].max(axis=1, initial=-np.inf)
    if top <= 1e-12 * found.size:  # the gold order is a maximiser, too
        low, high = np.minimum(low, 0), np.maximum(high, 0)
    sizes = abs(found.high).max(axis=1, initial=0) + abs(found.low).max(axis=1, initial=0)
    return straight(top, (low + high) / 2, found.size, sizes, (high - low) / 2)


def summed(found):
    """Sum of the positive violations."""
    sure, near = found.slack > 1e-12 * found.size, abs(found.slack) <= 1e-12 * found.size
    low = np.where(near, np.minimum(found.low, 0), found.low * sure).sum(axis=1)
    high = np.where(near, np.maximum(found.high, 0), found.high * sure).sum(axis=1)
    count, sizes = (sure | near).sum(), (abs(found.low) + abs(found.high))[:, sure | near].sum(axis=1)
    value = np.maximum(found.slack, 0).sum()
    return straight(value, (low + high) / 2, count * found.size, sizes, (high - low) / 2)


def softened(found, temperature):
    """T log(1 + sum of exp(violation / T)); its weights have the digits that violation / T has."""
    t = np.longdouble(temperature)
    top = found.slack.max(initial=0)
    shares = np.exp((found.slack - top) / t)
    total = np.exp(-top / t) + shares.sum()
    p, slopes = shares / total, found.low
    grad, worst = (p * slopes).sum(axis=1), 1 + found.size / t
    hessian = ((p * slopes) @ slopes.T - np.outer(grad, grad)) / t
    bulk = worst * ((p * abs(slopes)) @ abs(slopes).T + np.outer(abs(grad), abs(grad))) / t
    sizes = worst * (p * abs(slopes)).sum(axis=1)
    value = top + t * np.log(total)
    return Kinked(value, grad, hessian, found.size + value, sizes, bulk, 0 * grad)


def listwise_hinge(scores, grades, weights, metric, mode="max", temperature=1.0):
    """Over orders that are not consistent with the labels, of L - dF; the list counts by its mean weight."""
    found = violations(scores, grades, metric, by_class=mode == "sum_interleavings")
    local = {"max": largest, "softmax": lambda found: softened(found, temperature)}.get(mode, summed)(found)
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


# ---------------------------------------------------------------- pairs of items, all of them at once


def pair_row(groups, left, right, mean):
    """Features of one pair, group after group, feature after feature."""
    p = range(len(left))
    two = list(itertools.combinations(p, 2))
    of = {
        "sum": [left[a] + right[a] for a in p],
        "product": [left[a] * right[a] for a in p],
        "absdiff": [abs(left[a] - right[a]) for a in p],
        "level": [mean[a] for a in p],
        "cross": [left[a] * right[b] + left[b] * right[a] for a, b in two],
        "difference": [left[a] - right[a] for a in p],
        "signed_square": [(left[a] - right[a]) * abs(left[a] - right[a]) for a in p],
        "context": [(left[a] - right[a]) * mean[a] for a in p],
        "signed_cross": [left[a] * right[b] - left[b] * right[a] for a, b in two],
    }
    return [value for name in groups for value in of[name]]


def item_row(groups, item, mean):
    """Features of one item: its own, their squares, the means, the products of two, as far as groups say."""
    products = [item[a] * item[b] for a, b in itertools.combinations(range(len(item)), 2)]
    more = (list(mean) if "level" in groups else []) + (products if "cross" in groups else [])
    return [*item, *(value**2 for value in item), *more]


def shared_relevance(y, i, j):
    """y_i y_j / sum(y) of labels 0 and 1; 0 where none is relevant."""
    return y[i] * y[j] / max(sum(y), 1)


def net_weight(preferences, i, j):
    """Weight for i over j less that for j over i; (better, worse, weight) each."""
    signs = {(i, j): 1.0, (j, i): -1.0}
    return sum(weight * signs.get((better, worse), 0.0) for better, worse, weight in preferences)


def pair_table(X, queries, groups, target, shares, weights):
    """Features, targets and weights of all pairs, the later row left; `queries` are lists of rows."""
    rows, targets, counts = [], [], []
    for own, share in zip(queries, shares, strict=True):
        mean = [sum(X[i][a] for i in own) / len(own) for a in range(len(X[0]))] if own else []
        for i, j in itertools.combinations(range(len(own)), 2):
            left, right = own[j], own[i]
            rows.append(pair_row(groups, X[left], X[right], mean))
            targets.append(target(left, right))
            counts.append(share * weights[left] * weights[right] / math.comb(len(own), 2))
    return np.array(rows), np.array(targets), np.array(counts)


def weighted_ridge(rows, targets, counts, alpha, *, intercept, fit_scale):
    """Least squares with alpha/2 |w|^2 on scaled features, as one long system; weights and intercept.

    Columns are divided by their lengths, so that none is lost beside a longer one; constant ones are left
    out.
    """
    share = counts / counts.sum()
    means, level = (share @ rows, share @ targets) if intercept else (0 * rows[0], 0.0)
    spread = np.sqrt(share @ (rows - means) ** 2)
    varies = spread > 1e-9 * abs(means)
    scale = np.where(fit_scale & varies, spread, 1.0)
    roots = np.sqrt(counts)
    table = (rows - means) / scale * varies * roots[:, None]
    system = np.vstack((table, np.sqrt(alpha / 2) * np.eye(len(scale))))
    lengths = np.linalg.norm(system, axis=0)
    lengths[lengths == 0] = 1.0
    solution = np.linalg.lstsq(system / lengths, np.r_[(targets - level) * roots, 0 * scale], rcond=None)[0]
    coef = solution / lengths / scale
    return coef, level - means @ coef


# ---------------------------------------------------------------- rank aggregation


def ballot_preferences(ballot, items, *, unranked_last=False):
    """All (better, worse) of one ballot, which is a list of tied groups, best first."""
    named = [item for group in ballot for item in group]
    groups = [*ballot, [item for item in items if item not in named]] if unranked_last else ballot
    return [
        (better, worse)
        for place, group in enumerate(groups)
        for lower in groups[place + 1 :]
        for better in group
        for worse in lower
    ]


def disagreement(order, preferences):
    """Weight of the preferences (better, worse, weight) that an order overrules."""
    return math.fsum(w for better, worse, w in preferences if order.index(better) > order.index(worse))


def least_disagreement(items, preferences):
    """Kemeny's optimum: over all orders."""
    return min(disagreement(order, preferences) for order in itertools.permutations(items))


def net_preference(one, other, preferences):
    """Weight for one above the other, less the weight against."""
    for_it = math.fsum(w for better, worse, w in preferences if (better, worse) == (one, other))
    return for_it - math.fsum(w for better, worse, w in preferences if (better, worse) == (other, one))


def majority_cycles(items, preferences, length):
    """All sequences of so many items, each preferred to the next, and the last to the first, by majority."""
    for cycle in itertools.permutations(items, length):
        pairs = zip(cycle, cycle[1:] + cycle[:1], strict=True)
        if all(net_preference(one, other, preferences) > 0 for one, other in pairs):
            yield cycle


# ---------------------------------------------------------------- loss matrices and low-rank surrogates


def order_losses(value_of_order, labels, n_items, *, gain=True):
    """Row by row what every order loses: gains are subtracted from 1, or from the largest if that is more."""
    orders = list(itertools.permutations(range(n_items)))
    values = [[value_of_order(label, list(order)) or 0.0 for order in orders] for label in labels]
    top = max(1.0, *(max(row) for row in values))
    return np.array([[top - value if gain else value for value in row] for row in values])


def exact_rank(matrix):
    """Rank of a matrix of whole numbers or fractions, by elimination without rounding."""
    rows = [[Fraction(entry) for entry in row] for row in matrix]
    rank = 0
    for column in range(len(rows[0])):
        pivot = next((r for r in range(rank, len(rows)) if rows[r][column] != 0), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        for r in range(rank + 1, len(rows)):
            factor = rows[r][column] / rows[rank][column]
            rows[r] = [a - factor * b for a, b in zip(rows[r], rows[rank], strict=True)]
        rank += 1
    return rank


def doubly_centred(matrix):
    """Fractions less the mean of each row and each column, plus the mean of all."""
    rows = [[Fraction(entry) for entry in row] for row in matrix]
    n, k = len(rows), len(rows[0])
    row_means = [sum(row) / k for row in rows]
    column_means = [sum(row[t] for row in rows) / n for t in range(k)]
    mean = sum(row_means) / n
    return [[rows[y][t] - row_means[y] - column_means[t] + mean for t in range(k)] for y in range(n)]


def decision_regret(losses, probs, decision):
    """Expected loss of a decision beyond that of the best one, for one distribution of the labels."""
    expected = [
        math.fsum(p * row[t] for p, row in zip(probs, losses, strict=True)) for t in range(len(losses[0]))
    ]
    return expected[decision] - min(expected)


# ---------------------------------------------------------------- decoders of pair matrices


@functools.cache
def order_places(n):
    """The places of the items in every order, one order a row."""
    return np.array(list(itertools.permutations(range(1, n + 1))), dtype=np.float64).reshape(-1, n)


def pair_precisions(u, places):
    """Sum over i >= j of u[i][j] / max(place of i, place of j), for each row of places."""
    n = len(u)
    terms = (u[i][j] / np.maximum(places[:, i], places[:, j]) for i in range(n) for j in range(n) if i >= j)
    return sum(terms, np.zeros(len(places)))


def pair_disagreements(u, places):
    """Sum of u[i][j] over the pairs with i placed after j, for each row of places."""
    n = len(u)
    terms = (u[i][j] * (places[:, i] > places[:, j]) for i in range(n) for j in range(n) if i != j)
    return sum(terms, np.zeros(len(places)))


def forward_order(n, edges):
    """The topological order that takes the smallest free item first; None if the edges form a cycle."""
    order, left = [], set(range(n))
    while left:
        free = [i for i in sorted(left) if not any(tail in left and head == i for tail, head in edges)]
        if not free:
            return None
        order.append(free[0])
        left.remove(free[0])
    return order


def edge_deletion(u):
    """Algorithm 1 of Ramaswamy et al. (2013), edge by edge; equal weights by (i, j)."""
    n = len(u)
    weights = {(i, j): u[i][j] - u[j][i] for i in range(n) for j in range(n) if u[i][j] > u[j][i]}
    edges = sorted(weights, key=lambda edge: (weights[edge], edge))
    while (order := forward_order(n, edges)) is None:
        del edges[0]
    return order


def insertions(order):
    """All orders that differ in the place of one item."""
    for start, end in itertools.product(range(len(order)), repeat=2):
        moved = [item for place, item in enumerate(order) if place != start]
        moved.insert(end, order[start])
        yield moved


# ---------------------------------------------------------------- conditions on matrices of expectations


def shared_relevance_means(labels, probs):
    """u[i][j] = E[y_i y_j / sum(y)] of binary labels; exact where the probabilities are fractions."""
    items = range(len(labels[0]))
    return [
        [mean_over(labels, probs, lambda y: Fraction(y[i] * y[j], sum(y) or 1)) for j in items]  # noqa: B023
        for i in items
    ]


def matrix_reinforces(u):
    """P_reinforce, read off the matrix u."""
    n = len(u)
    return all(
        u[i][i] - u[j][j] >= sum(max(u[j][g] - u[i][g], 0) for g in range(n) if g not in (i, j))
        for i, j in itertools.permutations(range(n), 2)
        if u[i][i] >= u[j][j]
    )


def has_no_cycle(d):
    """No two or more items, each with d > 0 towards the next and the last towards the first."""
    edges = [(i, j, d[i][j]) for i, j in itertools.permutations(range(len(d)), 2) if d[i][j] > 0]
    lengths = range(2, len(d) + 1)
    return not any(cycle for length in lengths for cycle in majority_cycles(range(len(d)), edges, length))


def with_positive_part(d):
    """One graph whose net weights are d: for the conditions that read graphs."""
    return [[max(number, 0) for number in row] for row in d]


# ---------------------------------------------------------------- no standardization exists


def weak_orders(n):
    """All rankings of n items with ties, as scores 0, 1, ... without gaps."""
    vectors = itertools.product(range(n), repeat=n)
    return [scores for scores in vectors if set(scores) == set(range(len(set(scores))))]


def best_orders(orders, worth):
    """The orders of the largest worth."""
    values = [worth(list(order)) for order in orders]
    return {order for order, value in zip(orders, values, strict=True) if value >= max(values) - 1e-9}


def surviving_patterns(value, space, labels, probs, *, greater=True):
    """How E r may rank the items at a distribution, as far as it and a little of one more label tell.

    All orders that the ranking allows are best; and for each label z of the space some way to break ties
    allows only orders that are best for z among those.
    """
    n, way = len(labels[0]), 1 if greater else -1
    orders, patterns = list(itertools.permutations(range(n))), weak_orders(n)
    best = best_orders(orders, lambda order: way * expected_over_labels(value, labels, probs, order))
    allowed = {scores: {tuple(order) for order in compatible_orders(scores)} for scores in patterns}
    after = [best_orders(sorted(best), lambda order: way * (value(z, order) or 0.0)) for z in space]  # noqa: B023

    def breaks_ties(finer, scores):
        pairs = itertools.permutations(range(n), 2)
        return all(finer[i] > finer[j] for i, j in pairs if scores[i] > scores[j])

    def survives(scores):
        finer = [other for other in patterns if breaks_ties(other, scores)]
        return allowed[scores] <= best and all(any(allowed[f] <= left for f in finer) for left in after)

    return [scores for scores in patterns if survives(scores)]


def misleads(value, space, probs, r, share, *, greater=True):
    """Whether sorting by E r may be suboptimal at a distribution, or with a share of one label mixed in.

    `probs` and `r` have one entry per label of the space.
    """
    n, way = len(space[0]), 1 if greater else -1
    orders = list(itertools.permutations(range(n)))
    mixed = [[(1 - share) * p + share * (k == z) for k, p in enumerate(probs)] for z in range(len(space))]
    for weights in [probs, *mixed]:
        best = best_orders(orders, lambda order: way * expected_over_labels(value, space, weights, order))  # noqa: B023
        scores = [sum(p * own[i] for p, own in zip(weights, r, strict=True)) for i in range(n)]
        if not {tuple(order) for order in compatible_orders(scores)} <= best:
            return True
    return False


def tipping_shares(one, other):
    """The p in (0, 1) at which lines p * one + (1 - p) * other of different slope are both the highest."""
    lines = list(zip(one, other, strict=True))
    found = set()
    for (a, b), (c, d) in itertools.combinations(lines, 2):
        if a - b != c - d:
            p = Fraction(d - b, (a - b) - (c - d))
            if 0 < p < 1 and p * a + (1 - p) * b == max(p * x + (1 - p) * y for x, y in lines):
                found.add(p)
    return sorted(found)


# ---------------------------------------------------------------- regret transfer


def linear_regret(targets, discounts, scores):
    """What sorting loses of the sum of targets * discount of the place, in the mean over tied orders."""

    def worth(order):
        return sum(targets[i] * c for i, c in zip(order, discounts, strict=True))

    best = max(map(worth, itertools.permutations(range(len(targets)))))
    return best - expected(worth, scores)


def largest_square(vectors):
    """The largest squared distance between two vectors."""
    table = np.array(list(vectors))
    return max(((table - row) ** 2).sum(axis=1).max() for row in table)


def rows_of(places):
    """What AP pays for y_i y_j / sum(y), i >= j, in an order that gives the items these places."""
    return [1 / max(places[i], places[j]) for i in range(len(places)) for j in range(i + 1)]


def inversions_of(places):
    """What PD pays for a_ij - a_ji, i < j."""
    return [float(places[i] > places[j]) for i in range(len(places)) for j in range(i + 1, len(places))]


def times_log(x, y):
    """x log y, 0 where x is."""
    return np.where(x > 0, x * np.log(np.where(x > 0, y, 1.0)), 0.0)


def least_softmax(targets):
    """The entropy of a row's targets; the infimum of its cross entropy."""
    a = np.asarray(targets, dtype=float)
    return -times_log(a, a / np.maximum(a.sum(axis=-1, keepdims=True), 1e-300)).sum(axis=-1)


def least_logistic(targets):
    """Each pair by itself at its best, and each item against itself."""
    a = np.asarray(targets, dtype=float)
    both = a[..., :, None] + a[..., None, :]
    return -times_log(a[..., :, None], a[..., :, None] / np.maximum(both, 1e-300)).sum(axis=(-1, -2))


def least_exponential(targets):
    """By Cauchy and Schwarz: sum of a_i / p_i over probabilities p."""
    return np.sqrt(np.asarray(targets, dtype=float)).sum(axis=-1) ** 2


def least_flat(targets, name, h=0.5):
    """The least pairwise loss of each row of targets, by damped Newton steps; and the largest slope left."""
    a = np.asarray(targets, dtype=float)
    scores, size = np.zeros_like(a), np.maximum(a.sum(axis=1), 1e-300)
    eye = np.eye(a.shape[1])

    def local(s):
        value, slope, bend = (
            np.asarray(a[:, :, None] * x, dtype=float) for x in phi(name, s[:, :, None] - s[:, None, :], h)
        )
        bend = bend + bend.transpose(0, 2, 1)
        return value.sum(axis=(1, 2)), slope.sum(axis=2) - slope.sum(axis=1), bend

    value, grad, bend = local(scores)
    for _ in range(200):
        if (abs(grad).max(axis=1) <= 1e-12 * size).all():
            break
        hessian = eye * bend.sum(axis=2)[:, :, None] - bend + 1e-9 * size[:, None, None] * eye
        step = -np.linalg.solve(hessian, grad[..., None])[..., 0]
        step /= np.maximum(abs(step).max(axis=1, keepdims=True), 1.0)
        share = np.ones(len(a))
        for _ in range(30):
            moved = local(scores + share[:, None] * step)
            worse = moved[0] > value + 1e-4 * share * (grad * step).sum(axis=1) + 1e-15 * size
            if not worse.any():
                break
            share = np.where(worse, share / 2, share)
        scores = scores + share[:, None] * step
        value, grad, bend = local(scores)
    return value, float((abs(grad).max(axis=1) / size).max())


def is_low_noise(d):
    """Along positive preferences, d_ij >= d_ik + d_kj."""
    triples = itertools.permutations(range(len(d)), 3)
    return all(d[i][j] >= d[i][k] + d[k][j] for i, j, k in triples if d[i][k] > 0 and d[k][j] > 0)


# ---------------------------------------------------------------- conditions on votes


def vote_graph(levels):
    """a[i][j] = 1 where an item has the larger number; nothing where one of the two is None."""
    known = [level is not None for level in levels]
    n = len(levels)
    return [[int(known[i] and known[j] and levels[i] > levels[j]) for j in range(n)] for i in range(n)]


def vote_condition(name, votes, counts, f=net_weights):
    """Whether a condition holds on votes, each the number of annotators who gave it; exact.

    Votes are numbers per item (None: not judged); of "order_preserving" they are places, of "P_reinforce" 0
    and 1.
    """
    total = sum(counts)
    probs = [Fraction(count, total) for count in counts]
    if name == "P_reinforce":
        return matrix_reinforces(shared_relevance_means(votes, probs))
    if name == "order_preserving":
        return preserves_order(votes, probs)
    graphs = [vote_graph(vote) for vote in votes]
    if name == "P_f":
        return follows(f, graphs, probs)
    if name == "low_noise":
        return has_low_noise(graphs, probs)
    d, items = mean_nets(graphs, probs), range(len(votes[0]))
    return has_no_cycle([[d.get((i, j), 0) for j in items] for i in items])


def proportion_interval(successes, total, z, added=0.0):
    """Share plus and minus z standard errors, after adding trials of which half succeed."""
    trials = total + added
    share = (successes + added / 2) / trials
    half = z * math.sqrt(share * (1 - share) / trials)
    return share - half, share + half


def every_sign(lower, upper):
    """All choices of a number from each interval that matter to its sign: its ends, and 0 where it has it."""
    choices = [
        sorted({low, high} | ({0} if low <= 0 <= high else set()))
        for low, high in zip(lower, upper, strict=True)
    ]
    return itertools.product(*choices)


def long_cycle(edges, n):
    """Whether three or more items stand on a cycle."""
    orders = (order for size in range(3, n + 1) for order in itertools.permutations(range(n), size))
    return any(
        all(edges[i][j] for i, j in zip(order, (*order[1:], order[0]), strict=True)) for order in orders
    )


# ---------------------------------------------------------------- bounds on expected losses


def pair_moments(X, weights):
    """Sum of the weights of pairs of different items, and of weight times squared distance."""
    pairs = [(i, j) for i in range(len(X)) for j in range(len(X)) if i != j]
    total = sum(weights[i][j] for i, j in pairs)
    return total, sum(weights[i][j] * ((X[i] - X[j]) ** 2).sum() for i, j in pairs)


def softmax_bound(lists, w, B, delta):
    """Mean softmax loss of lists (X, targets), and the terms of the bound on its expectation, B fixed before.

    Longest gradient over the corners of the simplex; no loss rises by more than B times its steepest slope.
    """
    n, log = len(lists), math.log(2 / delta)
    losses, amounts, highest = [], [], []
    for X, a in lists:
        away = X - X.mean(axis=0)
        scatter, m, mass = (away**2).sum(), len(a), a.sum()
        corners = max(np.linalg.norm(mass * corner - a) for corner in np.eye(m))
        at_zero = np.linalg.norm(mass / m - a)
        bent = mass / 2 * B * math.sqrt(scatter)
        amounts.append(min(corners, at_zero + bent) * math.sqrt(scatter))
        widest = min(2 * np.linalg.norm(away, axis=1).max(), math.sqrt(2 * scatter))
        slope = min(amounts[-1], mass * widest, (at_zero + bent / 2) * math.sqrt(scatter))
        highest.append(mass * math.log(m) + B * slope)
        losses.append(float(softmax_loss(X @ w, a, np.ones(m)).value))
    complexity = 2 * math.sqrt(2) * B / n * math.sqrt(sum(z**2 for z in amounts))
    estimate = 2 * math.sqrt(2) * B / n * max(amounts) * math.sqrt(2 * log)
    return sum(losses) / n, complexity, estimate, max(highest) * math.sqrt(log / (2 * n))


def squared_bound(lists, w, B, delta):
    """The same of the centred squared loss."""
    n, log = len(lists), math.log(3 / delta)
    losses, linear, square, highest = [], [], [], []
    for X, a in lists:
        scatter, off = ((X - X.mean(axis=0)) ** 2).sum(), np.linalg.norm(a - a.mean())
        linear.append(2 * off * math.sqrt(scatter))
        square.append(B * scatter)
        highest.append((off + B * math.sqrt(scatter)) ** 2)
        losses.append(float(squared_loss(X @ w, a, np.ones(len(a))).value))
    complexity = B / n * sum(math.sqrt(sum(z**2 for z in part)) for part in (linear, square))
    estimate = B / n * (max(linear) + max(square)) * math.sqrt(2 * log)
    return sum(losses) / n, complexity, estimate, max(highest) * math.sqrt(log / (2 * n))


# ---------------------------------------------------------------- pairs of items, outcomes, probabilities


def all_item_pairs(labels, groups):
    """Set of (row, row, sign) of every pair of one group, rows ascending."""
    rows = range(len(labels))
    return {
        (i, j, (labels[j] > labels[i]) - (labels[j] < labels[i]))
        for i, j in itertools.combinations(rows, 2)
        if groups[i] == groups[j]
    }


def confusion(outcomes, decisions, tau):
    """Counts by outcome and prediction, each -1, 0, 1."""
    counts = [[0] * 3 for _ in range(3)]
    for y, d in zip(outcomes, decisions, strict=True):
        predicted = 0 if abs(d) <= tau else (1 if d > 0 else -1)
        counts[y + 1][predicted + 1] += 1
    return counts


def outcome_scores(outcomes, probabilities, floor):
    """Means of log-loss, Brier score and ranked probability score."""
    logs, briers, ranked = [], [], []
    for y, p in zip(outcomes, probabilities, strict=True):
        logs.append(-math.log(max(p[y + 1], floor)))
        briers.append(sum((p[k] - (y == k - 1)) ** 2 for k in range(3)))
        ranked.append(((p[0] - (y <= -1)) ** 2 + (p[0] + p[1] - (y <= 0)) ** 2) / 2)
    return tuple(math.fsum(values) / len(outcomes) for values in (logs, briers, ranked))


def calibration_bins(outcomes, probabilities, n_bins):
    """(outcome, mean probability, share, count) of the bins: value number k of n is in bin k n_bins // n."""
    rows = []
    for column, outcome in enumerate((-1, 0, 1)):
        values, bins = [p[column] for p in probabilities], {}
        for value, y in zip(values, outcomes, strict=True):
            number = sum(other < value for other in values) * n_bins // len(values)
            bins.setdefault(number, []).append((value, y == outcome))
        for _, held in sorted(bins.items()):
            means = (math.fsum(part) / len(held) for part in zip(*held, strict=True))
            rows.append((outcome, *means, len(held)))
    return rows


def resampled_area_differences(outcomes, first, second, resamples):
    """Difference of the ROC areas on each list of rows; those without a tie or a difference are left out."""
    found = []
    for rows in resamples:
        y, a, b = ([values[row] for row in rows] for values in (outcomes, first, second))
        if 0 < sum(one == 0 for one in y) < len(y):
            found.append(comparison_area(y, a) - comparison_area(y, b))
    return found


def sushi_pairs(scores):
    """The two lowest-scored items that are left, again and again: (item, item, sign); -1 is unscored."""
    left, pairs = [item for item, score in enumerate(scores) if score >= 0], []
    while len(left) >= 2:
        first, second = sorted(left, key=lambda item: scores[item])[:2]  # stable: the lower number first
        pairs.append((first, second, (scores[second] > scores[first]) - (scores[second] < scores[first])))
        left = [item for item in left if item not in (first, second)]
    return pairs


# ---------------------------------------------------------------- ratings that follow time


def elo_ratings(games, k=32.0, initial=1500.0, scale=400.0, advantage=0.0):
    """Ratings after games (left, right, outcome), and the left's share foretold before each; k None: FIDE."""
    rating, best, count, shares = {}, {}, {}, []
    for left, right, outcome in games:
        a, b = (rating.get(player, initial) for player in (left, right))
        share = 1 / (1 + 10 ** ((b - a - advantage) / scale))
        shares.append(share)
        for player, old, points, expected in (
            (left, a, (1 - outcome) / 2, share),
            (right, b, (1 + outcome) / 2, 1 - share),
        ):
            games_so_far, highest = count.get(player, 0), best.get(player, initial)
            fide = 10 if highest >= 2400 else 30 if games_so_far < 30 else 15
            rating[player] = old + (fide if k is None else k) * (points - expected)
            count[player], best[player] = games_so_far + 1, max(highest, rating[player])
    return rating, shares


def glicko_ratings(periods, initial=1500.0, deviation=350.0, c=15.0, floor=0.0):
    """Ratings and deviations after periods {number: games}, by Glickman's formulas; numbers count time."""
    q, rating, spread, last = math.log(10) / 400, {}, {}, {}
    for number in sorted(periods):
        games = periods[number]
        players = {player for left, right, _ in games for player in (left, right)}
        before = {}
        for player in players:
            wide = spread.get(player, deviation)
            elapsed = number - last.get(player, number)
            wide = min(math.hypot(wide, c * math.sqrt(elapsed)), deviation)
            before[player] = (rating.get(player, initial), wide)
        for player in players:
            r, rd = before[player]
            inverse_d2, total = 0.0, 0.0
            for left, right, outcome in games:
                for own, other, sign in ((left, right, -1), (right, left, 1)):
                    points = (1 + sign * outcome) / 2
                    if own == player:
                        r_j, rd_j = before[other]
                        g = 1 / math.sqrt(1 + 3 * q**2 * rd_j**2 / math.pi**2)
                        e = 1 / (1 + 10 ** (-g * (r - r_j) / 400))
                        inverse_d2 += q**2 * g**2 * e * (1 - e)
                        total += g * (points - e)
            rating[player] = r + q / (1 / rd**2 + inverse_d2) * total
            spread[player] = max(math.sqrt(1 / (1 / rd**2 + inverse_d2)), floor)
            last[player] = number
    return rating, spread


def glicko_by_game(games, **options):
    """Every game a period of its own for its two players."""
    initial, deviation, c = options["initial"], options["deviation"], options["c"]
    rating, spread, seen = {}, {}, set()
    for left, right, outcome in games:
        q, before = math.log(10) / 400, {}
        for player in (left, right):
            wide = spread.get(player, deviation)
            wide = min(math.hypot(wide, c), deviation) if player in seen else wide
            before[player] = (rating.get(player, initial), wide)
        for own, other, points in ((left, right, (1 - outcome) / 2), (right, left, (1 + outcome) / 2)):
            (r, rd), (r_j, rd_j) = before[own], before[other]
            g = 1 / math.sqrt(1 + 3 * q**2 * rd_j**2 / math.pi**2)
            e = 1 / (1 + 10 ** (-g * (r - r_j) / 400))
            variance = 1 / (1 / rd**2 + q**2 * g**2 * e * (1 - e))
            rating[own], spread[own] = r + q * variance * g * (points - e), math.sqrt(variance)
        seen |= {left, right}
    return rating, spread


def davidson_likelihood(nu, shares, outcomes):
    """Log-likelihood of outcomes, whose probabilities are in proportion to s, nu sqrt(s (1 - s)), 1 - s."""
    total = 0.0
    for s, outcome in zip(shares, outcomes, strict=True):
        tie = nu * math.sqrt(s * (1 - s))
        total += math.log({-1: s, 0: tie, 1: 1 - s}[outcome] / (1 + tie))
    return total


def player_statistics(games, initial=1200.0, elite=2400.0):
    """The 16 statistics of both sides before each game (left, right, outcome, time).

    For each game everything is computed anew from the list of games of earlier times.
    """
    rows = []
    for left, right, _, now in games:
        earlier = sorted((game for game in games if game[3] < now), key=lambda game: game[3])
        bare = [game[:3] for game in earlier]
        options = {"initial": initial, "deviation": 350.0, "c": 15.0}
        elo, glicko = elo_ratings(bare, k=None, initial=initial)[0], glicko_by_game(bare, **options)[0]
        log = []  # (player, opponent, points, opponent's rating less own, time)
        highest = {}
        for number, (a, b, outcome, when) in enumerate(earlier):
            known = elo_ratings(bare[:number], k=None, initial=initial)[0]
            gap = known.get(b, initial) - known.get(a, initial)
            log += [(a, b, (1 - outcome) / 2, gap, when), (b, a, (1 + outcome) / 2, -gap, when)]
            after = elo_ratings(bare[: number + 1], k=None, initial=initial)[0]
            for player in (a, b):
                highest[player] = max(highest.get(player, initial), after[player])
        sides = []
        for own, other, first in ((left, right, 1.0), (right, left, 0.0)):
            mine = [entry for entry in log if entry[0] == own]
            points = [entry[2] for entry in mine]
            higher, lower = [e[2] for e in mine if e[3] > 0], [e[2] for e in mine if e[3] < 0]
            met = [entry[2] for entry in mine if entry[1] == other]
            upsets, slips = higher.count(1.0), lower.count(0.0)
            sides.append(
                [
                    elo.get(own, initial),
                    glicko.get(own, initial),
                    first,
                    len(mine),
                    points.count(1.0),
                    points.count(0.5),
                    points.count(0.0),
                    (points.count(1.0) + points.count(0.5)) / len(mine) if mine else 0.5,
                    upsets,
                    upsets / len(higher) if higher else 0.5,
                    slips,
                    slips / len(lower) if lower else 0.5,
                    sum(entry[3] for entry in mine) / len(mine) if mine else 0.0,
                    now - mine[-1][4] if mine else 0.0,
                    float(highest.get(own, initial) >= elite),
                    sum(met) / len(met) if met else 0.5,
                ]
            )
        rows.append(sides)
    return rows


# ---------------------------------------------------------------- models of strengths, one vote at a time


def vote_probability(model, outcome, own, other, tie):
    """Probability of -1 (the first wins), 0 or 1, from strengths; `tie` is nu or theta."""
    if model == "davidson":
        total = own + other + tie * math.sqrt(own * other)
        return {-1: own, 0: tie * math.sqrt(own * other), 1: other}[outcome] / total
    win, loss = own / (own + tie * other), other / (other + tie * own)
    return {-1: win, 0: 1.0 - win - loss, 1: loss}[outcome]


def vote_log_likelihood(model, ratings, votes, *, tie, advantage=0.0, half_ties=False):
    """Sum over votes (left, right, outcome, weight), items by number; a half tie is half of each win."""
    total = 0.0
    for left, right, outcome, weight in votes:
        own, other = math.exp(ratings[left] + advantage), math.exp(ratings[right])
        shares = [(-1, 0.5), (1, 0.5)] if half_ties and outcome == 0 else [(outcome, 1.0)]
        for result, share in shares:
            total += weight * share * math.log(vote_probability(model, result, own, other, tie))
    return total


def most_likely_strengths(model, n_items, votes, *, alpha=0.0, advantage=False, ties="own"):
    """Ratings of mean 0, advantage and tie parameter of the highest penalised likelihood, by scipy's search.

    `ties` is "own" (a parameter), "half" or "drop".
    """
    votes = [vote for vote in votes if ties != "drop" or vote[2] != 0]
    fixed = 0.0 if model == "davidson" else 1.0

    def read(x):
        tie = fixed
        if ties == "own":
            tie = math.exp(x[-1]) if model == "davidson" else 1.0 + math.exp(x[-1])
        return x[:n_items], (x[n_items] if advantage else 0.0), tie

    def loss(x):
        ratings, lead, tie = read(x)
        value = vote_log_likelihood(model, ratings, votes, tie=tie, advantage=lead, half_ties=ties == "half")
        return -value + 0.5 * alpha * (np.sum(ratings**2) + lead**2) + 0.5 * np.mean(ratings) ** 2

    start = np.zeros(n_items + advantage + (ties == "own"))
    found = minimize(loss, start, method="BFGS", options={"gtol": 1e-7, "maxiter": 500})
    ratings, lead, tie = read(found.x)
    return ratings - np.mean(ratings), lead, tie


# ---------------------------------------------------------------- outcome curves, and learning from a stream


def cumulative_logit(level, cut, digits=30):
    """P(y = -1, 0, +1) by definition."""
    with decimal.localcontext(prec=digits, Emin=-(10**9), Emax=10**9):
        level, cut = decimal.Decimal(level), decimal.Decimal(cut)
        lost, won = (1 / (1 + (cut - side * level).exp()) for side in (-1, 1))
        return [float(lost), float(1 - lost - won), float(won)]


def curve_loss(slope, cut, decision, y, weight, prior=1.0):
    """Minus log-likelihood of a curve, with half a pair won and half a pair lost at the median decision."""
    sizes = sorted((abs(d), w) for d, w in zip(decision, weight, strict=True) if d != 0 and w > 0)
    half, total, typical = sum(w for _, w in sizes) / 2, 0.0, 0.0
    for size, w in sizes:
        total, typical = total + w, size
        if total >= half:
            break
    rows = [*zip(decision, y, weight, strict=True), (typical, 1, prior / 2), (typical, -1, prior / 2)]
    loss = 0.0
    for d, outcome, w in rows:
        if w > 0:
            probability = cumulative_logit(slope * d, cut)[outcome + 1]
            loss -= w * math.log(probability) if probability > 0 else -math.inf
    return loss


def flipped_logistic(joint, d, tie, C, weight=None):
    """1/2 u.u + C * logistic losses on flipped differences; its gradient. The bias stands last."""
    u, b, c = joint[:-1], joint[-1], C * (np.ones(len(d)) if weight is None else weight)
    g = d @ u
    value, by_g, by_b = 0.5 * u @ u, np.zeros(len(d)), np.zeros(len(d))
    for rows, sign_b, sign_g in ((~tie, -1, -1), (tie, 1, 1), (tie, 1, -1)):
        s = sign_b * b + sign_g * g
        value += (c * np.logaddexp(0, s))[rows].sum()
        slope = np.where(rows, c * np.exp(-np.logaddexp(0, -s)), 0)
        by_g, by_b = by_g + sign_g * slope, by_b + sign_b * slope
    return value, np.r_[u + d.T @ by_g, by_b.sum()]


def online_steps(pairs, y, C, *, scaled=True):
    """Averaged weights (own units) and bias after one logistic step per pair."""
    n, _, p = pairs.shape
    w, mean_w, fisher, widest = np.zeros(p + 1), np.zeros(p + 1), np.zeros(p + 1), np.zeros(p)
    for t in range(1, n + 1):
        items = pairs[:t].reshape(-1, p)
        variance = items.var(axis=0)
        varies = np.sqrt(variance) > 1e-10 * np.abs(items.mean(axis=0))
        for j in np.flatnonzero(varies & (variance > widest)):
            shrink = math.sqrt(widest[j] / variance[j])
            w[j], mean_w[j], widest[j] = w[j] * shrink, mean_w[j] * shrink, variance[j]
        outcome = y[t - 1]
        row = (pairs[t - 1, 1] - pairs[t - 1, 0]) * (outcome or 1)
        scale = np.where(varies, np.sqrt(variance) if scaled else 1.0, np.inf)
        u, z = np.r_[w[:-1] * np.where(varies, scale, 0), w[-1]], row / scale
        g, b = w[:-1] @ row, w[-1]
        if outcome:
            slope = bias_slope = -1 / (1 + math.exp(b + g))
        else:
            up, down = 1 / (1 + math.exp(-(b - g))), 1 / (1 + math.exp(-(b + g)))
            slope, bias_slope = down - up, down + up
        grad = np.r_[slope * z, bias_slope]
        fisher += grad**2
        rate = np.divide(3 * t ** (1 / 3), fisher, out=np.zeros(p + 1), where=fisher > 0)
        reach = (rate * np.r_[z, 1.0] ** 2).sum() * (0.5 if outcome == 0 else 0.25)
        rate /= max(reach, 1.0)
        u = (u - rate * grad) / (1 + rate * np.r_[np.full(p, 1 / (C * t)), 0.0])
        w = np.where(np.r_[varies, True], u / np.r_[np.where(varies, scale, 1), 1.0], w)
        mean_w += 3 / (t + 2) * (w - mean_w)
    return mean_w


# ---------------------------------------------------------------- thresholds of ranking machines


def threshold_errors(decision, y, threshold):
    """Pairs predicted wrong: a tie up to the threshold, else the sign."""
    wrong = 0
    for d, outcome in zip(decision, y, strict=True):
        predicted = 0 if abs(d) <= threshold else math.copysign(1, d)
        wrong += predicted != outcome
    return wrong


def published_threshold(decision, y):
    """The published choice among the sizes and 100 values: the middle of the best, or the one off the end."""
    sizes = [abs(d) for d in decision]
    if max(sizes) == 0:
        return 0.0
    low, high = min(s for s in sizes if s > 0), max(sizes)
    inside = [low * (high / low) ** (step / 99) for step in range(1, 99)]
    tried = sorted([*sizes, low, *inside, high])
    errors = [threshold_errors(decision, y, t) for t in tried]
    best = [t for t, e in zip(tried, errors, strict=True) if e == min(errors)]
    if errors[0] == min(errors):
        return best[-1]
    if errors[-1] == min(errors):
        return best[0]
    return best[len(best) // 2]


def machine_rows(pairs, y):
    """The flipped data of equation 8: rows (left, right, label)."""
    rows = []
    for (left, right), outcome in zip(pairs, y, strict=True):
        if outcome == 0:
            rows += [(left, right, -1), (right, left, -1)]
        else:
            rows.append((left, right, 1) if outcome > 0 else (right, left, 1))
    return rows


def pair_kernel(a, b, gamma):
    """Inner product of the differences of two rows, for exp(-gamma d^2)."""
    k = lambda x, z: math.exp(-gamma * sum((p - q) ** 2 for p, q in zip(x, z, strict=True)))  # noqa: E731
    return k(a[1], b[1]) - k(a[1], b[0]) - k(a[0], b[1]) + k(a[0], b[0])


# ---------------------------------------------------------------- the comparison family (equation 15)


def hinge_at(margin, loss):
    """Loss of a margin."""
    if loss == "logistic":
        return np.logaddexp(0.0, -margin)
    slack = np.maximum(1.0 - margin, 0.0)
    return slack**2 if loss == "squared_hinge" else slack


def comparison_objective(u, bias, pairs, y, C, method, loss="hinge"):
    """Table 2 of the paper: which rows each method trains on, and whether there is a bias."""
    total = 0.5 * float(u @ u)
    for (left, right), outcome in zip(pairs, y, strict=True):
        g = float(u @ (right - left))
        if outcome:
            weight = {"compare": 1, "rank": 1, "rank2": 2}[method]
            b = bias if method == "compare" else 0.0
            total += C * weight * float(hinge_at(b + outcome * g, loss))
        elif method == "compare":
            total += C * float(hinge_at(-(bias + g), loss) + hinge_at(-(bias - g), loss))
        elif method == "rank2":
            total += C * float(hinge_at(g, loss) + hinge_at(-g, loss))
    return total


# ---------------------------------------------------------------- margins of separable pairs, by enumeration


def margin_rows(differences, y):
    """Rows and limits of row @ (w, mu) >= limit: the linear program of the widest margin."""
    rows, limits = [], []
    for d, label in zip(np.asarray(differences, dtype=float), y, strict=True):
        if label:
            rows.append([*(label * d), -1.0])
            limits.append(1.0)
        else:
            rows += [[*d, -1.0], [*-d, -1.0]]
            limits += [-1.0, -1.0]
    return np.array(rows), np.array(limits)


def tight_sets(n_rows, most):
    """All sets of up to so many rows."""
    for size in range(1, most + 1):
        yield from (list(some) for some in itertools.combinations(range(n_rows), size))


def widest_margin(differences, y):
    """Largest mu over every point at which some rows are tight and none is broken; -1 at w = 0 will do."""
    rows, limits = margin_rows(differences, y)
    best = -1.0
    for some in tight_sets(len(rows), rows.shape[1]):
        point = np.linalg.lstsq(rows[some], limits[some], rcond=None)[0]
        if (rows @ point >= limits - 1e-9).all():
            best = max(best, point[-1])
    return best


def shortest_separator(differences, y):
    """Shortest u and its bias, over all sets of tight rows of bias + u @ d >= 1, <= -1 on ties both ways."""
    rows, _ = margin_rows(differences, y)
    signs = np.array([sign for label in y for sign in ([1.0] if label else [-1.0, -1.0])])
    rows = np.column_stack((rows[:, :-1], signs))  # the rows of ties stand both ways round already
    p, best = rows.shape[1] - 1, None
    for some in tight_sets(len(rows), p + 1):
        k = len(some)
        system = np.zeros((p + 1 + k, p + 1 + k))
        system[:p, :p] = np.eye(p)
        system[: p + 1, p + 1 :], system[p + 1 :, : p + 1] = -rows[some].T, rows[some]
        point = np.linalg.lstsq(system, np.r_[np.zeros(p + 1), np.ones(k)], rcond=None)[0][: p + 1]
        kept = (rows @ point >= 1 - 1e-9).all()
        if kept and (best is None or np.linalg.norm(point[:p]) < np.linalg.norm(best[:p])):
            best = point
    return best[:p], best[p]


def soft_margin(basis, y, costs, nu):
    """Least value of the linear program with slack, its absolute values written as variables of their own."""
    basis, (n, K) = np.asarray(basis, dtype=float), np.shape(basis)
    rows, limits = [], []  # of the variables a, sizes, mu, slack

    def at_most(limit, **parts):
        row = {"a": np.zeros(K), "sizes": np.zeros(K), "mu": 0.0, "slack": np.zeros(n)} | parts
        rows.append(np.r_[row["a"], row["sizes"], row["mu"], row["slack"]])
        limits.append(limit)

    for k in range(K):
        at_most(0.0, a=np.eye(K)[k], sizes=-np.eye(K)[k])
        at_most(0.0, a=-np.eye(K)[k], sizes=-np.eye(K)[k])
    for i, label in enumerate(y):
        for sign in (label,) if label else (-1, 1):
            at_most(-1.0 if label else 1.0, a=-sign * basis[i], mu=1.0, slack=-np.eye(n)[i])
    objective = np.r_[np.zeros(K), np.ones(K), -nu, costs]
    bounds = [(None, None)] * K + [(0, None)] * K + [(0, 1)] + [(0, None)] * n
    return linprog(objective, np.array(rows), limits, bounds=bounds).fun


# ---------------------------------------------------------------- networks


def signed_log(value):
    """sign(x) log(1 + abs(x))."""
    return math.copysign(math.log(1.0 + abs(value)), value)


def share_below(value, column):
    """Share of a column that lies below: the middle of equal ones, straight lines between different ones."""
    rows = sorted(column)
    if value <= rows[0]:
        return 0.0
    if value >= rows[-1]:
        return 1.0
    equal = [place for place, row in enumerate(rows) if row == value]
    if equal:
        return sum(equal) / len(equal) / (len(rows) - 1)
    left = max(place for place, row in enumerate(rows) if row < value)
    return (left + (value - rows[left]) / (rows[left + 1] - rows[left])) / (len(rows) - 1)


def network(features, layers):
    """Score of one item: layers (weights, biases), rectifiers between them."""
    outputs = list(features)
    for depth, (weights, biases) in enumerate(layers):
        inputs = outputs if depth == 0 else [max(x, 0.0) for x in outputs]
        outputs = [
            sum(w * x for w, x in zip(row, inputs, strict=True)) + b
            for row, b in zip(weights, biases, strict=True)
        ]
    return outputs[0]


# ---------------------------------------------------------------- comparisons of rankers on the same queries


def paired_t(differences):
    """Size of the paired t of known differences; infinite where they are equal and not 0."""
    known = [Fraction(one) for one in differences if one is not None]
    if len(known) < 2 or not any(known):
        return 0.0
    mean = sum(known) / len(known)
    variance = sum((one - mean) ** 2 for one in known) / (len(known) - 1)
    return math.sqrt(mean**2 / (variance / len(known))) if variance else math.inf


def largest_t(columns):
    """Step-down p-values of the largest t, over every way to flip whole rows; None where undefined."""
    observed = [paired_t(column) for column in columns]
    order = sorted(range(len(columns)), key=lambda i: -observed[i])
    flipped = [
        [
            paired_t([None if one is None else sign * one for sign, one in zip(signs, column, strict=True)])
            for column in columns
        ]
        for signs in itertools.product((-1, 1), repeat=len(columns[0]))
    ]
    adjusted, before = [1.0] * len(columns), 0.0
    for place, i in enumerate(order):
        rest = order[place:]
        hits = sum(max(one[j] for j in rest) >= observed[i] * (1 - 1e-9) for one in flipped)
        before = max(before, hits / len(flipped))
        adjusted[i] = before if observed[i] else 1.0
    return adjusted


def symmetric_percentile_t(values, resamples, confidence):
    """Ends of the interval of a mean, from resamples that are given as lists of places."""
    n, mean = len(values), math.fsum(values) / len(values)
    spread = math.sqrt(math.fsum((one - mean) ** 2 for one in values) / (n - 1))
    sizes = []
    for places in resamples:
        drawn = [values[i] for i in places]
        centre = math.fsum(drawn) / n
        error = math.sqrt(math.fsum((one - centre) ** 2 for one in drawn) / (n - 1) / n)
        flat = max(drawn) == min(drawn)
        sizes.append((math.inf if centre != mean else 0.0) if flat else abs(centre - mean) / error)
    size = sorted(sizes)[math.ceil(confidence * (len(sizes) + 1)) - 1]
    return mean - size * spread / math.sqrt(n), mean + size * spread / math.sqrt(n)
