"""Definitions, typed naively: every fast kernel of the package is compared with one of these.

Nothing here imports the package.
"""

import itertools
import math
import re

import numpy as np
from scipy.optimize import linprog

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
