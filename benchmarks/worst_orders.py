"""Loss-augmented inference: the order that costs most, by ours, by SVMmap's search, by scipy's assignment."""

from collections.abc import Callable
from itertools import pairwise

import numba
import numpy as np
from scipy.optimize import linear_sum_assignment

import concordant as cc
from benchmarks.lists import drawn
from benchmarks.shapes import Shape, lengths
from benchmarks.tables import Table
from benchmarks.timing import on_threads, race, threads
from concordant._segments import n_threads
from concordant.surrogates import ListwiseHinge, PositionHinge, Preorder, Surrogate

__all__ = ["many_lists", "one_by_one"]

SAME = 1e-9  # share by which ours may differ from the peer
GREEDY, ASSIGNMENT = "SVMmap's search", "scipy's assignment"
PEERS = {"ap": GREEDY, "ndcg": ASSIGNMENT, "ndcg@10": ASSIGNMENT, "p@10": ASSIGNMENT}
LONGEST = {"ap": 10**9, "ndcg": 1_000, "ndcg@10": 1_000, "p@10": 1_000}  # lists that are timed
TOGETHER = 2_000  # items of the lists that are timed together: some are harder than others

Search = Callable[[np.ndarray], np.ndarray]


def hinge(spec: str) -> ListwiseHinge:
    """The structural SVM's loss for this metric."""
    return ListwiseHinge(cc.metric(spec))


def one_by_one(items: tuple[int, ...], rounds: int) -> Table:
    """One list after the other, half of the items relevant, against the peers."""
    alone, joined = "a call each", "one call"
    table = Table(
        "The worst order of a list",
        "`ListwiseHinge(metric)`, value and gradient, bound before, sort included; one thread; "
        f"lists of together about {TOGETHER:,} items, half of them relevant, scores of spread 1 that know a "
        f"little about the grades: all in {joined}, as in training, or {alone}; µs a list. {GREEDY}: sort, "
        "then the best place of each other item by going through the relevant ones, O(rel * nrel), compiled "
        f"by numba; {joined}, or {alone}. {ASSIGNMENT}: `linear_sum_assignment`, {alone}, on the n x n "
        "matrix, made in the time; last column: made before. The peers give an order only; by the definition "
        "it has the value of ours (checked).",
        ("metric", "items", f"ours, {joined}, µs", f"ours, {alone}, µs", "peer", "peer, µs",
         f"peer / ours, {joined}", f"peer / ours, {alone}", "matrix made before / ours, one call"),
    )  # fmt: skip
    for spec, peer in PEERS.items():
        for n in (n for n in items if n <= LONGEST[spec]):
            count = max(TOGETHER // n, 1)
            scores, y, offsets = drawn(count, n)
            calls = searches(spec, scores, y, offsets)
            with threads(1):
                timings = race(calls, title=f"{spec}, lists of {n}", rounds=rounds)
            times = {name: timings.median(name) / count * 1e6 for name in calls}
            made = timings.ratio("matrix made", joined) if "matrix made" in calls else None
            ratios = timings.ratio("peer", joined), timings.ratio("peer, a call each", alone)
            table.rows.append((spec, n, times[joined], times[alone], peer, times["peer"], *ratios, made))
    return table


def searches(
    spec: str, scores: np.ndarray, y: np.ndarray, offsets: np.ndarray
) -> dict[str, Callable[[], object]]:
    """Calls of ours and of the peers on all lists, after a check that they agree."""
    rows = [slice(a, b) for a, b in pairwise(offsets.tolist())]
    every = hinge(spec).bind(y, offsets)
    bound = [hinge(spec).bind(y[own], offsets[:2]) for own in rows]
    peers = [peer(spec, y[own]) for own in rows]
    for own, loss, search in zip(rows, bound, peers, strict=True):
        check(spec, scores[own], y[own], float(loss.value_and_grad(scores[own])[0][0]), search)
    parts = [scores[own] for own in rows]
    calls: dict[str, Callable[[], object]] = {
        "one call": lambda: every.value_and_grad(scores),
        "a call each": lambda: [loss.value_and_grad(s) for loss, s in zip(bound, parts, strict=True)],
        "peer, a call each": lambda: [search(s) for search, s in zip(peers, parts, strict=True)],
    }
    if PEERS[spec] == GREEDY:
        return calls | {"peer": lambda: svmmap_each(scores, y > 0.0, offsets)}
    ready = [costs(*labels(spec, y[own]), scores[own]) for own in rows]
    made: Callable[[], object] = lambda: [linear_sum_assignment(matrix) for matrix in ready]  # noqa: E731
    return calls | {"peer": calls["peer, a call each"], "matrix made": made}


def peer(spec: str, y: np.ndarray) -> Search:
    """A search of the order with the largest loss."""
    if PEERS[spec] == GREEDY:
        return lambda scores, relevant=y > 0.0: svmmap(scores, relevant)
    gains, discounts = labels(spec, y)
    return lambda scores: np.argsort(linear_sum_assignment(costs(gains, discounts, scores))[1])


def labels(spec: str, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gain of each item, and discount of each place."""
    form = cc.metric(spec).order_loss(y, np.array([len(y)]))
    return form.gains, form.discounts


def costs(gains: np.ndarray, discounts: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """What each item costs at each place."""
    n = len(gains)
    return np.outer(gains, discounts[:n]) + np.outer(4.0 / (n * (n - 1.0)) * scores, np.arange(n))


@numba.njit
def svmmap(scores, relevant):  # pragma: no cover  compiled
    """The order of Yue et al. (2007): each other item goes up past relevant ones as far as that pays."""
    n, by_score = len(scores), np.argsort(-scores)
    high, low = by_score[relevant[by_score]], by_score[~relevant[by_score]]
    rate, order, at, place = 4.0 / (n * (n - 1.0)), np.empty(n, np.int64), 0, 0
    for j in range(len(low)):
        best, added, above = 0.0, 0.0, len(high)
        for i in range(len(high) - 1, -1, -1):
            lost = (i + 1.0) / (i + 1.0 + j) - (i + 1.0) / (i + 2.0 + j)
            added += lost / len(high) + rate * (scores[low[j]] - scores[high[i]])
            if added > best:
                best, above = added, i
        while at < above:
            order[place], at, place = high[at], at + 1, place + 1
        order[place], place = low[j], place + 1
    order[place:] = high[at:]
    return order


@numba.njit
def svmmap_each(scores, relevant, offsets):  # pragma: no cover  compiled
    orders = np.empty(len(scores), np.int64)
    for q in range(len(offsets) - 1):
        a, b = offsets[q], offsets[q + 1]
        orders[a:b] = svmmap(scores[a:b], relevant[a:b])
    return orders


def check(spec: str, scores: np.ndarray, y: np.ndarray, value: float, search: Search) -> None:
    """Refuse to compare speeds of different numbers: the peer's order has the value, by the definition."""
    order, n, metric, (gains, _) = search(scores), len(y), cc.metric(spec), labels(spec, y)
    places = np.empty(n)
    places[order] = np.arange(n)
    behind = np.greater.outer(gains, gains) & np.greater.outer(places, places)  # of pairs put the wrong way
    fallen = 4.0 / (n * (n - 1.0)) * float(np.subtract.outer(scores, scores)[behind].sum())
    wanted = max(float(metric(y, y) - metric(y, -places)) - fallen, 0.0)
    if not abs(value - wanted) <= SAME * max(wanted, 1.0):
        raise SystemExit(f"{spec} on {n} items: ours is {value!r}, the peer's order has {wanted!r}")


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
    for name, kind in (pairs | {spec: hinge(spec) for spec in PEERS}).items():
        loss = kind.bind(y, offsets)
        calls: dict[str, Callable[[], object]] = {
            "1 thread": on_threads(1, lambda loss=loss: loss.value_and_grad(scores)),
            many: lambda loss=loss: loss.value_and_grad(scores),
            sort: lambda: [np.argsort(scores[own]) for own in rows],
        }
        if PEERS.get(name) == GREEDY:
            calls["peer"] = lambda: svmmap_each(scores, y > 0.0, offsets)
        elif name in PEERS:
            searching = [(peer(name, y[own]), scores[own]) for own in rows if own.stop - own.start > 1]
            calls["peer"] = lambda some=searching: [search(s) for search, s in some]
        timings = race(calls, title=name, rounds=rounds)
        times = {of: timings.median(of) / len(y) * 1e9 for of in calls}
        beside = timings.ratio("peer", "1 thread") if name in PEERS else None
        own = times["1 thread"], times[many], times[sort], timings.ratio(sort, "1 thread")
        table.rows.append((name, *own, PEERS.get(name), times.get("peer"), beside))
    return table
