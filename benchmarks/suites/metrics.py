"""NDCG@10 against the peers and the limits; every metric; growth with the length of the list."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np

import concordant as cc
from benchmarks.peers import build_installed
from benchmarks.peers.ndcg import BUILDERS, Lists, Peer
from benchmarks.shared.tables import Table
from benchmarks.shared.timing import Race, on_threads, race

SAME = 1e-9  # ours under the peer's convention and the peer may differ by this much
IDS, QUERIES, ONE = "concordant, ids", "concordant, Queries", "concordant, 1 thread"
SORT, PASS = "np.sort", "memory"
GOALS = (("ranx", 20.0), ("pytrec_eval", 20.0), ("LightGBM", 2.0), (SORT, 0.5))
METRICS = (
    "ndcg", "ndcg@10", "dcg", "dcg@10", "err", "err@10", "ap", "ap@10", "p@10", "rr", "rr@10", "eru",
    "eru@10", "pd", "wpd", "auc", "zero_one", "comparison_error", "comparison_auc",
)  # fmt: skip
GROWING = ("ndcg", "auc", "err")


def run(*, quick: bool) -> list[Table]:
    """All tables of this suite."""
    lists = Lists.random(200 if quick else 10_000)
    rounds = 1 if quick else 7
    peers, absent = build_installed(BUILDERS, lists)
    _check(peers)
    timings = race(_candidates(lists, peers), title="ndcg@10", rounds=rounds)
    tables = [_against_peers(lists, peers, absent, timings), _goals(timings)]
    longest = 10_000 if quick else 1_000_000
    return [*tables, _every_metric(lists, rounds), _growth(longest, rounds)]


def _check(peers: list[Peer]) -> None:
    """Raise if the numbers differ: speeds of different numbers are not compared."""
    for peer in peers:
        lists, theirs = peer.lists, peer.value(peer.call())
        ours = cc.metric("ndcg@10", convention=peer.convention)(lists.y, lists.scores, qid=lists.qid)
        if not abs(ours - theirs) <= SAME:
            raise SystemExit(f"{peer.name} gives {theirs!r}, ours in its convention {float(ours)!r}")


def _candidates(lists: Lists, peers: list[Peer]) -> dict[str, Callable[[], object]]:
    """Ours, ours in each peer's convention, the peers and the limits."""
    y, scores, qid = lists.y, lists.scores, lists.qid
    metric, queries = cc.metric("ndcg@10"), cc.Queries.from_ids(qid)
    calls: dict[str, Callable[[], object]] = {
        IDS: lambda: metric(y, scores, qid=qid),
        QUERIES: lambda: metric(y, scores, qid=queries),
        ONE: on_threads(1, lambda: metric(y, scores, qid=queries)),
        SORT: lambda: _sort_segments(scores, queries.offsets),
        PASS: lambda: scores.sum() + y.sum(),
    }
    for peer in peers:
        calls[peer.name] = peer.call
        calls[f"as {peer.name}"] = _as_peer(peer)
    return calls


def _as_peer(peer: Peer) -> Callable[[], object]:
    """Ours, from ids, in the convention of the peer and on its lists."""
    metric, lists = cc.metric("ndcg@10", convention=peer.convention), peer.lists
    return lambda: metric(lists.y, lists.scores, qid=lists.qid)


def _sort_segments(scores: np.ndarray, offsets: np.ndarray) -> None:
    """Sort each list by numpy, in a loop."""
    for begin, end in pairwise(offsets.tolist()):
        np.sort(scores[begin:end])


def _against_peers(lists: Lists, peers: list[Peer], absent: list[str], timings: Race) -> Table:
    """One row for each tool and limit; ratios above 1: ours is faster."""
    documents = len(lists.y)
    rows = [
        (IDS, "`metric(y, scores, qid=ids)`: checks and grouping included", "all"),
        (QUERIES, "`metric(y, scores, qid=cc.Queries)`: grouped before", "all"),
        (ONE, "the same with `CONCORDANT_THREADS=1`", "1"),
        *((peer.name, peer.timed, peer.threads) for peer in peers),
        (SORT, "limit: `np.sort` of each list's scores, in a Python loop", "1"),
        (PASS, "limit: `scores.sum() + y.sum()`, one pass over the data", "1"),
    ]
    share = {peer.name: documents / len(peer.lists.y) for peer in peers}  # where a subset was timed
    table = Table(
        "NDCG@10 against the peers",
        f"{len(lists.sizes):,} queries of 20 to 200 documents ({documents:,} in all), grades 0 to 4, no tied "
        "scores. The last four columns: how many times longer the row takes than ours (from ids; grouped "
        "before; the same on one thread; from ids in the row's own convention, which gives the row's value "
        "to 1e-9). Medians over rounds of the best of several runs; above 1, ours is faster."
        f"{' Not installed: ' * bool(absent)}{', '.join(absent)}",
        ("tool", "timed", "threads", "ns/document", "/ ids", "/ Queries", "/ 1 thread", "/ as the tool"),
    )
    for name, timed, used in rows:
        scale = share.get(name, 1.0)
        ratios = [scale * timings.ratio(name, ours) for ours in (IDS, QUERIES, ONE)]
        as_tool = timings.ratio(name, f"as {name}") if name in share else None
        table.rows.append((name, timed, used, scale * timings.nanoseconds(name, documents), *ratios, as_tool))
    return table


def _goals(timings: Race) -> Table:
    """Goals of the project; reported, never asserted."""
    table = Table(
        "Goals for NDCG@10",
        "How many times longer the peer or limit takes than ours, called in three ways: median over rounds "
        "(lowest to highest round). Reached: in every round, in the median only, or no. Never asserted.",
        ("against", "goal", "ours called", "median", "lowest", "highest", "reached"),
    )
    for name, target in GOALS:
        for ours in (IDS, QUERIES, ONE) if name in timings.seconds else ():
            called = ours.removeprefix("concordant, ")
            table.rows.append((name, f"at least {target:g}", called, *timings.goal(name, ours, target)))
    return table


def _labels_for(name: str, lists: Lists) -> object:
    """Labels of the kind the metric reads."""
    if name == "zero_one":
        rng = np.random.default_rng(0)
        return cc.Permutations(np.concatenate([rng.permutation(n) + 1 for n in lists.sizes]))
    return lists.y % 3 - 1 if name.startswith("comparison") else cc.Grades(lists.y)


def _every_metric(lists: Lists, rounds: int) -> Table:
    """Nanoseconds per document of each metric, on all cores."""
    queries, centred = cc.Queries.from_ids(lists.qid), lists.scores - lists.scores.mean()
    tied = np.round(lists.scores * 8) / 8
    calls: dict[str, Callable[[], object]] = {"sort": lambda: _sort_segments(lists.scores, queries.offsets)}
    for name in METRICS:
        metric, labels = cc.metric(name), _labels_for(name, lists)
        scores = centred if name.startswith("comparison") else lists.scores
        calls[name] = lambda m=metric, y=labels, s=scores: m(y, s, qid=queries)
        calls[f"{name} tied"] = lambda m=metric, y=labels, s=tied: m(y, s, qid=queries)
    timings = race(calls, title="every metric", rounds=max(rounds // 2, 1), enough=0.05)
    table = Table(
        "Every metric",
        "The same lists, labels checked and grouped before, all cores; tied: scores rounded to eighths. The "
        "last column compares with `np.sort` of each list's scores in a Python loop, 1 thread; below 1 ours "
        "is faster.",
        ("metric", "ns/document", "tied scores, ns/document", "/ np.sort"),
    )
    for name in METRICS:
        per_document = [timings.nanoseconds(run, len(lists.y)) for run in (name, f"{name} tied")]
        table.rows.append((name, *per_document, timings.ratio(name, "sort")))
    return table


def _growth(longest: int, rounds: int) -> Table:
    """Nanoseconds per document of one list that grows, and the exponent of the growth."""
    lengths = [10**power for power in range(2, len(str(longest)))]
    names = [f"{name}{kind}" for name in GROWING for kind in ("", ", tied")]
    table = Table(
        "Growth with the length of the list",
        "ns per document of one list, no cutoff, checks included; random scores, or all tied (a constant "
        "scorer: ERR then needs its dynamic programme). Last row: the time grows as the length to this power "
        "over the last two decades; compare with `np.argsort`'s. In short lists one sees the cost of a call.",
        ("documents", *names, "np.argsort"),
    )
    for length in lengths:
        timings = race(
            _growing(length), title=f"lists of {length:,}", rounds=max(rounds // 2, 1), enough=0.02
        )
        table.rows.append((length, *(timings.nanoseconds(name, length) for name in (*names, "np.argsort"))))
    last = np.array([row[1:] for row in table.rows[-3:]])
    powers = 1 + np.log10(last[-1] / last[0]) / (len(last) - 1)
    table.rows.append(("power", *map(float, powers)))
    return table


def _growing(length: int) -> dict[str, Callable[[], object]]:
    """The calls on one list of this length."""
    rng = np.random.default_rng(0)
    y, scores = cc.Grades(rng.integers(0, 5, length)), rng.standard_normal(length)
    calls: dict[str, Callable[[], object]] = {"np.argsort": lambda: np.argsort(scores)}
    for name in GROWING:
        metric = cc.metric(name)
        calls[name] = lambda m=metric: m(y, scores)
        calls[f"{name}, tied"] = lambda m=metric: m(y, np.zeros(length))
    return calls
