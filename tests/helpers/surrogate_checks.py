"""Every surrogate with its definition, and the checks that are crossed with all of them."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import concordant
from concordant.data.queries import Queries
from concordant.surrogates import (
    Duchi,
    ListwiseHinge,
    Pairwise,
    PlackettLuce,
    PositionHinge,
    Preorder,
    Softmax,
    Squared,
)
from tests import oracles

MARGINS = (
    "squared_hinge",
    "huber_hinge",
    "huber_hinge(0.25)",
    "huber_hinge(3.0)",
    "hinge",
    "logistic",
    "exponential",
)
WEIGHTINGS = ("unit", "pairs", "gain")
TINY = 1e-300  # below, doubles lose digits


class Case(NamedTuple):
    """A surrogate, and the oracle that takes scores, targets and weights of one query."""

    surrogate: Any
    oracle: Callable


class Query(NamedTuple):
    """Rows of one query."""

    scores: np.ndarray
    targets: np.ndarray
    weights: np.ndarray


def parsed(margin):
    """What the oracles call a margin: its family, and a width where it has one."""
    family, width = re.fullmatch(r"(\w+?)(?:\((.+)\))?", margin).groups()
    return {"name": family, "h": float(width or 0.5)}


def pairwise_case(margin, *, normalize=False):
    surrogate = Pairwise(margin, normalize)
    return Case(surrogate, partial(oracles.pairwise_loss, **parsed(margin), normalize=normalize))


def preorder_case(weighting, margin):
    surrogate = Preorder(weighting, margin)
    return Case(surrogate, partial(oracles.preorder_loss, weighting=weighting, **parsed(margin)))


PAIRWISE = {f"pairwise[{m}]": pairwise_case(m) for m in MARGINS} | {
    f"pairwise[{m},normalize]": pairwise_case(m, normalize=True) for m in MARGINS
}
PREORDER = {f"preorder[{w},{m}]": preorder_case(w, m) for w in WEIGHTINGS for m in MARGINS}
REST = {
    "softmax": Case(Softmax(), oracles.softmax_loss),
    "plackett_luce": Case(PlackettLuce(), oracles.plackett_luce_loss),
    "squared": Case(Squared(), oracles.squared_loss),
    "squared[plain]": Case(Squared(centred=False), partial(oracles.squared_loss, centred=False)),
    "duchi[square]": Case(Duchi(), partial(oracles.duchi_loss, name="square")),
    "duchi[cosh]": Case(Duchi("cosh", 0.7), partial(oracles.duchi_loss, name="cosh", nu=0.7)),
    "duchi[quartic]": Case(Duchi("quartic", 3.0), partial(oracles.duchi_loss, name="quartic", nu=3.0)),
}
CASES = PAIRWISE | PREORDER | REST

# Metrics whose worst order can be found, and how the oracles call them.
LIST_METRICS = {
    "ap": oracles.ListMetric("ap"),
    "ap[relevant_from=2]": oracles.ListMetric("ap", relevant_from=2),
    "ndcg": oracles.ListMetric("ndcg"),
    "ndcg@3": oracles.ListMetric("ndcg", k=3),
    "ndcg@2[gain=linear,discount=mslr]": oracles.ListMetric("ndcg", 2, float, "mslr"),
    "dcg@2": oracles.ListMetric("dcg", k=2),
    "eru(v=1,w=2)": oracles.ListMetric("eru", v=1, w=2),
    "p@1": oracles.ListMetric("p", k=1),
    "p@3[precision_denominator=min]": oracles.ListMetric("p", k=3, denominator="min"),
    "auc": oracles.ListMetric("auc"),
    "pd": oracles.ListMetric("pd"),
    "wpd": oracles.ListMetric("wpd"),
}
TWO_LABELS = [spec for spec in LIST_METRICS if LIST_METRICS[spec].name in ("ap", "p", "auc", "pd")]


def listwise_case(spec, mode="max", temperature=1.0):
    surrogate = ListwiseHinge(concordant.metric(spec), mode, temperature)
    options = {"metric": LIST_METRICS[spec], "mode": mode, "temperature": temperature}
    return Case(surrogate, partial(oracles.listwise_hinge, **options))


POSITION = {
    f"position_hinge[{how}]": Case(PositionHinge(how), partial(oracles.position_hinge, reduction=how))
    for how in ("sum", "pairs", "all_pairs")
}
LISTWISE = (
    {f"{mode}[{m}]": listwise_case(m, mode) for mode in ("max", "sum", "softmax") for m in LIST_METRICS}
    | {f"sum_interleavings[{m}]": listwise_case(m, "sum_interleavings") for m in TWO_LABELS}
    | {f"softmax,T=0.05[{m}]": listwise_case(m, "softmax", 0.05) for m in ("ap", "ndcg@3", "wpd")}
)
MAX_MARGIN = POSITION | LISTWISE
SWEPT = [name for name in PAIRWISE | PREORDER if "logistic" not in name]  # long lists are sorted
SHIFTABLE = [name for name in CASES if name != "squared[plain]" and not name.startswith("duchi")]
SMOOTH = [name for name in CASES if "[hinge" not in name and ",hinge" not in name]


def join_batch(batch):
    """Scores, targets and, as the surrogates take them, the queries (empty ones too) and weights."""
    columns = [np.concatenate(column) for column in zip(*batch, strict=True)]
    queries = Queries.from_sizes(np.array([len(query.scores) for query in batch]))
    return columns[0], columns[1], {"qid": queries, "weights": columns[2]}


def drawn(rng, reads, sizes, spread=1.5):
    """Random queries of these sizes: no ties in scores, some in targets, some rows of weight 0."""
    return [
        Query(spread * rng.normal(size=n), targets_for(rng, reads, n), rng.choice([0.0, 0.5, 1.0, 2.0], n))
        for n in sizes
    ]


def targets_for(rng, reads, n):
    """Labels of the kind a surrogate reads; `signed` ones too."""
    if reads == "positions":
        return rng.permutation(n) + 1.0
    grades = rng.integers(0, 4, n) * rng.choice([1.0, 0.75], n)
    return grades - 1.0 if reads == "signed" else grades


def reads(surrogate):
    return "signed" if surrogate.signed else surrogate.reads


def close(got, want, size, rel):
    """Equal up to rounding relative to the size; what overflows a double is infinite."""
    with np.errstate(over="ignore", invalid="ignore"):
        want, size = np.float64(want), np.maximum(np.float64(size), TINY)
        near = np.isfinite(size) & (np.abs(got - want) <= rel * size)
        return bool(np.all(near | (got == want)))


def oracle_results(case, batch):
    return [case.oracle(*query) for query in batch]


def check_value(case, batch, rel=1e-9, wants=None):
    """One value per query: the definition's."""
    scores, targets, rows = join_batch(batch)
    values, _ = case.surrogate(scores, targets, **rows)
    assert values.shape == (len(batch),)
    for value, want, query in zip(values, wants or oracle_results(case, batch), batch, strict=True):
        assert close(value, want.value, want.size, rel), (value, want.value, query)


def check_gradient(case, batch, rel=1e-9, wants=None):
    """One entry per row: the definition's derivative."""
    scores, targets, rows = join_batch(batch)
    _, grad = case.surrogate(scores, targets, **rows)
    pieces = np.split(grad, rows["qid"].offsets[1:-1])
    for got, want, query in zip(pieces, wants or oracle_results(case, batch), batch, strict=True):
        assert close(got, nearest(got, want), want.sizes, rel), (got, want.grad, query)


def nearest(got, want):
    """The definition's derivative; at a corner, the one between the slopes that is closest to this one."""
    room = getattr(want, "room", None)
    return want.grad if room is None else np.clip(got, want.grad - room, want.grad + room)


def check_product(case, batch, rel=1e-9, wants=None):
    """The Hessian that the definition has, times vectors: of noise, of a level, of one item.

    Relative to the largest entry of the query, as solvers take it: what goes on from one row to the next,
    in linear time, carries the rounding of the largest.
    """
    scores, targets, rows = join_batch(batch)
    rng, cuts, wants = (
        np.random.default_rng(0),
        rows["qid"].offsets[1:-1],
        wants or oracle_results(case, batch),
    )
    for vector in (rng.normal(size=len(scores)), 3.0 + np.zeros(len(scores)), np.arange(len(scores)) == 0.0):
        product = case.surrogate.hessian_product(scores, targets, vector, **rows)
        pieces = zip(np.split(product, cuts), np.split(vector, cuts), wants, batch, strict=True)
        for got, direction, want, query in pieces:
            expected, size = want.hessian @ direction, (want.bulk @ abs(direction)).max(initial=0)
            assert close(got, expected, size, rel), (got, expected, query)


def check_all(case, batch, rel=1e-9):
    """All three, with the definition worked out once."""
    wants = oracle_results(case, batch)
    for check in (check_value, check_gradient, check_product):
        check(case, batch, rel, wants)


def check_differences(case, batch, step=1e-6):
    """Gradient and Hessian product are derivatives: of the summed values, and of the gradient."""
    scores, targets, rows = join_batch(batch)
    _, grad = case.surrogate(scores, targets, **rows)
    for i, expected in enumerate(grad):
        bump = step * (np.arange(len(scores)) == i)
        up, down = (case.surrogate(s, targets, **rows) for s in (scores + bump, scores - bump))
        slope = (up[0] - down[0]).sum() / (2 * step)
        assert abs(slope - expected) < 1e-6 * (1 + abs(up[0]).sum()), (i, slope, expected)
        product = case.surrogate.hessian_product(scores, targets, bump / step, **rows)
        bend = (up[1] - down[1]) / (2 * step)
        near = abs(bend - product) < 1e-6 * (1 + abs(bend).max() + abs(grad).max())
        assert near.all(), (i, bend, product)


def check_symmetric(case, batch, rel=1e-9):
    """u H v = v H u, and v H v >= 0."""
    scores, targets, rows = join_batch(batch)
    rng = np.random.default_rng(1)
    for _ in range(4):
        u, v = rng.normal(size=(2, len(scores)))
        hu, hv = (case.surrogate.hessian_product(scores, targets, x, **rows) for x in (u, v))
        size = abs(u) @ abs(hv) + abs(v) @ abs(hu)
        assert abs(u @ hv - v @ hu) <= rel * size, (u @ hv, v @ hu)
        assert v @ hv >= -rel * size, v @ hv


def check_convex(case, batch):
    """On random segments no value lies above the chord, and none below the tangent."""
    scores, targets, rows = join_batch(batch)
    rng = np.random.default_rng(2)
    for scale in (0.1, 1.0, 10.0):
        a, b = scores + scale * rng.normal(size=(2, len(scores)))
        (left, grad), (right, _) = case.surrogate(a, targets, **rows), case.surrogate(b, targets, **rows)
        for share in rng.random(3):
            inside, _ = case.surrogate(a + share * (b - a), targets, **rows)
            chord = left + share * (right - left)
            slack = 1e-9 * (abs(left) + abs(right))
            assert np.all(inside <= chord + slack), (inside, chord)
        rise = grad @ (b - a)
        assert left.sum() + rise <= right.sum() + 1e-9 * (abs(rise) + slack.sum() * 1e9), (left, rise, right)


def check_shift_invariance(case, batch, rel=1e-9):
    """A constant added to a query's scores changes nothing; so the gradient sums to 0."""
    scores, targets, rows = join_batch(batch)
    shifts = rows["qid"].codes * 8.0 - 1024.0  # sums without rounding on scores of few bits
    scores = np.round(scores * 1024) / 1024
    values, grad = case.surrogate(scores, targets, **rows)
    moved, moved_grad = case.surrogate(scores + shifts, targets, **rows)
    assert np.all(abs(moved - values) <= rel * abs(values)), (values, moved)
    sizes = np.concatenate([case.oracle(*query).sizes for query in batch]).astype(float)
    assert np.all(abs(moved_grad - grad) <= rel * sizes), (grad, moved_grad)
    for piece in np.split(np.stack((grad, sizes)), rows["qid"].offsets[1:-1], axis=1):
        assert abs(piece[0].sum()) <= rel * piece[1].sum(), piece[0]


def check_subgradient(case, batch, rel=1e-9, scales=(0.01, 0.3, 1.0, 30.0), seed=3):
    """No value elsewhere, query by query, lies below the tangent here, be it a corner."""
    scores, targets, rows = join_batch(batch)
    values, grad = case.surrogate(scores, targets, **rows)
    rng, offsets = np.random.default_rng(seed), rows["qid"].offsets
    spread = max(np.ptp(scores) if len(scores) else 0.0, 1.0)
    steps = [scale * direction for scale in scales for direction in rng.normal(size=(2, len(scores)))]
    steps += [sign * spread * step for step in steps[:4] for sign in (1, -1)]
    steps += [by * (np.arange(len(scores)) == i) for i in range(min(len(scores), 8)) for by in (0.5, -2.0)]
    for other in [*(scores + step for step in steps), -scores, np.round(scores)]:
        there, _ = case.surrogate(other, targets, **rows)
        for q in range(len(batch)):
            query_rows = slice(offsets[q], offsets[q + 1])
            step = other[query_rows] - scores[query_rows]
            rise, size = grad[query_rows] @ step, abs(grad[query_rows]) @ abs(step)
            # The terms of a value may cancel.
            terms = 1 + size + (np.ptp(scores[query_rows]) if len(step) else 0.0)
            room = rel * (abs(values[q]) + abs(there[q]) + size) + 1e-13 * terms
            assert there[q] >= values[q] + rise - room, (there[q], values[q], rise, batch[q], step)


def check_row_order(case, batch, rel=1e-9, seed=4):
    """The rows of a query may come in any order: the values are the same, the gradient goes with the rows."""
    scores, targets, rows = join_batch(batch)
    values, grad = case.surrogate(scores, targets, **rows)
    rng = np.random.default_rng(seed)
    for _ in range(3):
        order = np.lexsort((rng.random(len(scores)), rows["qid"].codes))
        shuffled = {"qid": rows["qid"], "weights": rows["weights"][order]}
        moved, moved_grad = case.surrogate(scores[order], targets[order], **shuffled)
        assert np.all(abs(moved - values) <= rel * (abs(values) + TINY)), (values, moved)
        near = abs(moved_grad - grad[order]) <= rel * (1 + abs(grad[order]))
        assert near.all(), (grad[order], moved_grad)
