"""Losses with gradients: a long list against the peers, growth, short lists, the switch, every surrogate."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise

import numpy as np

from benchmarks.shared.lists import asked, different, drawn, renewed
from benchmarks.shared.processes import peak
from benchmarks.shared.tables import Table
from benchmarks.shared.timing import on_threads, race, threads
from benchmarks.suites.one_list import BOUND, NEW, one_list
from concordant.surrogates import Duchi, Pairwise, PlackettLuce, Preorder, Softmax, Squared, Surrogate
from concordant.surrogates import pairwise as pairwise_module
from concordant.surrogates.margins import MARGINS

NEVER, ALWAYS = 10**9, -1
LENGTHS = (32, 64, 96, 128, 160, 192, 256, 320, 384, 512, 1024)
GROWTH = 1.5
EVERY: tuple[Surrogate, ...] = (
    Squared(), Duchi(), Softmax(), PlackettLuce(),
    *(Pairwise(name) for name in MARGINS),
    *(Preorder(weighting, name) for weighting in ("unit", "gain") for name in MARGINS),
)  # fmt: skip


def run(*, quick: bool) -> list[Table]:
    """All tables of this suite."""
    rounds, rows = (1, 2_000) if quick else (7, 200_000)
    return [
        *one_list(500 if quick else 10_000, rounds),
        _growth([300, 3_000] if quick else [1_000, 10_000, 100_000, 1_000_000], rounds),
        _short_lists(rows, rounds),
        _switch(LENGTHS[::9] if quick else LENGTHS, rows // 2, rounds),
        _every_surrogate(rows // 2, rounds),
    ]


def _growth(lengths: list[int], rounds: int) -> Table:
    """Nanoseconds per item of one list that grows, beside np.argsort, and the memory of a call."""
    table = Table(
        "Growth with the length of the list",
        "ns per item of `Pairwise()`, value and gradient, and of `np.argsort` of the same scores; memory: "
        "peak of a call that binds a new loss, in arrays of as many doubles as items. Last row: how much "
        "longer an item of the longest list takes than one of the shortest; goal: ours at most "
        f"{GROWTH} times argsort's.",
        ("items", NEW, BOUND, "np.argsort", f"{BOUND} / np.argsort", "memory, arrays"),
    )
    for n in lengths:
        _, y, offsets = drawn(1, n)
        far = different(n, y)
        calls: dict[str, Callable[[], object]] = {
            NEW: renewed(Pairwise(), y, far),
            BOUND: asked(Pairwise().bind(y, offsets), far),
            "np.argsort": lambda far=far: np.argsort(next(far)),
        }
        timings = race(calls, title=f"lists of {n:,}", rounds=max(rounds // 2, 1), enough=0.05)
        times = [timings.nanoseconds(name, n) for name in calls]
        table.rows.append((n, *times, timings.ratio(BOUND, "np.argsort"), peak(calls[NEW]) / (8 * n)))
    first, last = (np.array(table.rows[k][1:4]) for k in (0, -1))
    rise = [float(x) for x in last / first]
    table.rows.append(("growth", *rise, rise[1] / rise[2], None))
    return table


def _short_lists(rows: int, rounds: int) -> Table:
    """Many short lists at once, on one thread and on two."""
    sort, whole = "np.argsort of each", "one np.argsort"
    table = Table(
        "Short lists",
        f"About {rows:,} rows in lists of equal length; ns per row of value and gradient, bound before, on "
        "one and two threads; `np.argsort` of each list in a Python loop, and one of all rows (1 thread). "
        "The last two columns: how many times longer sorting takes than ours on one thread.",
        ("items", "surrogate", "1 thread", "2 threads", sort, whole, f"{sort} / ours", f"{whole} / ours"),
    )
    for n in (41, 120):
        scores, y, offsets = drawn(rows // n, n)
        for surrogate in (Pairwise(), Preorder()):
            loss = surrogate.bind(y, offsets)
            calls: dict[str, Callable[[], object]] = {
                "1 thread": on_threads(1, lambda loss=loss, scores=scores: loss.value_and_grad(scores)),
                "2 threads": on_threads(2, lambda loss=loss, scores=scores: loss.value_and_grad(scores)),
                sort: lambda s=scores, o=offsets: [np.argsort(s[a:b]) for a, b in pairwise(o.tolist())],
                whole: lambda s=scores: np.argsort(s),
            }
            timings = race(calls, title=f"lists of {n}", rounds=rounds, enough=0.05)
            times = [timings.nanoseconds(name, len(scores)) for name in calls]
            ratios = [timings.ratio(name, "1 thread") for name in (sort, whole)]
            table.rows.append((n, surrogate.name, *times, *ratios))
    return table


@contextmanager
def switched(length: int) -> Iterator[None]:
    """Losses bound within sweep lists that are longer than this."""
    before = pairwise_module.LONG
    pairwise_module.LONG = length
    try:
        yield
    finally:
        pairwise_module.LONG = before


def _switch(lengths: tuple[int, ...], rows: int, rounds: int) -> Table:
    """Double loop and sweep, around the length where the faster one changes."""
    kinds = {"pairwise": Pairwise(), "preorder": Preorder(), "preorder, gain": Preorder("gain")}
    table = Table(
        "The switch from double loop to sweep",
        f"About {rows:,} rows in lists of equal length, all different; ns per row on one thread, sorting "
        f"included. `LONG` is {pairwise_module.LONG}. Last row: from which length on the sweep is faster.",
        ("items", *(f"{name}: {way}" for name in kinds for way in ("double loop", "sweep"))),
    )
    for n in lengths:
        scores, y, offsets = drawn(rows // n, n)
        calls: dict[str, Callable[[], object]] = {}
        for name, surrogate in kinds.items():
            for way, length in (("double loop", NEVER), ("sweep", ALWAYS)):
                with switched(length):
                    loss = surrogate.bind(y, offsets)
                calls[f"{name}: {way}"] = on_threads(1, lambda b=loss, s=scores: b.value_and_grad(s))
        timings = race(calls, title=f"switch at {n}", rounds=max(rounds // 2, 1), enough=0.1)
        table.rows.append((n, *(timings.nanoseconds(name, len(scores)) for name in calls)))
    times = np.array([row[1:] for row in table.rows])
    firsts = [_crossing(lengths, *times[:, k : k + 2].T) for k in range(0, times.shape[1], 2)]
    table.rows.append(("faster from", *(cell for first in firsts for cell in (None, first))))
    return table


def _crossing(lengths: tuple[int, ...], loop: np.ndarray, sweep: np.ndarray) -> int | None:
    """The first length from which on the sweep is faster."""
    slower = np.flatnonzero(sweep >= loop)
    at = int(slower[-1]) + 1 if slower.size else 0
    return lengths[at] if at < len(lengths) else None


def _every_surrogate(rows: int, rounds: int) -> Table:
    """Nanoseconds per row of each surrogate and margin."""
    table = Table(
        "Every surrogate",
        f"About {rows:,} rows in lists of equal length; ns per row on one thread, bound before: value and "
        "gradient, and a product with the Hessian.",
        ("surrogate", "41 items", "1,000 items", "41 items, Hessian", "1,000 items, Hessian"),
    )
    calls: dict[str, Callable[[], object]] = {}
    sizes = {n: n * (rows // n) for n in (41, 1000)}
    for n in sizes:
        scores, y, offsets = drawn(rows // n, n)
        places = np.concatenate([np.random.default_rng(0).permutation(n) + 1.0 for _ in offsets[1:]])
        for surrogate in EVERY:
            loss = surrogate.bind(places if surrogate.reads == "positions" else y, offsets)
            calls[f"{surrogate} {n}"] = lambda b=loss, s=scores: b.value_and_grad(s)
            calls[f"{surrogate} {n} Hessian"] = lambda b=loss, s=scores: b.hessian_product(s, s)
    with threads(1):
        timings = race(calls, title="every surrogate", rounds=max(rounds // 3, 1), enough=0.05)
    for surrogate in EVERY:
        names = [(f"{surrogate} {n}{kind}", size) for kind in ("", " Hessian") for n, size in sizes.items()]
        table.rows.append((_label(surrogate), *(timings.nanoseconds(name, size) for name, size in names)))
    return table


def _label(surrogate: Surrogate) -> str:
    """Its name, weighting and margin."""
    parts = surrogate.name, getattr(surrogate, "weighting", ""), str(getattr(surrogate, "margin", ""))
    return ", ".join(filter(None, parts))
