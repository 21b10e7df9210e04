"""Decoders: time, proofs and gaps; PrefLib's elections; the same votes to other packages.

PrefLib's archives are read from CONCORDANT_DATA; without them those tables say so.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from statistics import median

import numpy as np

import concordant as cc
from benchmarks.peers.kemeny import VOTERS, Election, against, component
from benchmarks.shared.tables import Cell, Table
from benchmarks.shared.timing import race, watched
from benchmarks.suites.maxmargin import slope
from concordant.decoders import Decoded, average_precision, feedback_arc
from concordant.decoders.feedback_arc import PACKED_ITEMS, by_edge_deletion
from concordant.decoders.graph_kernels import topological
from concordant.exceptions import DatasetNotFoundError

arcs = import_module(
    "concordant.decoders.feedback_arc"
)  # the module: `decoders.feedback_arc` is its function
SAME = 1e-9  # share by which optima may differ
PREFLIB = ("skate", "agh", "shirt", "cleanweb", "dots", "puzzle", "education", "cities", "breakfast",
           "eurovision")  # fmt: skip
QUICK = ("insertion", "edge-deletion", "borda")
FEWEST, MOST = 20, 250  # alternatives
ITEMS = (8, 10, 12, 15, 20, 30, 50)
REAL = (  # archive, election, unranked last; within an archive the smaller ones first
    ("eurovision", "00064-00000068.soi", False),
    ("skate", "00006-00000001.toc", False),
    ("education", "00032-00000006.toi", True),
    ("cities", "00034-00000001.soi", True),
    ("cleanweb", "00015-00000045.soc", False),
    ("cleanweb", "00015-00000046.soc", False),
    ("cleanweb", "00015-00000054.soc", False),
)


def run(*, quick: bool) -> list[Table]:
    """All tables of this suite."""
    _warm_up()
    if quick:
        few = [Election.random(n, 5, 1.0, 0) for n in (4, 5)]
        exact = _precise((8,), 1), _beamed((14,), 1), _switch((8, 9), 1), _hard((12,), 5.0)
        votes = *_preflib(5.0, ("skate",), 20, 21), against(few, 20.0, 1)
        return [*exact, *votes, _deletion_table((20,), 1), _growth((30, 60), 1)]
    elections = [Election.random(n, VOTERS, spread, n) for spread in (1.0, 0.0) for n in ITEMS]
    exact = _precise((12, 16, 20), 5), _beamed((30, 60, 120), 5), _switch(tuple(range(8, 21, 2)), 3)
    votes = *_preflib(60.0, PREFLIB, FEWEST, MOST), against([*elections, *_real()], 60.0, 3)
    quickly = _deletion_table((50, 100, 200), 3), _growth((125, 250, 500, 1_000, 2_000), 3)
    return [*exact, _hard((20, 25, 30, 40, 60, 100), 60.0), *votes, *quickly]


def _warm_up() -> None:
    """Compile, and load HiGHS."""
    for n in (8, 20):
        average_precision(_noise(n, 0))
        feedback_arc(_dense(n, 0))


def _noise(n: int, seed: int) -> np.ndarray:
    """A symmetric matrix that no label distribution gives: nothing dominates anything."""
    u = np.random.default_rng(seed).standard_normal((n, n))
    return (u + u.T) / 2.0


def _labelled(n: int, vectors: int, seed: int) -> np.ndarray:
    """E[y y' / sum(y)] over so many label vectors, equally likely; each item is relevant at its own rate."""
    rng = np.random.default_rng(seed)
    y = (rng.random((vectors, n)) < rng.beta(1.0, 2.0, n)).astype(np.float64)
    y[:, 0] += y.sum(axis=1) == 0.0  # something is relevant
    return np.einsum("vi,vj,v->ij", y, y, 1.0 / y.sum(axis=1)) / vectors


def _dense(n: int, seed: int) -> np.ndarray:
    """Uniform numbers, independent of one another."""
    return np.random.default_rng(seed).random((n, n))


def _voted(n: int, seed: int) -> np.ndarray:
    """Voters without any common opinion."""
    return Election.random(n, VOTERS, 0.0, seed).matrix()


PAIRS: dict[str, Callable[[int, int], np.ndarray]] = {
    "noise": _noise,
    "5 label vectors": lambda n, seed: _labelled(n, 5, seed),
    "200 label vectors": lambda n, seed: _labelled(n, 200, seed),
}
WEIGHTS: dict[str, Callable[[int, int], np.ndarray]] = {"uniform": _dense, f"{VOTERS} voters": _voted}


def _precise(items: tuple[int, ...], count: int) -> Table:
    """Average precision, exactly."""
    table = Table(
        "Average precision: exact",
        f"`average_precision(u)`, {count} matrices of each kind: symmetric with normal numbers, or the mean "
        "of y y' / sum(y) over that many label vectors. Goal: all proven, at 20 items in 2 s.",
        ("matrix", "items", "proven", "of", "seconds, median", "seconds, longest"),
    )
    for kind, draw in PAIRS.items():
        for n in items:
            orders = [average_precision(draw(n, seed)) for seed in range(count)]
            times = [order.seconds for order in orders]
            table.rows.append(
                (kind, n, sum(order.proven for order in orders), count, median(times), max(times))
            )
    return table


def _beamed(items: tuple[int, ...], count: int) -> Table:
    """Average precision of longer lists."""
    ways = {
        "diagonal": {},
        "beam, width 50": {"width": 50},
        "auto": {},
        "beam, width 5,000": {"width": 5_000},
    }
    table = Table(
        "Average precision: beyond 20 items",
        f"Value as a share of the best of the four, mean of {count} matrices; proven and gap (mean, from the "
        "upper bound) of `auto`; seconds: median.",
        ("matrix", "items", *(name for name in ways), "auto: proven", "of", "auto: gap", "auto: seconds",
         "diagonal: seconds", "width 5,000: seconds"),
    )  # fmt: skip
    for kind, draw in PAIRS.items():
        for n in watched(items, f"average precision, {kind}"):
            orders = {
                name: [average_precision(draw(n, s), method=name.split(",")[0], **more) for s in range(count)]
                for name, more in ways.items()
            }
            values = np.array([[order.value for order in some] for some in orders.values()])
            shares = [float(share) for share in (values / values.max(axis=0)).mean(axis=1)]
            auto = orders["auto"]
            times = [
                median(order.seconds for order in orders[name])
                for name in ("auto", "diagonal", list(ways)[3])
            ]
            proven, gap = sum(order.proven for order in auto), float(np.mean([order.gap for order in auto]))
            table.rows.append((kind, n, *shares, proven, count, gap, *times))
    return table


@contextmanager
def _dynamic(items: int) -> Iterator[None]:
    """Components up to this size are solved by dynamic programming."""
    before, arcs.DYNAMIC_ITEMS = arcs.DYNAMIC_ITEMS, items
    try:
        yield
    finally:
        arcs.DYNAMIC_ITEMS = before


def _switch(items: tuple[int, ...], rounds: int, count: int = 10) -> Table:
    """Dynamic programming and integer program, around the size where the faster one changes."""
    sets, program = "all sets", "integer program"
    table = Table(
        "Pairwise disagreement: the switch to the integer program",
        f"`feedback_arc(u)`, ms a matrix, mean of {count}: uniform numbers, or {VOTERS} voters without "
        "common opinion; components up to any size by dynamic programming over sets, or all by "
        f"the integer program. The decoder changes above {arcs.DYNAMIC_ITEMS} items. Slowest: longest of "
        f"the {count}. Same values (checked). Goal at 20 items: 2 s.",
        (
            "matrix",
            "items",
            sets,
            program,
            f"{program} / {sets}",
            f"{program}: slowest",
            "auto",
            "auto: slowest",
        ),
    )
    for kind, draw in WEIGHTS.items():
        for n in watched(items, f"switch, {kind}"):
            matrices = [draw(n, seed) for seed in range(count)]

            def each(most: int, matrices: list[np.ndarray] = matrices) -> list[Decoded]:
                with _dynamic(most):
                    return [feedback_arc(u) for u in matrices]

            by_size = {sets: n, program: 2, "auto": arcs.DYNAMIC_ITEMS}
            orders = {name: each(most) for name, most in by_size.items()}
            _agree([[order.value for order in some] for some in orders.values()])
            calls = {name: lambda most=most: each(most) for name, most in by_size.items()}
            timings = race(calls, title=f"{n} items", rounds=rounds, warm_up=False, most=3)
            a, b, c = (timings.median(name) / count * 1e3 for name in by_size)
            slow = [max(order.seconds for order in orders[name]) * 1e3 for name in (program, "auto")]
            table.rows.append((kind, n, a, b, timings.ratio(program, sets), slow[0], c, slow[1]))
    return table


def _agree(values: list[list[float]]) -> None:
    """Raise if the optima differ: speeds of different optima are not compared."""
    if not np.allclose(values, values[0], rtol=SAME):
        raise SystemExit(f"the ways find different optima: {values}")


def _hard(items: tuple[int, ...], limit: float) -> Table:
    """Uniform matrices, on which nothing agrees with anything."""
    table = Table(
        "Pairwise disagreement: uniform matrices",
        f"`feedback_arc(u, time_limit={limit:g})` on one matrix of independent uniform numbers, as no votes "
        "are; insertion: how many percent more its order violates.",
        ("items", "value", "proven", "gap", "seconds", "insertion, % more"),
    )
    for n in watched(items, "uniform matrices"):
        u = _dense(n, n)
        exact, search = feedback_arc(u, time_limit=limit), feedback_arc(u, method="insertion")
        proven, more = "yes" if exact.proven else "no", 100.0 * (search.value / exact.value - 1.0)
        table.rows.append((n, exact.value, proven, exact.gap, exact.seconds, more))
    return table


def _preflib(limit: float, archives: tuple[str, ...], fewest: int, most: int) -> list[Table]:
    """Every election of these sizes; summary and the hardest."""
    summary = Table(
        f"PrefLib: every election of {fewest} to {most} alternatives",
        f"`feedback_arc(profile.matrix(), time_limit={limit:g})`; where ballots leave alternatives out, once "
        "ignoring those and once putting them last. Component: the largest strongly connected one of the "
        "majority graph. Goal up to 100 alternatives: proven, or a gap below 1 %, in 60 s.",
        ("archive", "unranked", "alternatives", "elections", "proven", "largest component", "highest gap",
         "seconds, median", "seconds, longest"),
    )  # fmt: skip
    longest = Table(
        "PrefLib: the elections that take longest",
        "As above, and how many percent more than this order those of the quick methods violate.",
        ("election", "unranked", "alternatives", "component", "value", "proven", "gap", "seconds",
         *(f"{name}, % more" for name in QUICK)),
    )  # fmt: skip
    every: list[tuple[Election, Decoded]] = []
    for archive in archives:
        for some in (_drawn(archive, fewest, most, last=last) for last in (False, True)):
            results = [
                (election, feedback_arc(election.matrix(), time_limit=limit))
                for election in watched(some, archive)
            ]
            for low, high in ((fewest, 100), (101, most)):
                if part := [pair for pair in results if low <= pair[0].n <= high]:
                    summary.rows.append(_summary_row(archive, part))
            every += results
    for election, decoded in sorted(every, key=lambda pair: -pair[1].seconds)[:12]:
        u, proven = election.matrix(), "yes" if decoded.proven else "no"
        others = [feedback_arc(u, method=name).value for name in QUICK]
        more = [100.0 * (value - decoded.value) / (decoded.value or 1.0) for value in others]
        about = election.name, _unranked(election), election.n, component(u), decoded.value
        longest.rows.append((*about, proven, decoded.gap, decoded.seconds, *more))
    for table in (summary, longest):
        if not table.rows:
            table.add_text("not here: set CONCORDANT_DATA")
    return [summary, longest]


def _drawn(archive: str, fewest: int, most: int, *, last: bool) -> list[Election]:
    """Elections of a PrefLib archive; `last` only where it changes the matrix."""
    try:
        profiles = cc.datasets.load(f"preflib-{archive}")
    except DatasetNotFoundError:
        print(f"{archive} is not here (set CONCORDANT_DATA): left out")
        return []
    sized = {name: profile for name, profile in profiles.items() if fewest <= len(profile.names) <= most}
    both = {
        name: [Election.from_profile(name, profile, unranked_last=way) for way in (False, True)]
        for name, profile in sized.items()
    }
    return [pair[last] for pair in both.values() if not last or (pair[0].matrix() != pair[1].matrix()).any()]


def _summary_row(archive: str, results: list[tuple[Election, Decoded]]) -> tuple[Cell, ...]:
    """One row of the summary."""
    sizes, times = [election.n for election, _ in results], [decoded.seconds for _, decoded in results]
    span = f"{min(sizes)} to {max(sizes)}"
    proven, gap = sum(decoded.proven for _, decoded in results), max(decoded.gap for _, decoded in results)
    largest = max(component(election.matrix()) for election, _ in results)
    counts = len(results), proven, largest
    return archive, _unranked(results[0][0]), span, *counts, gap, median(times), max(times)


def _unranked(election: Election) -> str:
    """Treatment of alternatives that a ballot leaves out."""
    return "last" if election.unranked_last else "ignored"


def _real() -> list[Election]:
    """Some elections of PrefLib."""
    elections = []
    for archive, name, last in REAL:
        elections += [
            election for election in _drawn(archive, FEWEST, MOST, last=last) if election.name == name
        ]
    return elections


def _one_at_a_time(u: np.ndarray) -> np.ndarray:
    """Algorithm 1 as it is written: delete the lightest edge until no cycle is left."""
    net = np.maximum(u - u.T, 0.0)
    i, j = np.nonzero(net)
    lightest = np.lexsort((j, i, net[i, j]))
    ranks, order = np.where(net > 0.0, 0, -1), np.empty(len(u), dtype=np.int64)
    for edge in lightest:
        if topological(ranks, 0, order) == len(u):
            break
        ranks[i[edge], j[edge]] = -1
    topological(ranks, 0, order)
    return order


def _deletion_table(items: tuple[int, ...], rounds: int) -> Table:
    """Bisection and the literal algorithm."""
    table = Table(
        "Edge deletion: bisection and one edge at a time",
        "Uniform matrices; ms. Both use the same compiled topological sort and give the same order "
        "(checked). The last column is the whole call, which also packs cycles for the bound.",
        ("items", "bisection", "one at a time", "one at a time / bisection", "`feedback_arc`"),
    )
    for n in items:
        u = _dense(n, n)
        net = np.maximum(u - u.T, 0.0)
        if not np.array_equal(by_edge_deletion(net), _one_at_a_time(u)):
            raise SystemExit(f"edge deletion of {n} items: bisection gives another order")
        calls: dict[str, Callable[[], object]] = {
            "bisection": lambda net=net: by_edge_deletion(net),
            "literal": lambda u=u: _one_at_a_time(u),
            "all": lambda u=u: feedback_arc(u, method="edge-deletion"),
        }
        timings = race(calls, title=f"edge deletion of {n}", rounds=rounds)
        times = [timings.median(name) * 1e3 for name in calls]
        table.rows.append((n, *times[:2], timings.ratio("literal", "bisection"), times[2]))
    return table


def _growth(items: tuple[int, ...], rounds: int) -> Table:
    """Methods that do not prove, as the list grows."""
    names = ("borda", "edge-deletion", "insertion")
    table = Table(
        "Pairwise disagreement: growth",
        "Seconds of `feedback_arc(u, method=...)` on uniform matrices, bound included (up to "
        f"{PACKED_ITEMS:,} items it packs cycles), and how much more than insertion's order theirs "
        "violate. Last row: slope of log time against log n.",
        ("items", *names, "borda / insertion, value", "edge-deletion / insertion, value"),
    )
    for n in items:
        u = _dense(n, n)
        calls = {name: lambda u=u, name=name: feedback_arc(u, method=name) for name in names}
        timings = race(calls, title=f"{n:,} items", rounds=rounds, warm_up=False)
        borda, deletion, insertion = (calls[name]().value for name in names)
        times = [timings.median(name) for name in names]
        table.rows.append((n, *times, borda / insertion, deletion / insertion))
    lengths = np.array(items, dtype=np.float64)
    slopes = [slope(lengths, np.array([row[k] for row in table.rows])) for k in (1, 2, 3)]
    table.rows.append(("slope", *slopes, None, None))
    return table
