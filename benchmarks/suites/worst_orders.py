"""Loss-augmented inference: the order that costs most, by ours, by SVMmap's search, by scipy's assignment."""

from collections.abc import Callable
from itertools import pairwise

import numba
import numpy as np
from scipy.optimize import linear_sum_assignment

import concordant as cc
from benchmarks.shared.lists import drawn
from benchmarks.shared.shapes import Shape, lengths
from benchmarks.shared.tables import Table
from benchmarks.shared.timing import on_threads, race, threads
from concordant._base.segments import n_threads
from concordant.surrogates import ListwiseHinge, PositionHinge, Preorder, Surrogate

SAME = 1e-9  # share by which ours may differ from the peer
GREEDY, ASSIGNMENT = "SVMmap's search", "scipy's assignment"
PEERS = {"ap": GREEDY, "ndcg": ASSIGNMENT, "ndcg@10": ASSIGNMENT, "p@10": ASSIGNMENT}
LONGEST = {"ap": 10**9, "ndcg": 1_000, "ndcg@10": 1_000, "p@10": 1_000}  # lists that are timed
TOGETHER = 2_000  # items of the lists that are timed together: some are harder than others

Search = Callable[[np.ndarray], np.ndarray]


def _hinge(spec: str) -> ListwiseHinge:
    """The structural SVM's loss for this metric."""
    return ListwiseHinge(cc.metric(spec))


def one_by_one(items: tuple[int, ...], rounds: int) -> Table:
    """One list after the other, half of the items relevant, against the peers."""
    alone, together = "a call each", "one call"
    table = Table(
        "The worst order of a list",
        "`ListwiseHinge(metric)`, value and gradient, bound before, sort included; one thread; "
        f"lists of together about {TOGETHER:,} items, half of them relevant, scores of spread 1 that know a "
        f"little about the grades: all in {together}, as in training, or {alone}; µs a list. {GREEDY}: sort, "
        "then the best place of each other item by going through the relevant ones, O(rel * nrel), compiled "
        f"by numba; {together}, or {alone}. {ASSIGNMENT}: `linear_sum_assignment`, {alone}, on the n x n "
        "matrix, made in the time; last column: made before. The peers give an order only; by the definition "
        "it has the value of ours (checked).",
        ("metric", "items", f"ours, {together}, µs", f"ours, {alone}, µs", "peer", "peer, µs",
         f"peer / ours, {together}", f"peer / ours, {alone}", "matrix made before / ours, one call"),
    )  # fmt: skip
    for spec, peer in PEERS.items():
        for n in (n for n in items if n <= LONGEST[spec]):
            count = max(TOGETHER // n, 1)
            scores, y, offsets = drawn(count, n)
            calls = _searches(spec, scores, y, offsets)
            with threads(1):
                timings = race(calls, title=f"{spec}, lists of {n}", rounds=rounds)
            times = {name: timings.median(name) / count * 1e6 for name in calls}
            prepared = timings.ratio("matrix made", together) if "matrix made" in calls else None
            ratios = timings.ratio("peer", together), timings.ratio("peer, a call each", alone)
            table.rows.append(
                (spec, n, times[together], times[alone], peer, times["peer"], *ratios, prepared)
            )
    return table


def _searches(
    spec: str, scores: np.ndarray, y: np.ndarray, offsets: np.ndarray
) -> dict[str, Callable[[], object]]:
    """Calls of ours and of the peers on all lists, after a check that they agree."""
    rows = [slice(a, b) for a, b in pairwise(offsets.tolist())]
    every = _hinge(spec).bind(y, offsets)
    bound = [_hinge(spec).bind(y[segment], offsets[:2]) for segment in rows]
    peers = [_peer(spec, y[segment]) for segment in rows]
    for segment, loss, search in zip(rows, bound, peers, strict=True):
        _check(spec, scores[segment], y[segment], float(loss.value_and_grad(scores[segment])[0][0]), search)
    parts = [scores[segment] for segment in rows]
    calls: dict[str, Callable[[], object]] = {
        "one call": lambda: every.value_and_grad(scores),
        "a call each": lambda: [loss.value_and_grad(s) for loss, s in zip(bound, parts, strict=True)],
        "peer, a call each": lambda: [search(s) for search, s in zip(peers, parts, strict=True)],
    }
    if PEERS[spec] == GREEDY:
        return calls | {"peer": lambda: _svmmap_each(scores, y > 0.0, offsets)}
    ready = [_costs(*_labels(spec, y[segment]), scores[segment]) for segment in rows]
    assign_each: Callable[[], object] = lambda: [linear_sum_assignment(matrix) for matrix in ready]  # noqa: E731
    return calls | {"peer": calls["peer, a call each"], "matrix made": assign_each}


def _peer(spec: str, y: np.ndarray) -> Search:
    """A search of the order with the largest loss."""
    if PEERS[spec] == GREEDY:
        return lambda scores, relevant=y > 0.0: _svmmap(scores, relevant)
    gains, discounts = _labels(spec, y)
    return lambda scores: np.argsort(linear_sum_assignment(_costs(gains, discounts, scores))[1])


def _labels(spec: str, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gain of each item, and discount of each place."""
    form = cc.metric(spec).order_loss(y, np.array([len(y)]))
    return form.gains, form.discounts


def _costs(gains: np.ndarray, discounts: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Cost of each item at each position."""
    n = len(gains)
    return np.outer(gains, discounts[:n]) + np.outer(4.0 / (n * (n - 1.0)) * scores, np.arange(n))


@numba.njit
def _svmmap(scores, relevant):  # pragma: no cover  compiled
    """The order of Yue et al. (2007): each other item goes up past relevant ones as far as that pays."""
    n, by_score = len(scores), np.argsort(-scores)
    high, low = by_score[relevant[by_score]], by_score[~relevant[by_score]]
    rate, order, at, position = 4.0 / (n * (n - 1.0)), np.empty(n, np.int64), 0, 0
    for j in range(len(low)):
        best, added, above = 0.0, 0.0, len(high)
        for i in range(len(high) - 1, -1, -1):
            lost = (i + 1.0) / (i + 1.0 + j) - (i + 1.0) / (i + 2.0 + j)
            added += lost / len(high) + rate * (scores[low[j]] - scores[high[i]])
            if added > best:
                best, above = added, i
        while at < above:
            order[position], at, position = high[at], at + 1, position + 1
        order[position], position = low[j], position + 1
    order[position:] = high[at:]
    return order


@numba.njit
def _svmmap_each(scores, relevant, offsets):  # pragma: no cover  compiled
    orders = np.empty(len(scores), np.int64)
    for q in range(len(offsets) - 1):
        a, b = offsets[q], offsets[q + 1]
        orders[a:b] = _svmmap(scores[a:b], relevant[a:b])
    return orders


def _check(spec: str, scores: np.ndarray, y: np.ndarray, value: float, search: Search) -> None:
    """Raise if the peer's order has, by the definition, another value than ours."""
    order, n, metric, (gains, _) = search(scores), len(y), cc.metric(spec), _labels(spec, y)
    places = np.empty(n)
    places[order] = np.arange(n)
    behind = np.greater.outer(gains, gains) & np.greater.outer(places, places)  # of pairs put the wrong way
    fallen = 4.0 / (n * (n - 1.0)) * float(np.subtract.outer(scores, scores)[behind].sum())
    expected = max(float(metric(y, y) - metric(y, -places)) - fallen, 0.0)
    if not abs(value - expected) <= SAME * max(expected, 1.0):
        raise SystemExit(f"{spec} on {n} items: ours is {value!r}, the peer's order has {expected!r}")


def many_lists(shape: Shape, rounds: int) -> Table:
    """A set of lists of many lengths, in one call: what a gradient costs per document."""
    rng = np.random.default_rng(0)
    sizes = 1 + rng.multinomial(shape.n_documents - shape.n_queries, lengths(shape.n_queries, rng))
    y = rng.choice(len(shape.grades), shape.n_documents, p=np.array(shape.grades)).astype(np.float64)
    scores, offsets = rng.standard_normal(len(y)) + 0.3 * y, np.r_[0, sizes.cumsum()]
    many, sort = f"{n_threads()} threads", "np.argsort of each"
    table = Table(
        "Lists of many lengths",
        f"{len(y):,} documents in {len(sizes):,} lists of {sizes.min()} to {sizes.max()}, grades as in "
        f"{shape.name}; ns per document of value and gradient, all lists in one call, bound before. Sorting "
        f"and {ASSIGNMENT} go through the lists in a Python loop; ratios are to ours on one thread.",
        ("loss", "1 thread", many, f"{sort}, ns", f"{sort} / ours", "peer", "peer, ns", "peer / ours"),
    )
    rows = [slice(a, b) for a, b in pairwise(offsets.tolist())]
    pairs: dict[str, Surrogate] = {
        "position hinge": PositionHinge("pairs"),
        "hinge": Preorder("pairs", "hinge"),
    }
    for name, kind in (pairs | {spec: _hinge(spec) for spec in PEERS}).items():
        loss = kind.bind(y, offsets)
        calls: dict[str, Callable[[], object]] = {
            "1 thread": on_threads(1, lambda loss=loss: loss.value_and_grad(scores)),
            many: lambda loss=loss: loss.value_and_grad(scores),
            sort: lambda: [np.argsort(scores[segment]) for segment in rows],
        }
        if PEERS.get(name) == GREEDY:
            calls["peer"] = lambda: _svmmap_each(scores, y > 0.0, offsets)
        elif name in PEERS:
            searching = [
                (_peer(name, y[segment]), scores[segment])
                for segment in rows
                if segment.stop - segment.start > 1
            ]
            calls["peer"] = lambda some=searching: [search(s) for search, s in some]
        timings = race(calls, title=name, rounds=rounds)
        times = {call: timings.nanoseconds(call, len(y)) for call in calls}
        beside = timings.ratio("peer", "1 thread") if name in PEERS else None
        numbers = times["1 thread"], times[many], times[sort], timings.ratio(sort, "1 thread")
        table.rows.append((name, *numbers, PEERS.get(name), times.get("peer"), beside))
    return table
