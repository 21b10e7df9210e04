"""Definitions, typed naively: every fast kernel of the package is compared with one of these.

Nothing here imports the package.
"""

import itertools
import math
import re

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
